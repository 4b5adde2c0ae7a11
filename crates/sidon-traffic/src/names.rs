//! Names that were written to a file, as names that last.
//!
//! Ledgers and alarms name what they count by literals. A name that is read back is looked for among
//! those that were read before, and kept if it is new; how many can be kept is limited, so that no
//! file makes the program grow.

use std::{
    collections::HashSet,
    sync::{Mutex, OnceLock},
};

/// Names that are kept at the most, and the length of one.
const NAMES: usize = 4_096;
const LENGTH: usize = 48;

/// The name that lasts, `None` if the text is none: lower-case letters, digits and underscores.
pub(crate) fn lasting(text: &str) -> Option<&'static str> {
    static KEPT: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if text.is_empty() || text.len() > LENGTH || !text.bytes().all(fits) {
        return None;
    }
    let mut kept = KEPT.get_or_init(Mutex::default).lock().ok()?;
    if let Some(name) = kept.get(text) {
        return Some(name);
    }
    if kept.len() == NAMES {
        return None;
    }
    let name: &'static str = Box::leak(text.into());
    kept.insert(name);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_no_other_text_is_one() {
        let (one, two) = (lasting("sources_v4").unwrap(), lasting("sources_v4").unwrap());
        assert_eq!((one, one.as_ptr()), ("sources_v4", two.as_ptr()));
        for text in ["", "Sources", "a b", "é", &"x".repeat(49)] {
            assert_eq!(lasting(text), None, "{text}");
        }
    }
}
