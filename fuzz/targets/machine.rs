//! State machines in TOML: refused with a short error, or read, drawn, and run over packets. The
//! state of an engine with the machine is saved and read back.
#![no_main]
#![allow(dead_code)] // the reader has more than is used here

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/sidon-cli/src/machine"]
mod machine {
    mod dot;
    mod read;
    mod when;

    use read::read;
    use sidon::{Key, Lookup, state::{Fingerprint, Next}};
    use sidon_fuzz::SEED;
    use sidon_traffic::{
        Generator, Mix, Packet,
        generate::Shares,
        monitor::machine::{Definition, Runner},
    };
    use std::sync::{Arc, LazyLock};

    /// The most characters of an error.
    const MESSAGE_MAX: usize = 1000;

    pub(super) fn take(bytes: &[u8]) {
        let Ok(text) = str::from_utf8(bytes) else { return };
        let machine = match read(text) {
            Ok(machine) => machine,
            Err(why) => return assert!(why.at(text).chars().count() < MESSAGE_MAX),
        };
        assert!(dot::draw(&machine).ends_with('}'));
        let states = machine.machine.states().len();
        for event in 0..machine.machine.events().len() {
            let nows = (0..states).map(|state| Lookup::State(state as u16));
            for now in nows.chain([Lookup::Absent, Lookup::DontKnow]) {
                match machine.machine.next(now, event as u16) {
                    Next::Stay | Next::Forget => {}
                    Next::Insert(to) | Next::Modify(to) | Next::Set(to) => {
                        assert!(usize::from(to) < states);
                    }
                }
            }
        }
        match machine.definition("fuzzed".to_owned()) {
            Ok(definition) => run(Arc::new(definition), bytes),
            Err(why) => assert!(why.at(text).chars().count() < MESSAGE_MAX),
        }
    }

    /// Runs the machine over packets, through a silence, and over the packets again. Every flow
    /// that entered a state has left it or is in it. The map of flows can be saved.
    fn run(definition: Arc<Definition>, bytes: &[u8]) {
        let runner = Runner::new(Arc::clone(&definition), 8 << 10, SEED);
        let mut runner = runner.expect("an accepted machine has a map");
        let mut now = 0;
        for _ in 0..2 {
            let mut packets = PACKETS.clone();
            packets.iter_mut().for_each(|packet| packet.time_ns += now);
            let flows: Vec<_> =
                packets.iter().map(|packet| packet.flow.undirected().digest(SEED)).collect();
            runner.take(&packets, &flows);
            now += 100_000_000_000;
            runner.pass(now);
        }
        let counts = runner.counts();
        let packets: u64 = counts.events.iter().map(|(_, packets)| packets).sum();
        assert!(packets <= 2 * PACKETS.len() as u64, "a packet triggers at most one event");
        let map = runner.map().to_bytes();
        let again = Fingerprint::from_bytes(&map, SEED).expect("its own bytes are read");
        assert!(again.to_bytes() == map, "read, but written otherwise");
        if sidon_fuzz::is_rare(bytes, 32) {
            let mut engine = sidon_fuzz::engine_with(vec![definition]);
            PACKETS.iter().for_each(|packet| engine.packet(packet));
            sidon_fuzz::is_saved(engine);
        }
    }

    /// Packets of every protocol, some of which the same flow sends.
    static PACKETS: LazyLock<Vec<Packet>> = LazyLock::new(|| {
        let shares = Shares { scan: 10, ..Mix::default().shares };
        let mix = Mix { packets: 60, ipv6: 20, rate: 10, shares, ..Mix::default() };
        Generator::new(mix, 3).expect("the mix is possible").collect()
    });
}

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| machine::take(bytes));

/// The machines of the examples, and one with every word of the format.
fn seeds() -> Vec<Vec<u8>> {
    let examples = sidon_fuzz::folder("examples/machines");
    let mut seeds = sidon_fuzz::files(&examples, 2048, &|name| name.ends_with(".toml"));
    let all = r#"states = ["a", "b", "c", 'd']
terminal = ["c"]
timeouts = { a = 1, b = 86400, d = 0x10 }
[events]
first = { when = { protocol = 17, port = [53, "5000-5010"], size = "1-" }, open = "a", if = { a = "b" } }
second = { when = { source_port = "-99", direction = "responder" }, add = 1 }
third = { when = { destination_port = 443, flags = "SA", without = "FRPUEW." }, go = "c", open_new = "d" }
[events.fourth]
when = {}
if = { a = "c", b = "d" }
"#;
    seeds.push(all.as_bytes().to_vec());
    seeds
}
