//! Puts the files of the workbench, which `make` has built into `workbench/dist/site`, into the binary. Without them
//! the server has a plain
//! page instead.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    // The folder is always there, so that cargo notices when it is filled.
    let dist = root.join("workbench/dist");
    println!("cargo:rerun-if-changed={}", dist.display());
    println!("cargo:rerun-if-changed=build.rs");
    let site = dist.join("site");
    let mut files = Vec::new();
    collect(&site, &mut files);
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        let Some(name) = file.strip_prefix(&site).ok().and_then(Path::to_str) else {
            continue;
        };
        let packed = PathBuf::from(format!("{}.gz", file.display()));
        if name.ends_with(".gz") || !packed.exists() {
            continue;
        }
        writeln!(
            code,
            "File {{ path: {name:?}, plain: include_bytes!({file:?}), packed: include_bytes!({packed:?}) }},"
        )
        .expect("a string takes it");
    }
    code.push(']');
    std::fs::write(out.join("workbench.rs"), code).expect("cargo's own folder can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
