//! Texts of users as a terminal may show them: names of files and interfaces, texts in saved files,
//! words of the command line.
//!
//! An escape sequence in a file name can rewrite the screen, and a character that reverses the
//! direction of writing can hide the end of a name. Such characters are printed as `\x1b`, `\n` or
//! `\u{202e}`, and bytes that are not UTF-8 as `\xff`. All others stay, in every script.

use std::{borrow::Cow, fmt::Write, path::Path};

/// Whether a terminal acts on a character instead of showing it: controls, line separators, marks
/// of direction, and characters without width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text of one line: every hidden character is escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden, escape)
}

/// A text of several lines: every hidden character is escaped, except line feeds.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && c != '\n', escape)
}

/// A JSON text of any layout with the escapes of JSON: JSON itself escapes only some controls.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| is_hidden(c) && c != '\n',
        |to, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(to, "\\u{unit:04x}");
            }
        },
    )
}

/// The name of a file.
pub fn path(path: impl AsRef<Path>) -> String {
    let mut to = String::new();
    for part in path.as_ref().as_os_str().as_encoded_bytes().utf8_chunks() {
        to.push_str(&printable(part.valid()));
        for byte in part.invalid() {
            let _ = write!(to, "\\x{byte:02x}");
        }
    }
    to
}

fn escaped(
    text: &str,
    hidden: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return text.into();
    }
    let mut to = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hidden(c) { escape(&mut to, c) } else { to.push(c) }
    }
    to.into()
}

fn escape(to: &mut String, c: char) {
    let _ = match c {
        '\n' => write!(to, "\\n"),
        '\r' => write!(to, "\\r"),
        '\t' => write!(to, "\\t"),
        '\0'..='\x7f' => write!(to, "\\x{:02x}", u32::from(c)),
        c => write!(to, "\\u{{{:x}}}", u32::from(c)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_all_scripts_stay() {
        let hostile = "a\x1b[31m\n\r\t\0\x7f\u{9b}2J\u{202e}gpj\u{2066}\u{200b}\u{feff}\u{2028}";
        assert_eq!(
            printable(hostile),
            "a\\x1b[31m\\n\\r\\t\\x00\\x7f\\u{9b}2J\\u{202e}gpj\\u{2066}\\u{200b}\\u{feff}\\u{2028}"
        );
        assert_eq!(lines("a\nb\x1b"), "a\nb\\x1b");
        for plain in ["", "straße", "数据.pcap", "данные", "שלום", "a b\\c'\"", "▁▂\u{a0}"]
        {
            assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain), "{plain}");
        }
        // All characters: none that is left is hidden.
        let all: String = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
        assert!(!printable(&all).contains(is_hidden));
        assert!(lines(&all).matches(is_hidden).eq(["\n"]));
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "\u{9b}a": ["\u{202e}\u{e0041}\x7f\n", 1] });
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let safe = json(&text);
            assert!(!safe.contains(|c| is_hidden(c) && c != '\n'), "{safe}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_have_their_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"a\xff\xe2\x28\x1bz\xc2");
        assert_eq!(path(name), "a\\xff\\xe2(\\x1bz\\xc2");
    }
}
