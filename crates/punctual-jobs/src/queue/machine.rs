//! What a machine calls itself where a person reads it: in the list of jobs.

/// Returns the host and the number of the process, without white space: `web-1:4711`.
pub(crate) fn name_of_this() -> String {
    format!("{}:{}", without_space(&host()), std::process::id())
}

/// The length of a name is limited because each row of a claim has one.
const LONGEST: usize = 128;

/// Returns the first characters of the name, with each white space and control character replaced: in the tables a space ends it.
pub(crate) fn without_space(name: &str) -> String {
    let replaced = |letter: char| letter.is_whitespace() || letter.is_control();
    let name: String =
        name.chars().take(LONGEST).map(|it| if replaced(it) { '_' } else { it }).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

fn host() -> String {
    #[cfg(all(target_os = "linux", feature = "gate"))]
    if let Ok(name) = rustix::system::uname().nodename().to_str() {
        return name.to_owned();
    }
    let named = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    named.unwrap_or_else(|| "host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_space_and_is_not_empty() {
        assert_eq!(without_space("a b\tc\0"), "a_b_c_");
        assert_eq!(without_space(""), "unnamed");
        assert_eq!(without_space(&"é".repeat(1 << 20)).chars().count(), LONGEST);
        assert!(name_of_this().ends_with(&format!(":{}", std::process::id())));
    }
}
