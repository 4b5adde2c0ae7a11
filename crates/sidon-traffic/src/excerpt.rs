//! The part of a text that an error message shows: bounded, whatever the length of the text.
//!
//! ```text
//! .. and tcp port 80 and host 10.0.0.256 and udp port ..
//!                             ^^^^^^^^^^
//! ```
//! Error messages quote a line with [`excerpt`] and a name with [`word`]. Their length is then
//! bounded, and stays below the formatter's limit of 65,535 columns.

use std::{borrow::Cow, ops::Range};

/// The most characters of a line that are shown.
const WIDTH: usize = 100;
/// Characters shown before the part at fault, if the line must be cut there.
const BEFORE: usize = 40;
/// The most characters of a word.
const WORD: usize = 60;
/// The mark of a cut.
const CUT: &str = "..";

/// Two lines: the part of `line` around `columns`, and carets under these characters, which are
/// counted from 0. Control characters become spaces, so that carets stay below their characters.
pub fn excerpt(line: &str, columns: Range<usize>) -> String {
    let is_long = line.chars().nth(WIDTH).is_some();
    let from = if is_long { columns.start.saturating_sub(BEFORE) } else { 0 };
    let mut rest = line.chars().skip(from);
    let shown: String =
        rest.by_ref().take(WIDTH).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let (before, after) =
        (if from > 0 { CUT } else { "" }, if rest.next().is_some() { CUT } else { "" });
    let start = before.len() + (columns.start - from).min(WIDTH);
    let longest = (before.len() + shown.chars().count()).saturating_sub(start).max(1);
    let carets = columns.len().clamp(1, longest);
    let (space, carets) = (" ".repeat(start), "^".repeat(carets));
    format!("{before}{shown}{after}\n{space}{carets}")
}

/// The word, cut if it is longer than 60 characters.
pub fn word(word: &str) -> Cow<'_, str> {
    match word.char_indices().nth(WORD) {
        Some((end, _)) => Cow::Owned(format!("{}{CUT}", &word[..end])),
        None => Cow::Borrowed(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters above the carets, by the width of one column each.
    fn marked(excerpt: &str) -> String {
        let (shown, carets) = excerpt.split_once('\n').unwrap();
        let at = carets.find('^').unwrap();
        shown.chars().skip(at).take(carets.len() - at).collect()
    }

    #[test]
    fn short_lines_are_shown_whole() {
        assert_eq!(excerpt("tcp prot 80", 4..8), "tcp prot 80\n    ^^^^");
        assert_eq!(excerpt("tcp", 3..3), "tcp\n   ^");
        assert_eq!(excerpt("", 0..0), "\n^");
        assert_eq!(excerpt("é\tü\u{1b}x", 2..3), "é ü x\n  ^");
        assert_eq!(word("port"), "port");
    }

    #[test]
    fn a_line_of_any_length_is_cut_around_the_fault() {
        for letter in ['a', 'é', '\u{1f600}'] {
            for length in [99, 100, 101, 140, 141, 65_535, 65_536, 200_000] {
                for at in [0, 39, 40, 41, 100, length / 2, length - 1] {
                    let at = at.min(length - 1);
                    let mut letters = vec![letter; length];
                    letters[at] = '#';
                    let line: String = letters.iter().collect();
                    let one = excerpt(&line, at..at + 1);
                    assert_eq!(marked(&one), "#", "{length} {at}");
                    assert!(one.lines().all(|line| line.chars().count() <= WIDTH + 4), "{one}");
                    // A fault up to the end, and one behind it.
                    let long = excerpt(&line, at..length);
                    assert!(marked(&long).starts_with('#'), "{length} {at}");
                    excerpt(&line, length..length);
                    excerpt(&line, 0..usize::MAX);
                    excerpt(&line, usize::MAX..usize::MAX);
                }
            }
        }
        assert_eq!(word(&"ü".repeat(100_000)).chars().count(), WORD + 2);
    }
}
