//! Names read from a file, as `&'static str`.
//!
//! Ledgers and alarms name their counts by literals. A name read from a file is looked up among the
//! names read before, and stored if it is new. At most `NAMES` names are stored, so that no file
//! makes memory grow.

use std::{
    collections::HashSet,
    sync::{Mutex, OnceLock},
};

/// The most names that are stored, and the most bytes of a name.
const NAMES: usize = 4_096;
const LENGTH: usize = 48;

/// The stored name. `None` if `text` is not a name of lower-case letters, digits and underscores,
/// or if the table is full.
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
