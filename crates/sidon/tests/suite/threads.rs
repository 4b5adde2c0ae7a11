//! Every public structure can be sent to another thread and shared between threads.

use sidon::internals::{Audit, Ladder};
use sidon::{
    Certainty, Digest, Estimate, Infeasible, Lookup, Malformed, Refused, Seed,
    count::{
        Bounds, Distinct, Entry, FanOut, Interval, Min, Periods, Prefix, Prefixes, Ranking,
        Regularity, Solution, Top, prefixes,
    },
    decide::{Excess, Failures, Suspects, Test},
    saved::{Parts, Writer},
    set::{
        AnySet, Backyard, Bh, Blocked, Bloom, Counting, DLeft, Elastic, Increments, Multilayer,
        Variable,
    },
    state::{Clock, Direct, Faulty, Fingerprint, Machine, Stateful},
    zone::{Adaptive, Any, Egh, Filter, Hosts, Ols, Pol, Sketch, Subnets},
};

/// Compiles for types that threads can share.
const fn shared<T: Send + Sync + 'static>() {}

macro_rules! shared {
    ($($structure:ty),* $(,)?) => {
        const _: () = { $(shared::<$structure>();)* };
    };
}
shared! {
    Seed, Digest, Certainty, Estimate, Lookup<u16>,
    Infeasible, Malformed, Refused, Faulty,
    AnySet, Bloom, Blocked, Counting, Variable, Bh, Multilayer, DLeft, Elastic, Backyard, Increments,
    Failures, Excess, Test, Suspects<u64>, Periods<u64>, Regularity,
    Min, Top<u64>, Ranking<u64, 1>, Entry<u64, 1>, Bounds, Solution,
    Distinct, FanOut<u64>, Interval,
    Prefixes<3>, Prefix, prefixes::Heavy<3>,
    Direct, Stateful, Fingerprint, Machine,
    Clock<Fingerprint>, Audit<Fingerprint, u64>,
    Egh, Ols, Pol, Any, Filter<Any>, Sketch<Any>, Adaptive, Ladder, Hosts, Subnets,
    Parts<'static>, Writer<Vec<u8>>,
}
#[cfg(feature = "serde")]
shared!(sidon::saved::Saved<std::cell::Cell<Bloom>>);

#[test]
fn threads_read_one_set_together() {
    let shape = sidon::set::bloom::Shape { bits: 10_000, hashes: 5 };
    let set = Bloom::from_keys(shape, Seed(1), 0..100u32).unwrap();
    let found = std::thread::scope(|scope| {
        let parts = [0..50u32, 50..100]
            .map(|part| scope.spawn(|| part.filter(|key| set.contains(key)).count()));
        parts.map(|part| part.join().unwrap())
    });
    assert_eq!(found, [50, 50]);
}
