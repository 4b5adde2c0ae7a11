//! A connection tracker: the state of every connection, without its addresses, with ageing.
//!
//!     cargo run -p sidon --example connections
//!
//! A table of states and events decides. A connection that is silent for two minutes has expired,
//! however rare packets are.

use sidon::{
    Digest, Key, Lookup, Seed,
    key::Hasher,
    plan::{Prefer, States, fingerprint},
    state::{Clock, Fingerprint, Machine, Rule},
};
use std::{error::Error, net::SocketAddr};

struct Connection {
    client: SocketAddr,
    server: SocketAddr,
}

impl Key for Connection {
    fn digest_with<H: Hasher>(&self, hasher: H) -> Digest {
        (self.client, self.server).digest_with(hasher)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Machine::new(
        &["opening", "open", "closing", "closed"],
        &["closed"], // a connection that reaches this state is removed
        &[
            ("syn", &[Rule::Open("opening")]),
            ("ack", &[Rule::If("opening", "open"), Rule::If("closing", "closed")]),
            ("fin", &[Rule::Go("closing")]),
            ("rst", &[Rule::Go("closed")]),
        ],
    )?;
    let states = machine.states().len() as u32;
    let shape = fingerprint::shape(States { flows: 100_000, states, error: 1e-6 }, Prefer::Speed)?;
    let map = Fingerprint::new(shape, Seed::random()?)?;
    let mut tracker = Clock::new(map, 60); // seconds

    let packets = "0 1 syn, 1 1 ack, 2 2 syn, 3 3 ack, 55 1 fin, 56 1 ack, 80 4 syn, 125 2 ack";
    for packet in packets.split(", ") {
        let [time, client, event] = packet.split(' ').collect::<Vec<_>>()[..] else { continue };
        let client: SocketAddr = format!("10.0.0.{client}:40000").parse()?;
        let connection = Connection { client, server: "192.0.2.1:443".parse()? };
        let number = machine.event(event).ok_or("no such event")?;
        let map = tracker.at(time.parse()?);
        let before = map.transition(&connection, |now| machine.next(now, number))?;
        let [before, after] = [before, map.lookup(&connection)].map(|answer| match answer {
            Lookup::State(state) => &machine.states()[usize::from(state)],
            Lookup::Absent => "absent",
            Lookup::DontKnow => "unknown",
        });
        println!("{time:>3} s: {client} {event}: {before} -> {after}");
    }
    println!("{} connection is stored", tracker.map().len());
    println!("the state of one that was never opened is {}", tracker.map().certainty());
    Ok(())
}
