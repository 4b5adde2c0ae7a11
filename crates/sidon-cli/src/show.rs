//! Numbers, tables, texts and JSON, printed alike by every command.
//!
//! Everything that a command prints passes through [`print()`], [`print_json`], [`say`] or [`note`]. They
//! escape characters that a terminal would act on. Names of files and other texts of users
//! pass through [`path`] or [`printable`] before that, which also escape line feeds.

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use sidon_traffic::{figure::CEILING, text};
use std::{
    fmt,
    io::{self, ErrorKind, IsTerminal, Write},
};

pub(crate) use sidon_traffic::{
    figure::grouped as whole,
    text::{path, printable},
};

/// A space at which tables and folded texts do not break a line. They print it as a plain space.
pub(crate) const NO_BREAK: &str = "\u{a0}";
/// The marks of figures.
const MARKS: [&str; 5] = ["=", "<=", ">=", "~", "?"];
/// Columns between two cells of a table.
const GAP: usize = 2;

/// The width of the terminal on standard output; 80 if standard output is not a terminal.
pub(crate) fn width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(80, |(columns, _)| usize::from(columns.0).max(40))
}

/// The height of the terminal on standard output, if it is a terminal.
pub(crate) fn height() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(_, rows)| rows.0.into())
}

/// A table as wide as the terminal. Columns of numbers are aligned to the right, others to the left.
///
/// If a row is too long, its last cells move below it, each with the head of its column.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    table_within(width(), head, &rows)
}

fn table_within(width: usize, head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |i: usize| rows.iter().map(move |row| row.get(i).map_or("", String::as_str));
    let body: Vec<usize> =
        (0..head.len()).map(|i| cells(i).map(length).max().unwrap_or(0)).collect();
    let fits = |widths: &[usize]| {
        let all = widths.iter().scan(0, |end, width| {
            *end += width + GAP;
            Some(*end - GAP)
        });
        all.take_while(|end| *end <= width).count()
    };
    // A head may take one line per word.
    let word = |text: &str| text.split(' ').map(length).max().unwrap_or(0);
    let whole_head: Vec<_> =
        head.iter().zip(&body).map(|(head, body)| length(head).max(*body)).collect();
    let broken_head: Vec<_> =
        head.iter().zip(&body).map(|(head, body)| word(head).max(*body)).collect();
    let widths = if fits(&whole_head) == head.len() { whole_head } else { broken_head };
    let kept = fits(&widths).max(1);

    // A number may have a unit: `1.71 MiB`, `+44 %`. The id `002.bf.base` is not a number.
    let is_number = |cell: &str| {
        let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
        unit.len() <= 3 && number.replace(',', "").parse::<f64>().is_ok()
    };
    let right: Vec<bool> = (0..head.len())
        .map(|i| {
            let mut filled = cells(i).filter(|cell| !["", "-"].contains(cell)).peekable();
            filled.peek().is_some() && filled.all(is_number)
        })
        .collect();
    let line = |cells: &[&str]| {
        let mut line = String::new();
        let places = cells.iter().zip(&widths).zip(&right).take(kept);
        for (place, ((cell, &width), &right)) in places.enumerate() {
            let padding = width.saturating_sub(length(cell));
            line += &" ".repeat(if right { padding } else { 0 });
            line += cell;
            // A column that is too wide for the terminal is the only one: it is not filled up.
            let is_last = place + 1 == kept;
            line += &" ".repeat(if right || is_last { 0 } else { padding });
            line += &" ".repeat(if is_last { 0 } else { GAP });
        }
        line.trim_end().to_owned()
    };
    let heads: Vec<Vec<String>> =
        head.iter().zip(&widths).map(|(head, &width)| wrapped(head, width)).collect();
    let tallest = heads.iter().take(kept).map(Vec::len).max().unwrap_or(0);
    let mut lines = Vec::new();
    for above in (0..tallest).rev() {
        let part = |head: &'_ Vec<String>| {
            head.len().checked_sub(above + 1).map_or("", |i| head[i].as_str()).to_owned()
        };
        let parts: Vec<String> = heads.iter().map(part).collect();
        lines.push(line(&parts.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    for row in rows {
        lines.push(line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
        let below: Vec<_> = head
            .iter()
            .zip(row)
            .skip(kept)
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(head, cell)| format!("{head}: {cell}"))
            .collect();
        if !below.is_empty() {
            lines.push(folded_within(width, &format!("    {}", below.join("; "))));
        }
    }
    lines.join("\n").replace(NO_BREAK, " ")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The words of a text in lines of at most `width` characters. A longer word has its own line. The
/// mark of a figure stays with its number.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while MARKS.contains(&word.as_str())
            && let Some(number) = words.next()
        {
            word = format!("{word} {number}");
        }
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if length(line) + 1 + length(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The start of a text that fits one line of `width` characters: whole words, or a part of the first
/// word if it is longer. Reads no more of the text than that.
pub(crate) fn first_line(text: &str, width: usize) -> &str {
    let width = width.max(1);
    let (mut end, mut word) = (0, 0);
    let mut letters = text.char_indices().enumerate();
    let cut = loop {
        let Some((count, (at, letter))) = letters.next() else { return text };
        // The mark of a figure stays with its number.
        if letter == ' ' && !MARKS.contains(&&text[word..at]) {
            (end, word) = (at, at + 1);
        }
        if count == width {
            break at;
        }
    };
    if end > 0 { &text[..end] } else { &text[..cut] }
}

/// A text whose lines fit the terminal: the rest of a long line is indented like its start.
pub(crate) fn folded(text: &str) -> String {
    folded_within(width(), text)
}

fn folded_within(width: usize, text: &str) -> String {
    let fold = |line: &str| {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        let lines = wrapped(words, width.saturating_sub(indent.len()));
        let lines: Vec<_> = lines.iter().map(|line| format!("{indent}{line}")).collect();
        lines.join("\n")
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n").replace(NO_BREAK, " ")
}

/// Writes a message of this program to standard error.
pub(crate) fn say(message: &str) {
    note(&format!("sidon: {message}"));
}

/// Writes lines to standard error. On a terminal, they fit the width. An error is ignored: there is
/// no other place to report it.
pub(crate) fn note(lines: &str) {
    let lines = text::lines(lines);
    let _ = match terminal_size::terminal_size_of(io::stderr()) {
        Some((columns, _)) => {
            let folded = folded_within(usize::from(columns.0).max(40), &lines);
            writeln!(io::stderr().lock(), "{folded}")
        }
        None => writeln!(io::stderr().lock(), "{lines}"),
    };
}

/// Writes `{"rows": [...]}` to standard output.
pub(crate) fn json_rows(rows: Vec<Value>) -> anyhow::Result<()> {
    print_json(&json!({ "rows": rows }))
}

/// Writes a value as JSON and a line feed to standard output.
pub(crate) fn print_json(value: &Value) -> anyhow::Result<()> {
    write(&format!("{}\n", text::json(&serde_json::to_string_pretty(value)?)))
}

/// Writes a text and a line feed to standard output. On a terminal, it may have the styles of
/// [`STYLES`].
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut safe = text::lines(text).into_owned();
    if io::stdout().is_terminal() {
        for style in STYLES {
            safe = safe.replace(&*printable(style), style);
        }
    }
    safe.push('\n');
    write(&safe)
}

/// Bold, dim, and the end of both.
pub(crate) const STYLES: [&str; 3] = ["\x1b[1m", "\x1b[2m", "\x1b[0m"];

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(unwritten)
}

/// The reader of standard output closed it, as `head` does. The command ends without an error.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output was closed")
    }
}

impl std::error::Error for Closed {}

/// An error of standard output.
pub(crate) fn unwritten(why: io::Error) -> anyhow::Error {
    match why.kind() {
        ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow!("cannot write to standard output: {why}"),
    }
}

/// A progress bar on standard error, with the time left. It is hidden if standard error is not a
/// terminal.
pub(crate) fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:24} {wide_bar} {percent:>3} %  {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

/// A count in words: a lower bound if it has reached its ceiling.
pub(crate) fn count(count: u64) -> String {
    if count == CEILING { format!(">= {}", whole(count)) } else { whole(count) }
}

/// A number of bytes in the largest unit that keeps it at or above 1.
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

/// A rate: six digits after the point, or an exponent if it is below 1e-4.
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
        assert_eq!(count(7), "7");
        assert_eq!(count(u64::MAX), ">= 18,446,744,073,709,551,615");
        assert_eq!(bytes(7 << 20), "7.00 MiB");
        assert_eq!(rate(0.01), "0.010000");
        assert_eq!(rate(5e-7), "5.000e-7");
    }

    const HEAD: [&str; 4] = ["name", "false positives", "key", "shape"];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["bloom", "0.01", "[2001:db8::1]:443", "bits 9,585,059, hashes 7"]),
            row(["dleft", "12.5 %", "-", "subtables 2"]),
        ]
    }

    #[test]
    fn a_wide_terminal_has_the_whole_table() {
        let expected = "\
name   false positives  key                shape
bloom             0.01  [2001:db8::1]:443  bits 9,585,059, hashes 7
dleft           12.5 %  -                  subtables 2";
        assert_eq!(table_within(68, &HEAD, &rows()), expected);
    }

    #[test]
    fn heads_break_first_and_then_the_last_columns_move_below_their_row() {
        let expected = "
           false
name   positives  key                shape
bloom       0.01  [2001:db8::1]:443  bits 9,585,059, hashes 7
dleft     12.5 %  -                  subtables 2";
        assert_eq!(format!("\n{}", table_within(62, &HEAD, &rows())), expected);
        let expected = "
           false
name   positives  key
bloom       0.01  [2001:db8::1]:443
    shape: bits 9,585,059, hashes 7
dleft     12.5 %  -
    shape: subtables 2";
        assert_eq!(format!("\n{}", table_within(40, &HEAD, &rows())), expected);
        let narrow = table_within(20, &HEAD, &rows());
        assert!(
            narrow.contains("\n    key:\n    [2001:db8::1]:443;\n"),
            "an address is whole: {narrow}"
        );
    }

    #[test]
    fn a_first_line_has_whole_words_and_ends_at_the_width() {
        for (text, width, first) in [
            ("one two three", 7, "one two"),
            ("one two three", 6, "one"),
            ("one two three", 13, "one two three"),
            ("one >= 5 two", 6, "one"),
            ("one >= 5 two", 8, "one >= 5"),
            ("üüüüü ü", 3, "üüü"),
            ("one", 0, "o"),
            ("", 5, ""),
        ] {
            assert_eq!(first_line(text, width), first, "{text} {width}");
        }
    }

    #[test]
    fn a_long_cell_does_not_fill_up_the_others() {
        let rows: Vec<_> = ["a".to_owned(), "b".repeat(70_000)].map(|cell| vec![cell]).into();
        let text = table_within(80, &["name"], &rows);
        assert_eq!(text.len(), "name\na\n".len() + 70_000);
    }

    #[test]
    fn long_lines_fold_with_their_indent() {
        assert_eq!(folded_within(12, "  one two three\nfour"), "  one two\n  three\nfour");
        let text = format!("one two{NO_BREAK}3 four");
        assert_eq!(folded_within(9, &text), "one two 3\nfour");
        assert_eq!(folded_within(8, &text), "one\ntwo 3\nfour");
        assert_eq!(folded_within(80, "as it\n\n  is"), "as it\n\n  is");
    }
}
