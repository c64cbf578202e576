// After the build: the licences of what is bundled, as a page, and a packed copy of each file.
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const site = 'dist/site';

/** The packages that `dependencies` bring, with their own: all that may be in the bundle. */
function bundled() {
    const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
    return Object.entries(lock.packages)
        .filter(([path, entry]) => path && !entry.dev && !entry.optional)
        .map(([path, entry]) => {
            const files = readdirSync(path).filter(name => /^(licen[cs]e|copying|notice)/i.test(name));
            const text = files.map(name => readFileSync(join(path, name), 'utf8').trim()).join('\n\n');
            if (!text && !entry.license) throw new Error(`${path} has no licence`);
            return {
                name: path.replace(/^.*node_modules\//, ''),
                version: entry.version,
                license: entry.license,
                text,
            };
        });
}

const escaped = text => text.replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

const sections = bundled().map(
    ({ name, version, license, text }) =>
        `<h2>${escaped(name)} ${escaped(version)}</h2>\n<p>${escaped(license ?? '')}</p>\n<pre>${escaped(text)}</pre>`,
);
writeFileSync(
    join(site, '-/licences.html'),
    `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Licences of the workbench</title><h1>Licences of what the workbench contains</h1>
<p>pgquad itself: MIT or Apache 2.0.</p>
${sections.join('\n')}
</html>
`,
);

let plain = 0,
    packed = 0;
function pack(folder) {
    for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        if (statSync(path).isDirectory()) {
            pack(path);
            continue;
        }
        const bytes = readFileSync(path),
            small = gzipSync(bytes, { level: 9 });
        writeFileSync(`${path}.gz`, small);
        plain += bytes.length;
        packed += small.length;
    }
}
pack(site);
console.log(`workbench: ${plain} bytes, ${packed} compressed`);
