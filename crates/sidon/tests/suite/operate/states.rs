//! State maps: flows begin, change, end and expire; flows that never began are changed and ended, too.

use super::{Draw, Operate, SEED, UNIVERSE, any_key, batch, keys, member, one_of, sets::moves};
use sidon::{
    Infeasible, Refused,
    internals::{Fate, Sweep},
    state::{
        Cells, Direct, Fingerprint, Map, Next, State, Stateful, direct,
        fingerprint::{self, Placing},
        stateful::{self, Keeping},
    },
};
use std::fmt::Debug;

/// A state, now and then one that the map does not have.
fn state(draw: &mut Draw<'_>, states: u32) -> State {
    let most = u64::from(states) + u64::from(draw(8) == 0);
    draw(most) as State
}

fn next(draw: &mut Draw<'_>, states: u32) -> Next<State> {
    match draw(5) {
        0 => Next::Stay,
        1 => Next::Insert(state(draw, states)),
        2 => Next::Modify(state(draw, states)),
        3 => Next::Set(state(draw, states)),
        _ => Next::Forget,
    }
}

/// The operations that all maps have.
fn operate<B: Cells>(
    map: &mut Map<B>,
    other: &Map<B>,
    states: u32,
    draw: &mut Draw<'_>,
) -> Result<(), Refused> {
    match draw(32) {
        0..10 => map.insert(&member(draw), state(draw, states)),
        10..14 => map.modify(&any_key(draw), state(draw, states)),
        14..16 => {
            let next = Next::Set(state(draw, states));
            map.transition(&any_key(draw), |_| next).map(|_| ())
        }
        16..22 => map.forget(&any_key(draw)),
        22..24 => {
            let _ = map.touch(&any_key(draw));
            Ok(())
        }
        24..28 => map.transition(&any_key(draw), |_| next(draw, states)).map(|_| ()),
        28..30 => {
            map.sweep(draw(map.units() + 1));
            Ok(())
        }
        _ => map.merge(other),
    }
}

fn lookups<B: Cells>(map: &Map<B>, keys: u64) -> Vec<sidon::Lookup<State>> {
    (0..keys).map(|key| map.lookup(&key)).collect()
}

impl Operate for Direct {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let (hashes, states) = (1 + draw(4) as u32, 1 + draw(5) as u32);
        let (counter, timed) = (1 + draw(4) as u32, draw(2) == 1);
        let shape = direct::Shape { cells: 1 + draw(40), hashes, states, counter, timed };
        let map = Direct::new(shape, SEED)?;
        if timed && draw(2) == 0 { map.with_touch_by_lookup() } else { Ok(map) }
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        let states = self.shape().states;
        match draw(10) {
            0 => self.modify_from(&any_key(draw), state(draw, states), state(draw, states)),
            1 => self.forget_from(&any_key(draw), state(draw, states)),
            _ => operate(self, other, states, draw),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        // A lookup takes as many checks as there are states.
        let keys = if self.shape().states <= 64 { UNIVERSE } else { 2 };
        (lookups(self, keys), self.stats().load, self.pair_rate())
    }
}

impl Operate for Stateful {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let counter = 2 + draw(3) as u32;
        let kinds = [Keeping::Counted(counter), Keeping::Timed, Keeping::Summed(counter)];
        let (keeping, states) = (one_of(draw, &kinds), 1 + draw(6) as u32);
        let hashes = 1 + draw(4) as u32;
        let shape = stateful::Shape { cells: 1 + draw(20), hashes, states, keeping };
        let map = Stateful::new(shape, SEED)?;
        let by_lookup = keeping == Keeping::Timed && draw(2) == 0;
        if by_lookup { map.with_touch_by_lookup() } else { Ok(map) }
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        operate(self, other, self.shape().states, draw)
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        (lookups(self, UNIVERSE), self.stats().load, self.stats())
    }
}

impl Operate for Fingerprint {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        let layouts = [(2, 24), (4, 16), (3, 24), (32, 16), (21, 24), (10, 24), (16, 32)];
        let (cells, width) = one_of(draw, &layouts);
        let (states, shared) = (1 + draw(5) as u32, 2 + draw(3) as u32);
        let independent = draw(4) == 0;
        let shape = fingerprint::Shape {
            subtables: 2 + u32::from(draw(4) == 0),
            buckets: 1 + draw(2),
            cells,
            width,
            // Short, so that flows share a fingerprint.
            remainder: 2 + draw(5) as u32,
            states,
            shared,
            placing: if independent { Placing::Independent } else { Placing::Permuted },
            moves: if independent { fingerprint::Moves::Never } else { moves(draw) },
            reinsert: draw(3) == 0,
            stash: if independent { 0 } else { draw(4) as u32 },
            growths: if independent { 0 } else { draw(2) as u32 },
            grows: draw(2) == 1,
            // Few places, so that cells are shared, too.
            listed: if draw(2) == 0 { 0 } else { draw(4) as u32 },
        };
        Fingerprint::new(shape, SEED)
    }

    fn operate(&mut self, other: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        let states = self.shape().states;
        match draw(40) {
            // Refused where the shape allows no more.
            0 => {
                let _ = if draw(2) == 0 { self.grow() } else { self.shrink() };
                Ok(())
            }
            1 => self.take_over(other, &mut |_| {}),
            2 => {
                let to = draw(self.units() + 1);
                let from = draw(to + 1);
                self.sweep_by(from, to, &mut |_| match draw(4) {
                    0 => Fate::Keep,
                    1 => Fate::Untouch,
                    2 => Fate::Become(state(draw, states)),
                    _ => Fate::Clear,
                });
                Ok(())
            }
            3..6 => {
                let keys = keys(draw, UNIVERSE);
                let change = |_: usize, _| next(draw, states);
                batch(|refused| self.transition_batch(&keys, change, refused))
            }
            _ => operate(self, other, states, draw),
        }
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn answers(&self) -> impl PartialEq + Debug {
        let stats = self.stats();
        let counts = [self.len(), stats.unknown, stats.stashed, stats.listed];
        (
            lookups(self, UNIVERSE),
            counts,
            self.census(),
            self.stats().load,
            self.certainty().error(),
        )
    }
}
