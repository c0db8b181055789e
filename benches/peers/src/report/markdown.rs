//! Markdown.

/// A table; the first column is text, the others are numbers.
pub(super) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<_> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|---|{}\n", "--:|".repeat(head.len() - 1));
    line(&head) + &rule + &rows.into_iter().map(|row| line(&row)).collect::<String>()
}
