//! How numbers, tables and JSON are shown, the same in every subcommand.

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) use sidon_traffic::figure::grouped as whole;

/// The width of the terminal on standard output; 80 if standard output is not a terminal.
pub(crate) fn width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(80, |(columns, _)| usize::from(columns.0).max(40))
}

/// The height of the terminal on standard output, if it is a terminal.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(_, rows)| rows.0.into())
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The words of a text in lines of at most `width` characters. A longer word has its own line.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A table; columns of numbers to the right, others to the left.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    for row in &rows {
        table.add_row(row);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        // The first word decides: `1.71 MiB` is a number, the id `002.bf.base` is not.
        let word = |row: &Vec<String>| row[i].split(' ').next().unwrap_or("").replace(',', "");
        let is_number = |row: &Vec<String>| word(row).parse::<f64>().is_ok();
        if rows.iter().all(is_number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Writes `{"rows": [...]}` to standard output.
pub(crate) fn json_rows(rows: Vec<Value>) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(&json!({ "rows": rows }))?)
}

/// Writes a text and a line's end to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

/// A bar on standard error, with the time that is left; silent where that is no terminal.
pub(crate) fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{msg:24} {bar:40} {percent:>3} %  {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

/// A number of bytes in the unit that suits it.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", UNITS[unit]) }
}

/// A rate in four digits, as a power of ten where it is small.
pub(crate) fn rate(rate: f64) -> String {
    if rate == 0.0 || rate >= 1e-4 { format!("{rate:.6}") } else { format!("{rate:.3e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(whole(0), "0");
        assert_eq!(whole(999), "999");
        assert_eq!(whole(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(7 << 20), "7.00 MiB");
        assert_eq!(rate(0.01), "0.010000");
        assert_eq!(rate(5e-7), "5.000e-7");
    }
}
