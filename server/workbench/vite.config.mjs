import { defineConfig } from 'vite';

// Files are served below `/-/`, which no store is called; the page itself is at `/`. Addresses are relative, so a proxy
// may put all of it
// below a path.
export default defineConfig({
    base: './',
    build: {
        outDir: 'dist/site',
        emptyOutDir: true,
        assetsDir: '-',
        target: 'es2022',
        modulePreload: { polyfill: false },
        assetsInlineLimit: 0,
    },
    server: {
        proxy: {
            '^/(-/(session|stores|plan|running|cancel|cluster)|([^/@]+/)?(sparql|update|data)(/|$|\\?))':
                'http://127.0.0.1:7333',
        },
    },
});
