//! Each function that the path of a task names is in the file that the page names. Whether a task passes it is what
//! `ci/path.sh` looks at, which shares the reading of the page and of the sources.

#[path = "../../proof/path/page.rs"]
mod page;
#[allow(dead_code, reason = "what looks for a line is for `ci/path.sh`")]
#[path = "../../proof/path/sources.rs"]
mod sources;

use sources::Sources;

#[test]
fn each_function_on_the_path_of_a_task_is_where_the_page_says() {
    let stops = page::stops(&super::page("docs/architecture.md")).expect("numbered stops");
    let sources = Sources::read(&crate::root().join("src"));
    let mut count = 0;
    for stop in &stops {
        for mention in &stop.mentions {
            count += 1;
            if let Err(fault) = sources.find(mention) {
                panic!("docs/architecture.md, stop {} ({}): {fault}", stop.number, stop.title);
            }
        }
    }
    assert!(count > 30, "{count} functions");
}

#[test]
fn each_source_that_the_architecture_names_exists() {
    let page = super::page("docs/architecture.md");
    let in_backticks = page.split('`').skip(1).step_by(2);
    let files: Vec<_> = in_backticks.filter(|name| name.ends_with(".rs")).collect();
    assert!(files.len() > 150, "{} files", files.len());
    for file in files {
        let folders = [crate::root().join("src"), crate::root().to_owned()];
        assert!(folders.iter().any(|folder| folder.join(file).is_file()), "there is no {file}");
    }
}
