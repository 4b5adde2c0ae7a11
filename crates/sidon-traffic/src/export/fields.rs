//! The fields of a record, by the numbers that NetFlow 9 and IPFIX share.

use super::{Record, layout::Field};
use crate::{FlowKey, flow::protocol, packet::TcpFlags};
use std::net::{IpAddr, SocketAddr};

/// The fields of a flow or options record that are used here. A missing field is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) ends: [Option<IpAddr>; 2],
    pub(super) ports: [u16; 2],
    pub(super) protocol: u8,
    /// The forward direction and, if the record holds both directions, the reverse one.
    pub(super) ways: [Way; 2],
    pub(super) icmp: [Option<u8>; 2],
    /// The sampler that selected the packets.
    pub(super) sampler: Option<u64>,
    /// Sampling at intervals: one packet of `interval` packets is counted.
    pub(super) interval: Option<u64>,
    /// Sampling in runs: `taken` packets are counted, then `left` packets are skipped.
    pub(super) taken: Option<u64>,
    pub(super) left: Option<u64>,
    /// Sampling in groups: `size` packets of each `population` packets are counted.
    pub(super) size: Option<u64>,
    pub(super) population: Option<u64>,
}

/// The counts and flags of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) bytes: Option<u64>,
    pub(super) packets: Option<u64>,
    pub(super) flags: Option<u8>,
}

/// The enterprise number of Cisco.
const CISCO: u32 = 9;
/// The enterprise number under which IANA's elements count the reverse direction (RFC 5103).
const REVERSE: u32 = 29_305;

fn number(value: &[u8]) -> Option<u64> {
    let wide = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    (1..=8).contains(&value.len()).then(|| wide(value))
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

impl Fields {
    /// Reads a field of a record.
    pub(super) fn read(&mut self, field: Field, value: &[u8]) {
        let back = &mut self.ways[1];
        match (field.enterprise, field.element) {
            (0, element) => self.take(element, value),
            (REVERSE, 1 | 85) => back.bytes = number(value),
            (REVERSE, 2 | 86) => back.packets = number(value),
            (REVERSE, 6) => back.flags = number(value).map(|bits| bits as u8),
            // Client and server of a connection, in Cisco's records of applications.
            (CISCO, 12_236) => self.take(8, value),
            (CISCO, 12_237) => self.take(12, value),
            (CISCO, 12_240) => self.take(7, value),
            (CISCO, 12_241) => self.take(11, value),
            _ => {}
        }
    }

    fn take(&mut self, id: u16, value: &[u8]) {
        let narrow = || number(value).map(|number| number as u8);
        let port = || number(value).and_then(|number| u16::try_from(number).ok()).unwrap_or(0);
        let [there, back] = &mut self.ways;
        match id {
            1 => there.bytes = number(value),
            2 => there.packets = number(value),
            // Counts after forwarding, or since the flow started: used if there is no better field.
            23 | 85 | 231 => there.bytes = there.bytes.or(number(value)),
            24 | 86 | 298 => there.packets = there.packets.or(number(value)),
            232 => back.bytes = number(value),
            299 => back.packets = number(value),
            6 => there.flags = narrow(),
            4 => self.protocol = narrow().unwrap_or(0),
            7 => self.ports[0] = port(),
            11 => self.ports[1] = port(),
            8 | 27 => self.ends[0] = address(value).or(self.ends[0]),
            12 | 28 => self.ends[1] = address(value).or(self.ends[1]),
            32 | 139 => {
                if let Some(both) = number(value) {
                    self.icmp = [Some((both >> 8) as u8), Some(both as u8)];
                }
            }
            176 | 178 => self.icmp[0] = narrow(),
            177 | 179 => self.icmp[1] = narrow(),
            34 | 50 => self.interval = number(value),
            48 | 302 => self.sampler = number(value),
            305 => self.taken = number(value),
            306 => self.left = number(value),
            309 => self.size = number(value),
            310 => self.population = number(value),
            _ => {}
        }
    }

    /// The sampling rate: how many packets one counted packet represents, if the record tells.
    pub(super) fn rate(&self) -> Option<u64> {
        let about = |whole: u128, part: u64| {
            let rate = (whole + u128::from(part / 2)).checked_div(part.into())?;
            Some(u64::try_from(rate).unwrap_or(u64::MAX))
        };
        let spaced = self.taken.zip(self.left);
        let spaced =
            spaced.and_then(|(taken, left)| about(u128::from(taken) + u128::from(left), taken));
        let chosen = self.size.zip(self.population);
        let chosen = chosen.and_then(|(size, population)| about(population.into(), size));
        spaced.or(chosen).or(self.interval).filter(|&rate| rate > 0)
    }

    /// One or two records, with counts multiplied by `rate`; `None` if an address is missing.
    pub(super) fn records(&self, time_ns: u64, rate: u64) -> Option<[Option<Record>; 2]> {
        let [source, destination] = self.ends;
        let [source, destination] = [source?, destination?];
        let icmp = matches!(self.protocol, protocol::ICMP | protocol::ICMPV6);
        let ports = if protocol::has_ports(self.protocol) { self.ports } else { [0; 2] };
        let flow = FlowKey::between(
            SocketAddr::new(source, ports[0]),
            SocketAddr::new(destination, ports[1]),
            self.protocol,
        )?;
        // If the record has no such field, the destination port holds the ICMP type and code.
        let [kind, code] = [self.icmp[0], self.icmp[1]];
        let in_port = (self.ports[1] >> 8) as u8;
        let icmp = icmp.then(|| (kind.unwrap_or(in_port), code.unwrap_or(self.ports[1] as u8)));
        let record = |flow, way: Way| Record {
            time_ns,
            flow,
            packets: way.packets.unwrap_or(0).saturating_mul(rate),
            bytes: way.bytes.unwrap_or(0).saturating_mul(rate),
            flags: way.flags.map(TcpFlags),
            icmp,
        };
        let [there, back] = self.ways;
        let answered = back.packets.or(back.bytes).is_some_and(|amount| amount > 0);
        let back = answered.then(|| record(flow.reversed(), back));
        Some([Some(record(flow, there)), back])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_told_in_three_ways() {
        let told = |set: fn(&mut Fields)| {
            let mut fields = Fields::default();
            set(&mut fields);
            fields.rate()
        };
        assert_eq!(told(|_| {}), None);
        assert_eq!(told(|fields| fields.interval = Some(1000)), Some(1000));
        assert_eq!(told(|fields| fields.interval = Some(0)), None);
        assert_eq!(told(|fields| (fields.taken, fields.left) = (Some(1), Some(99))), Some(100));
        assert_eq!(told(|fields| (fields.taken, fields.left) = (Some(0), Some(99))), None);
        assert_eq!(
            told(|fields| (fields.size, fields.population) = (Some(2), Some(256))),
            Some(128)
        );
        assert_eq!(
            told(|fields| (fields.taken, fields.left) = (Some(1), Some(u64::MAX))),
            Some(u64::MAX),
            "a rate stops at the ceiling"
        );
        assert_eq!(
            told(|fields| (fields.size, fields.population) = (Some(u64::MAX), Some(u64::MAX))),
            Some(1)
        );
    }

    #[test]
    fn amounts_that_would_pass_64_bits_stay_at_the_most() {
        let mut fields = Fields { protocol: 17, ports: [53, 4000], ..Fields::default() };
        fields.ends = [Some([10, 0, 0, 1].into()), Some([10, 0, 0, 2].into())];
        fields.ways[0] = Way { bytes: Some(u64::MAX), packets: Some(3), flags: None };
        let [record, back] = fields.records(0, 1000).unwrap();
        let record = record.unwrap();
        assert_eq!((record.packets, record.bytes, back), (3000, u64::MAX, None));
    }
}
