//! State that a checkpoint saves and a snapshot leaves out, one part per monitor.
//!
//! A part is restored into a new monitor of the same settings. `resume` reads what `save` wrote and
//! refuses everything else. Counts are limited, so that no sum overflows later. After an error the
//! monitor may be half restored, and the caller drops it.
//!
//! Test hooks, scratch buffers and caches are not saved: they do not change what a run reports.

use crate::{
    Packet, TcpFlags, Transport,
    packet::{Fragment, Tcp, Vlans},
    snapshot::encode::{In, Out},
};
use sidon::Malformed;

/// State that a checkpoint saves and a snapshot leaves out.
pub(crate) trait Resume {
    /// Writes the state.
    fn save(&self, out: &mut Out);

    /// Replaces the state by the one that was written.
    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed>;
}

/// Writes a packet.
pub(crate) fn save_packet(packet: &Packet, out: &mut Out) {
    let Packet { time_ns, flow, wire_len, captured, payload_len, transport, .. } = *packet;
    out.number(time_ns);
    out.flow(flow);
    let transport = match transport {
        Transport::Tcp(Tcp { sequence, acknowledgement, flags }) => {
            [1, sequence.into(), acknowledgement.into(), flags.0.into()]
        }
        Transport::Ports => [2, 0, 0, 0],
        Transport::Icmp { kind, code } => [3, kind.into(), code.into(), 0],
        Transport::Other => [4, 0, 0, 0],
        Transport::Cut => [5, 0, 0, 0],
    };
    let fragment = match packet.fragment {
        Fragment::Whole => 0,
        Fragment::First => 1,
        Fragment::Later => 2,
    };
    out.numbers(&[wire_len, captured, payload_len].map(u64::from));
    out.numbers(&transport);
    out.numbers(&[fragment, packet.ttl.into(), packet.tunnels.into(), packet.vlans.tags().into()]);
    let [first, second] = packet.vlans.both();
    out.numbers(&[first.into(), second.into()]);
}

/// Reads a packet.
pub(crate) fn read_packet(bytes: &mut In<'_>) -> Result<Packet, Malformed> {
    let (time_ns, flow) = (bytes.number()?, bytes.flow("flow")?);
    let [wire_len, captured, payload_len] = small(bytes)?;
    let [kind, one, two, three]: [u32; 4] = small(bytes)?;
    let transport = match (kind, [one, two, three].map(u8::try_from)) {
        (1, [.., Ok(flags)]) => {
            let (sequence, acknowledgement) = (one, two);
            Transport::Tcp(Tcp { sequence, acknowledgement, flags: TcpFlags(flags) })
        }
        (2, [Ok(0), Ok(0), Ok(0)]) => Transport::Ports,
        (3, [Ok(kind), Ok(code), Ok(0)]) => Transport::Icmp { kind, code },
        (4, [Ok(0), Ok(0), Ok(0)]) => Transport::Other,
        (5, [Ok(0), Ok(0), Ok(0)]) => Transport::Cut,
        _ => return bytes.wrong("transport"),
    };
    let [fragment, ttl, tunnels, tags] = small(bytes)?;
    let fragment = match fragment {
        0u8 => Fragment::Whole,
        1 => Fragment::First,
        2 => Fragment::Later,
        _ => return bytes.wrong("fragment"),
    };
    let Some(vlans) = Vlans::of(small(bytes)?, tags) else { return bytes.wrong("vlans") };
    Ok(Packet {
        time_ns,
        flow,
        wire_len,
        captured,
        payload_len,
        transport,
        fragment,
        ttl,
        vlans,
        tunnels,
    })
}

/// Numbers that fit in a smaller type.
fn small<T: TryFrom<u64>, const N: usize>(bytes: &mut In<'_>) -> Result<[T; N], Malformed> {
    let mut small = Vec::with_capacity(N);
    for number in bytes.numbers::<N>()? {
        small.extend(T::try_from(number));
    }
    match small.try_into() {
        Ok(small) => Ok(small),
        Err(_) => bytes.wrong("packet"),
    }
}
