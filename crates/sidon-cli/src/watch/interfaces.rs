//! `-D`: the interfaces of this machine.

use crate::show;
use sidon_traffic::live;
use std::fmt::Write;

/// Prints one line for each interface.
pub(super) fn list() -> anyhow::Result<()> {
    let mut text = String::new();
    for interface in live::interfaces()? {
        let link = interface.link.map_or("not supported".to_owned(), |link| link.to_string());
        let state = if interface.up { "up" } else { "down" };
        let _ = writeln!(
            text,
            "{}.{} {state}, {link}",
            interface.index,
            show::printable(&interface.name)
        );
    }
    show::print(text.trim_end())
}
