//! Splits an expression into tokens.

use super::NotAFilter;
use std::ops::Range;

/// A token, and the characters it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) what: What,
    pub(super) columns: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A keyword, a name, a number, an address.
    Word(String),
    /// One of `( ) [ ] : ! / + - * % & | ^ < > = <= >= == != << >> && ||`.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// Most tokens of an expression, so that no expression is too deep to walk through.
const PIECES: usize = 4_000;

const SIGNS: [&str; 25] = [
    "<=", ">=", "==", "!=", "<<", ">>", "&&", "||", "(", ")", "[", "]", ":", "!", "/", "+", "-",
    "*", "%", "&", "|", "^", "<", ">", "=",
];

/// The tokens, with [`What::End`] as the last.
pub(super) fn split(text: &str) -> Result<Vec<Token>, NotAFilter> {
    let letters: Vec<char> = text.chars().collect();
    let refuse = |columns: Range<usize>, message: &str| NotAFilter {
        text: text.to_owned(),
        columns,
        message: message.to_owned(),
    };
    let mut tokens = Vec::new();
    let mut brackets = 0usize;
    let mut at = 0;
    while at < letters.len() {
        if letters[at].is_whitespace() {
            at += 1;
            continue;
        }
        // A backslash turns a keyword into a name: `proto \tcp`.
        let start = at;
        if letters[at] == '\\' {
            at += 1;
        }
        let word = at + word_length(&letters[at..], brackets > 0);
        let what = if word > at {
            let word: String = letters[at..word].iter().collect();
            at += word.chars().count();
            What::Word(word)
        } else {
            let starts = |sign: &&&str| {
                sign.chars().enumerate().all(|(i, c)| letters.get(at + i) == Some(&c))
            };
            let Some(sign) = SIGNS.iter().find(starts).filter(|_| at == start) else {
                return Err(refuse(at..at + 1, "this is no part of an expression"));
            };
            at += sign.len();
            match *sign {
                "[" => brackets += 1,
                "]" => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            What::Sign(sign)
        };
        tokens.push(Token { what, columns: start..at });
        if tokens.len() > PIECES {
            return Err(refuse(start..at, "the expression is too long"));
        }
    }
    tokens.push(Token { what: What::End, columns: letters.len()..letters.len() });
    Ok(tokens)
}

/// The length of the word at the start of `letters`. Colons belong to addresses, but not inside
/// brackets. Hyphens belong to names, but not before a number.
fn word_length(letters: &[char], in_brackets: bool) -> usize {
    let is_name = letters.first().is_some_and(char::is_ascii_alphabetic);
    let mut length = 0;
    while let Some(&letter) = letters.get(length) {
        let next = letters.get(length + 1);
        let belongs = letter.is_ascii_alphanumeric()
            || letter == '_'
            || letter == '.'
            || (letter == ':' && !in_brackets)
            || (letter == '-' && is_name && next.is_some_and(char::is_ascii_alphabetic));
        if !belongs {
            break;
        }
        length += 1;
    }
    length
}
