//! Builds datagrams as routers send them.
#![allow(dead_code)]

/// A flow in one direction, as in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) source: [u8; 4],
    pub(crate) destination: [u8; 4],
    pub(crate) ports: [u16; 2],
    pub(crate) protocol: u8,
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
    pub(crate) flags: u8,
}

pub(crate) const WEB: Flow = Flow {
    source: [10, 0, 0, 1],
    destination: [10, 0, 0, 80],
    ports: [40_000, 443],
    protocol: 6,
    packets: 12,
    bytes: 3_400,
    flags: 0x1b,
};

/// Fields 8, 12, 7, 11, 4, 6, 2, 1 with their lengths: what [`record`] writes.
pub(crate) const LAYOUT: [[u16; 2]; 8] =
    [[8, 4], [12, 4], [7, 2], [11, 2], [4, 1], [6, 1], [2, 4], [1, 4]];

pub(crate) fn record(flow: &Flow) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(flow.source);
    bytes.extend(flow.destination);
    bytes.extend(flow.ports.map(u16::to_be_bytes).as_flattened());
    bytes.extend([flow.protocol, flow.flags]);
    bytes.extend(flow.packets.to_be_bytes());
    bytes.extend(flow.bytes.to_be_bytes());
    bytes
}

/// A set of this number.
pub(crate) fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let mut bytes = halves(&[id, (body.len() + padding + 4) as u16]);
    bytes.extend(body);
    bytes.extend(vec![0; padding]);
    bytes
}

pub(crate) fn data(id: u16, flows: &[Flow]) -> Vec<u8> {
    set(id, &flows.iter().flat_map(record).collect::<Vec<_>>())
}

pub(crate) fn halves(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// The template of [`record`], for NetFlow 9 or IPFIX.
pub(crate) fn template(version: u16, id: u16) -> Vec<u8> {
    let mut body = halves(&[id, LAYOUT.len() as u16]);
    body.extend(LAYOUT.iter().flat_map(|field| halves(field)));
    set(if version == 9 { 0 } else { 2 }, &body)
}

/// An IPFIX template with counts of eight bytes, and one record of it: [`WEB`] with these amounts.
pub(crate) fn wide(id: u16, packets: u64, bytes: u64) -> [Vec<u8>; 2] {
    let mut layout = LAYOUT;
    (layout[6][1], layout[7][1]) = (8, 8);
    let mut template = halves(&[id, layout.len() as u16]);
    template.extend(layout.iter().flat_map(|field| halves(field)));
    let mut one = record(&WEB);
    one.truncate(one.len() - 8);
    one.extend([packets, bytes].map(u64::to_be_bytes).as_flattened());
    [set(2, &template), set(id, &one)]
}

/// A template of options with the sampling rate, and the options record.
pub(crate) fn sampling(version: u16, id: u16, rate: u32) -> Vec<u8> {
    let body = if version == 9 {
        // Lengths in bytes: one scope field (the system), then the interval.
        halves(&[id, 4, 4, 1, 4, 34, 4])
    } else {
        // Two fields, the first of them the scope (the metering process), then the interval.
        halves(&[id, 2, 1, 143, 4, 34, 4])
    };
    let mut bytes = set(if version == 9 { 1 } else { 3 }, &body);
    let mut options = 1u32.to_be_bytes().to_vec();
    options.extend(rate.to_be_bytes());
    bytes.extend(set(id, &options));
    bytes
}

pub(crate) fn v9(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = halves(&[9, sets.len() as u16]);
    for word in [1_000, 1_700_000_000, sequence, domain] {
        bytes.extend(u32::to_be_bytes(word));
    }
    bytes.extend(sets.concat());
    bytes
}

pub(crate) fn ipfix(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let mut bytes = halves(&[10, (16 + body.len()) as u16]);
    for word in [1_700_000_000, sequence, domain] {
        bytes.extend(u32::to_be_bytes(word));
    }
    bytes.extend(body);
    bytes
}

pub(crate) fn v5(sequence: u32, interval: u16, flows: &[Flow]) -> Vec<u8> {
    let mut bytes = halves(&[5, flows.len() as u16]);
    for word in [1_000, 1_700_000_000, 0, sequence] {
        bytes.extend(u32::to_be_bytes(word));
    }
    bytes.extend([0, 0]);
    bytes.extend(interval.to_be_bytes());
    for flow in flows {
        bytes.extend(flow.source);
        bytes.extend(flow.destination);
        bytes.extend([0; 8]);
        bytes.extend(flow.packets.to_be_bytes());
        bytes.extend(flow.bytes.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(flow.ports.map(u16::to_be_bytes).as_flattened());
        bytes.extend([0, flow.flags, flow.protocol, 0]);
        bytes.extend([0; 8]);
    }
    bytes
}

/// One datagram of each kind.
pub(crate) fn all() -> Vec<Vec<u8>> {
    vec![
        v5(1, 0x4064, &[WEB; 30]),
        v9(1, 7, &[template(9, 256)]),
        v9(2, 7, &[data(256, &[WEB; 20])]),
        v9(3, 7, &[template(9, 257), sampling(9, 258, 100), data(257, &[WEB; 3])]),
        ipfix(1, 7, &[template(10, 300)]),
        ipfix(1, 7, &[data(300, &[WEB; 20])]),
        ipfix(21, 7, &[template(10, 301), sampling(10, 302, 100), data(301, &[WEB; 3])]),
        ipfix(30, 8, &[data(400, &[WEB; 5])]),
    ]
}
