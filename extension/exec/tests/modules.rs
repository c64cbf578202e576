//! The walls of the crate: which modules may use which. Reads the sources, so that a new import that goes upwards fails
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// From the ground upwards: each may use itself and what stands before it.
const FLOORS: [&str; 12] = [
    "cost",
    "tuning",
    "plan",
    "bindings",
    "source",
    "stats",
    "access",
    "operators",
    "optimizer",
    "pipeline",
    "plan_data",
    "cost_measure",
];

/// The files of the driver beside `pipeline/mod.rs`: `impl Pipeline` stands in them, so that they and it are one
/// module.
const DRIVER: [&str; 3] = ["pattern", "repartition", "star"];

/// A module by its path in the crate, such as `["plan", "layout"]`, with the modules that its file names.
type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

fn read(folder: &Path, module: &[String], found: &mut BTreeMap<Vec<String>, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let mut module = module.to_vec();
        if path.is_dir() {
            module.push(stem.into());
            read(&path, &module, found);
            continue;
        }
        if stem != "mod" {
            module.push(stem.into());
        }
        found.insert(module, std::fs::read_to_string(&path).unwrap());
    }
}

/// The paths behind each `crate::` of a file.
fn named(text: &str) -> BTreeSet<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code.collect();
    let path = |at: &str| {
        let parts = at
            .split("::")
            .map(|part| part.split(|c| !is_word(c)).next().unwrap_or(""));
        parts
            .take_while(|part| !part.is_empty())
            .map(String::from)
            .collect()
    };
    code.join("\n").split("crate::").skip(1).map(path).collect()
}

/// The modules that each module uses.
fn imports() -> Imports {
    let mut files = BTreeMap::new();
    read(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &[],
        &mut files,
    );
    let root = files.remove(&vec!["lib".to_string()]).unwrap();
    assert!(root.contains("mod pipeline;"));
    let module_of = |path: &Vec<String>| {
        let prefix = (1..=path.len()).rev().map(|len| path[..len].to_vec());
        let mut known = prefix.filter(|prefix| files.contains_key(prefix));
        known
            .next()
            .unwrap_or_else(|| panic!("crate::{} is no module", path.join("::")))
    };
    let of = |(module, text): (&Vec<String>, &String)| {
        let mut used: BTreeSet<_> = named(text).iter().map(module_of).collect();
        used.remove(module);
        (module.clone(), used)
    };
    files.iter().map(of).collect()
}

/// The module, or the driver's where it is one of its files.
fn without_driver(module: &[String]) -> Vec<String> {
    let is_driver = |file: &String| DRIVER.contains(&file.as_str());
    match module {
        [folder, file] if folder == "pipeline" && is_driver(file) => vec![folder.clone()],
        _ => module.to_vec(),
    }
}

/// Only the driver has methods of [`pgquad_exec::Pipeline`].
#[test]
fn only_the_driver_knows_the_pipeline() {
    let mut files = BTreeMap::new();
    read(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &[],
        &mut files,
    );
    let with: BTreeSet<Vec<String>> = files
        .iter()
        .filter(|(_, text)| text.contains("impl Pipeline"))
        .map(|(module, _)| without_driver(module))
        .collect();
    assert_eq!(with, BTreeSet::from([vec!["pipeline".to_string()]]));
}

fn floor(module: &[String]) -> usize {
    let found = FLOORS.iter().position(|floor| *floor == module[0]);
    found.unwrap_or_else(|| panic!("{} stands on no floor: add it to FLOORS", module[0]))
}

#[test]
fn no_module_uses_one_of_a_floor_above() {
    for (module, used) in imports() {
        for other in used {
            assert!(
                floor(&other) <= floor(&module),
                "{} uses {}, which stands above it",
                module.join("::"),
                other.join("::")
            );
        }
    }
}

#[test]
fn no_circle_of_modules() {
    let mut left = Imports::new();
    for (module, used) in imports() {
        let used = used.iter().map(|used| without_driver(used));
        left.entry(without_driver(&module))
            .or_default()
            .extend(used);
    }
    for (module, used) in &mut left {
        used.remove(module);
    }
    assert!(left.len() > 30, "only {} modules are seen", left.len());
    loop {
        let done = left.iter().filter(|(_, used)| used.is_empty());
        let done: Vec<_> = done.map(|(module, _)| module.clone()).collect();
        if done.is_empty() {
            break;
        }
        for module in done {
            left.remove(&module);
            left.values_mut().for_each(|used| {
                used.remove(&module);
            });
        }
    }
    let circle: Vec<String> = left.keys().map(|module| module.join("::")).collect();
    assert!(
        circle.is_empty(),
        "modules use each other in a circle: {circle:?}"
    );
}

#[test]
fn paths_are_found() {
    let text =
        "use crate::plan::{Plan, Slot};\n// crate::no\nlet x = crate::bindings::Column::Null;\n";
    let found = named(text);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["bindings::Column::Null", "plan"]);
}
