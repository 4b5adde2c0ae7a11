//! The law of saved bytes, on every structure. After any sequence of accepted operations the bytes are
//! read back, and give a structure of equal bytes and answers.
//!
//! Operations include the removal of keys that were never inserted and yet pass.

use crate::operate::{Draw, Operate, SEED, is_read_back, sequence};
use sidon::{
    count::{Distinct, FanOut, Min, Periods, Prefixes, Top},
    decide::Suspects,
    saved::Save,
    set::{Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Multilayer, Variable},
    state::{Direct, Fingerprint, Stateful},
    zone::{Adaptive, Any, Filter, Hosts, Sketch, Subnets},
};
use sidon_kit::Rng;

/// Random sequences, each on a pair of structures of a random shape.
fn law<S: Operate>() {
    for seed in 0..crate::size(40_000, 2_000) {
        let mut rng = Rng::seeded(seed << 16 | u64::from(S::KIND));
        let draw: &mut Draw<'_> = &mut |bound| rng.below(bound);
        let Ok(first) = S::fresh(draw) else { continue };
        // Its bytes give a second structure of the same shape.
        let mut pair = [is_read_back(&first), first];
        let steps = 6 + draw(8);
        for _ in 0..4 {
            sequence(&mut pair, steps, draw);
            // One goes on as it is, the other as it was read back.
            is_read_back(&pair[0]);
            pair[1] = is_read_back(&pair[1]);
        }
    }
}

/// Changes bytes behind the header and repairs the checksum. If a reader accepts the result, it writes
/// the same bytes back, and the law holds for all operations on it.
fn accepted<S: Operate>() {
    let (mut accepted, rounds) = (0, crate::size(100_000, 4_000));
    for seed in 0..rounds {
        let mut rng = Rng::seeded(1 << 40 | seed << 16 | u64::from(S::KIND));
        let draw: &mut Draw<'_> = &mut |bound| rng.below(bound);
        let Ok(first) = S::fresh(draw) else { continue };
        let mut pair = [is_read_back(&first), first];
        let steps = draw(16);
        sequence(&mut pair, steps, draw);
        let mut bytes = pair[0].to_bytes();
        for _ in 0..=draw(2) {
            damage(&mut bytes, draw);
        }
        let body = bytes.len() - 4;
        let checksum = crc32fast::hash(&bytes[..body]).to_le_bytes();
        bytes[body..].copy_from_slice(&checksum);
        if let Ok(read) = S::from_bytes(&bytes, SEED) {
            assert!(read.to_bytes() == bytes, "accepted, but written otherwise");
            accepted += 1;
            let other = is_read_back(&read);
            pair = [read, other];
            sequence(&mut pair, 12, draw);
            pair.iter().for_each(|one| drop(is_read_back(one)));
        }
    }
    assert!(accepted > rounds / 100, "{accepted} of {rounds} accepted");
}

/// Changes a byte behind the header: to a neighbour, to an end of its range, or to any value.
fn damage(bytes: &mut [u8], draw: &mut Draw<'_>) {
    let at = 32 + draw(bytes.len() as u64 - 36) as usize;
    bytes[at] = match draw(5) {
        0 => 0,
        1 => 0xff,
        2 => bytes[at].wrapping_add(1),
        3 => bytes[at].wrapping_sub(1),
        _ => draw(256) as u8,
    };
}

macro_rules! laws {
    ($($name:ident: $structure:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn whatever_was_done_is_read_back() {
                law::<$structure>();
            }

            #[test]
            fn whatever_is_accepted_can_be_used_and_is_read_back() {
                accepted::<$structure>();
            }
        }
    )*};
}

laws! {
    bloom: Bloom;
    blocked: Blocked;
    counting: Counting;
    dleft: DLeft;
    variable: Variable;
    bh: Bh;
    multilayer: Multilayer;
    filter: Filter<Any>;
    sketch: Sketch<Any>;
    adaptive: Adaptive;
    min: Min;
    top: Top<[u8; 4], 2>;
    direct: Direct;
    stateful: Stateful;
    fingerprint: Fingerprint;
    subnets: Subnets;
    backyard: Backyard;
    hosts: Hosts;
    elastic: Elastic;
    distinct: Distinct;
    fan_out: FanOut<[u8; 4]>;
    prefixes: Prefixes<2>;
    suspects: Suspects<[u8; 4]>;
    periods: Periods<[u8; 4]>;
}

/// A new kind must be added above. Kinds 17 and 18 belong to another crate.
#[test]
fn every_kind_is_here() {
    let kinds = [
        Bloom::KIND,
        Blocked::KIND,
        Counting::KIND,
        DLeft::KIND,
        Variable::KIND,
        Bh::KIND,
        Multilayer::KIND,
        Filter::<Any>::KIND,
        Sketch::<Any>::KIND,
        Adaptive::KIND,
        Min::KIND,
        <Top<[u8; 4], 2>>::KIND,
        Direct::KIND,
        Stateful::KIND,
        Fingerprint::KIND,
        Subnets::KIND,
    ];
    assert!(kinds.into_iter().eq(1..=16));
    assert_eq!([Backyard::KIND, Hosts::KIND, Elastic::KIND], [19, 20, 22]);
    assert_eq!([Distinct::KIND, <FanOut<[u8; 4]>>::KIND, Prefixes::<2>::KIND], [23, 24, 27]);
    assert_eq!([<Suspects<[u8; 4]>>::KIND, <Periods<[u8; 4]>>::KIND], [25, 26]);
}
