//! Saved bytes of every structure: read, used, written back, read again and compared.
//!
//! The input is a saved file. Its header and checksum are put right, so that the fuzzer's changes
//! reach the fields and the payload. The last four bytes, where the checksum goes, choose the
//! operations.
#![no_main]

#[path = "../../crates/sidon/tests/suite/operate/mod.rs"]
mod operate;

#[path = "images/addresses.rs"]
mod addresses;

use libfuzzer_sys::fuzz_target;
use operate::{Draw, Operate, SEED, is_read_back, sequence};
use sidon::{
    saved::Save,
    count::{Distinct, FanOut, Min, Periods, Prefixes, Top},
    decide::Suspects,
    set::{Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Multilayer, Variable},
    state::{Direct, Fingerprint, Stateful},
    zone::{Adaptive, Any, Filter, Hosts, Sketch, Subnets},
};
use sidon_fuzz::saved;
use sidon_kit::Rng;
use sidon_traffic::monitor::addresses::Addresses;

/// The largest input: shapes stay small, and so does the time of one input.
const MOST: usize = 2048;

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let (Some(kind), Some(tail)) = (bytes.get(6..8), bytes.last_chunk::<4>()) else { return };
    let mut rng = Rng::seeded(u32::from_le_bytes(*tail).into());
    let kind = u16::from_le_bytes([kind[0], kind[1]]);
    let is_zone = matches!(
        kind,
        Filter::<Any>::KIND | Sketch::<Any>::KIND | Adaptive::KIND | Hosts::KIND
    );
    let check = if is_zone { saved::no_seed() } else { SEED.check_value() };
    if bytes.len() > MOST {
        return;
    }
    let Some(bytes) = saved::repaired(bytes, 16, check) else { return };
    let draw: &mut Draw<'_> = &mut |bound| rng.below(bound);
    match kind {
        Bloom::KIND => used::<Bloom>(&bytes, draw),
        Blocked::KIND => used::<Blocked>(&bytes, draw),
        Counting::KIND => used::<Counting>(&bytes, draw),
        DLeft::KIND => used::<DLeft>(&bytes, draw),
        Variable::KIND => used::<Variable>(&bytes, draw),
        Bh::KIND => used::<Bh>(&bytes, draw),
        Multilayer::KIND => used::<Multilayer>(&bytes, draw),
        Filter::<Any>::KIND => used::<Filter<Any>>(&bytes, draw),
        Sketch::<Any>::KIND => used::<Sketch<Any>>(&bytes, draw),
        Adaptive::KIND => used::<Adaptive>(&bytes, draw),
        Min::KIND => used::<Min>(&bytes, draw),
        <Top<[u8; 4], 2>>::KIND => used::<Top<[u8; 4], 2>>(&bytes, draw),
        Direct::KIND => used::<Direct>(&bytes, draw),
        Stateful::KIND => used::<Stateful>(&bytes, draw),
        Fingerprint::KIND => used::<Fingerprint>(&bytes, draw),
        Subnets::KIND => used::<Subnets>(&bytes, draw),
        Addresses::KIND => used::<Addresses>(&bytes, draw),
        Backyard::KIND => used::<Backyard>(&bytes, draw),
        Elastic::KIND => used::<Elastic>(&bytes, draw),
        Prefixes::<2>::KIND => used::<Prefixes<2>>(&bytes, draw),
        Hosts::KIND => used::<Hosts>(&bytes, draw),
        Distinct::KIND => used::<Distinct>(&bytes, draw),
        <FanOut<[u8; 4]>>::KIND => used::<FanOut<[u8; 4]>>(&bytes, draw),
        <Suspects<[u8; 4]>>::KIND => used::<Suspects<[u8; 4]>>(&bytes, draw),
        <Periods<[u8; 4]>>::KIND => used::<Periods<[u8; 4]>>(&bytes, draw),
        _ => {}
    }
});

/// Reads the bytes. If they are accepted, performs operations on the structure and on one of the
/// same shape, merges of the two included. All bytes that these write must be read back.
fn used<S: Operate>(bytes: &[u8], draw: &mut Draw<'_>) {
    let Ok(read) = S::from_bytes(bytes, SEED) else { return };
    assert!(read.to_bytes() == bytes, "accepted, but written otherwise");
    let Ok(other) = S::from_bytes(bytes, SEED) else { panic!("accepted once and then refused") };
    let mut pair = [read, other];
    sequence(&mut pair, 5, draw);
    pair.iter().for_each(|one| drop(is_read_back(one)));
}

/// Structures of every kind, empty and after some operations; the golden files.
fn seeds() -> Vec<Vec<u8>> {
    fn of<S: Operate>(seeds: &mut Vec<Vec<u8>>) {
        let mut rng = Rng::seeded(S::KIND.into());
        let draw: &mut Draw<'_> = &mut |bound| rng.below(bound);
        for _ in 0..12 {
            let Ok(first) = S::fresh(draw) else { continue };
            let mut pair = [is_read_back(&first), first];
            for _ in 0..2 {
                seeds.push(pair[0].to_bytes());
                sequence(&mut pair, 30, draw);
            }
        }
    }
    let goldens = sidon_fuzz::folder("crates/sidon/tests/golden");
    let mut seeds = sidon_fuzz::files(&goldens, MOST as u64, &|_| true);
    of::<Bloom>(&mut seeds);
    of::<Blocked>(&mut seeds);
    of::<Counting>(&mut seeds);
    of::<DLeft>(&mut seeds);
    of::<Variable>(&mut seeds);
    of::<Bh>(&mut seeds);
    of::<Multilayer>(&mut seeds);
    of::<Filter<Any>>(&mut seeds);
    of::<Sketch<Any>>(&mut seeds);
    of::<Adaptive>(&mut seeds);
    of::<Min>(&mut seeds);
    of::<Top<[u8; 4], 2>>(&mut seeds);
    of::<Direct>(&mut seeds);
    of::<Stateful>(&mut seeds);
    of::<Fingerprint>(&mut seeds);
    of::<Subnets>(&mut seeds);
    of::<Addresses>(&mut seeds);
    of::<Backyard>(&mut seeds);
    of::<Elastic>(&mut seeds);
    of::<Prefixes<2>>(&mut seeds);
    of::<Hosts>(&mut seeds);
    of::<Distinct>(&mut seeds);
    of::<FanOut<[u8; 4]>>(&mut seeds);
    of::<Suspects<[u8; 4]>>(&mut seeds);
    of::<Periods<[u8; 4]>>(&mut seeds);
    seeds.retain(|seed| seed.len() <= MOST);
    seeds
}
