//! What decides a landing has a budget, and this test adds it up: `ci/steps.toml` has the steps of `.ci/run`, and
//! `ci/areas.toml` what only a change of certain files can break. Each file is in an area, and a change of one file costs no
//! more than the budget, but for the files of an area that the table names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use toml::{Table, Value};

use crate::root;

/// What one table of these files says.
struct Step {
    name: String,
    lane: String,
    core_seconds: i64,
    run: String,
}

impl Step {
    fn new(name: &str, table: &Value) -> Self {
        let text = |key: &str| table[key].as_str().unwrap_or_else(|| panic!("{key} of {name}"));
        let core_seconds = table["core_seconds"].as_integer().expect("a number");
        assert!(core_seconds > 0, "{name}");
        Self {
            name: name.to_owned(),
            lane: text("lane").to_owned(),
            core_seconds,
            run: text("run").to_owned(),
        }
    }
}

fn table(name: &str) -> Table {
    let text = fs::read_to_string(root().join(name)).expect("a table of ci");
    text.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The steps of a tier: `always`, or `turn`.
fn tier(name: &str) -> Vec<Step> {
    let steps = table("ci/steps.toml");
    let steps = steps[name].as_array().expect("tables");
    steps.iter().map(|step| Step::new(step["name"].as_str().expect("a name"), step)).collect()
}

fn areas() -> Vec<Step> {
    let areas = table("ci/areas.toml");
    let areas = areas["area"].as_table().expect("tables");
    areas.iter().map(|(name, area)| Step::new(name, area)).collect()
}

/// What `ci/area.sh` prints, line by line; `None` where there is no shell or no repository.
fn area_script(arguments: &[&str]) -> Option<Vec<String>> {
    if !root().join(".git").exists() {
        return None;
    }
    let script = root().join("ci/area.sh");
    let output = Command::new("bash").arg(script).args(arguments).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// A change of any one file costs at most what a landing may: every step that always runs, the dearest of those that take
/// turns, and the areas that name the file.
#[test]
fn a_change_of_one_file_is_within_the_budget() {
    let budget = &table("ci/steps.toml")["budget"];
    let allowed = budget["core_seconds"].as_integer().expect("a number");
    let dear = budget["dear"].as_array().expect("areas");
    let is_dear = |names: &[String]| {
        dear.iter().any(|one| names.iter().any(|name| one.as_str() == Some(name)))
    };
    let always: i64 = tier("always").iter().map(|step| step.core_seconds).sum();
    let turn = tier("turn").iter().map(|step| step.core_seconds).max().expect("there is one");
    let mut of_files: BTreeMap<String, (i64, Vec<String>)> = BTreeMap::new();
    for area in areas() {
        let Some(files) = area_script(&["--files", &area.name]) else { return };
        assert!(!files.is_empty(), "{} has no files", area.name);
        for file in files.into_iter().collect::<BTreeSet<_>>() {
            let (cost, names) = of_files.entry(file).or_default();
            *cost += area.core_seconds;
            names.push(area.name.clone());
        }
    }
    let too_dear = of_files
        .iter()
        .filter(|(_, (cost, names))| always + turn + cost > allowed && !is_dear(names));
    let too_dear: Vec<_> =
        too_dear.map(|(file, (cost, names))| format!("{file}: {cost} for {names:?}")).collect();
    assert!(
        too_dear.is_empty(),
        "{always} core-seconds always and {turn} in turn leave too little of {allowed} for\n{}",
        too_dear.join("\n")
    );
}

/// Where everything runs at once, as on a new machine with no record, `.ci/run` still ends.
#[test]
fn everything_at_once_is_within_the_time_of_a_run() {
    let allowed = table("ci/steps.toml")["budget"]["everything"].as_integer().expect("a number");
    let steps = [tier("always"), areas()].into_iter().flatten();
    let sum: i64 = steps.map(|step| step.core_seconds).sum();
    let turn = tier("turn").iter().map(|step| step.core_seconds).max().expect("there is one");
    assert!(sum + turn <= allowed, "{} core-seconds, of {allowed}", sum + turn);
}

/// A file that no area names would make each of them run.
#[test]
fn each_file_is_in_an_area() {
    let unnamed = area_script(&["--unnamed"]).unwrap_or_default();
    assert!(unnamed.is_empty(), "name these in ci/areas.toml: {unnamed:?}");
}

/// Each command that is a script is there, each step has a lane of `.ci/run`, and each record is one of an area.
#[test]
fn the_tables_name_what_there_is() {
    let areas = areas();
    for step in tier("always").iter().chain(&tier("turn")).chain(&areas) {
        let script = step.run.split(' ').find(|word| word.starts_with("ci/"));
        if let Some(script) = script {
            assert!(root().join(script).is_file(), "{}: {script}", step.name);
        }
        assert!(["first", "1", "2"].contains(&&*step.lane), "{}: {}", step.name, step.lane);
    }
    for record in fs::read_dir(root().join("ci/passed")).into_iter().flatten().flatten() {
        let name = record.file_name().to_string_lossy().into_owned();
        assert!(areas.iter().any(|area| area.name == name), "ci/passed/{name} is of no area");
    }
}
