//! `-i` and `-D`: an interface in place of a capture.

use super::{
    Args, End,
    beat::{Beat, WAIT},
    signals::Signals,
};
use crate::{saved::rotate::Rotation, show};
use sidon_traffic::{Engine, live};
use std::{
    fmt::Write,
    time::{Duration, Instant},
};

/// Frames between two looks at clocks and signals, while there are frames.
const STRIDE: u64 = 1 << 10;
/// How long frames are still read that came before the end was asked for.
const LAST: Duration = Duration::from_millis(250);

/// The interfaces, one a line.
pub(super) fn list() -> anyhow::Result<()> {
    let mut text = String::new();
    for interface in live::interfaces()? {
        let link = interface.link.map_or("not decoded here".to_owned(), |link| link.to_string());
        let state = if interface.up { "up" } else { "down" };
        let _ = writeln!(text, "{}.{} {state}, {link}", interface.index, interface.name);
    }
    show::print(text.trim_end())
}

/// Reads an interface until something ends it.
pub(super) fn watch(
    args: &Args,
    live: &mut live::Live,
    engine: &mut Engine,
    signals: &Signals,
    mut rotation: Option<&mut Rotation>,
) -> anyhow::Result<End> {
    let limit = args.count.unwrap_or(u64::MAX);
    let mut beat = Beat::new(args, signals);
    let end = loop {
        let before = rotation.as_ref().map_or(0, |rotation| rotation.seen);
        let seen = before + engine.ledger().seen;
        if seen >= limit {
            break End::Enough;
        }
        let idle = match live.next(WAIT) {
            Ok(Some(frame)) => {
                if let Some(rotation) = &mut rotation {
                    rotation.at(frame.time_ns, engine)?;
                }
                engine.frame(&frame);
                false
            }
            Ok(None) => {
                if let Some(rotation) = &mut rotation {
                    rotation.now(engine)?;
                }
                true
            }
            Err(why) => break End::Down(why),
        };
        if (idle || seen.is_multiple_of(STRIDE))
            && let Some(end) = beat.beat(engine, || live.counters().list())?
        {
            break end;
        }
    };
    beat.clear()?;
    if matches!(end, End::Interrupted) {
        let start = Instant::now();
        let before = rotation.as_ref().map_or(0, |rotation| rotation.seen);
        while start.elapsed() < LAST && before + engine.ledger().seen < limit {
            match live.next(WAIT) {
                Ok(Some(frame)) => engine.frame(&frame),
                _ => break,
            }
        }
    }
    engine.note_source(live.counters().list());
    Ok(end)
}
