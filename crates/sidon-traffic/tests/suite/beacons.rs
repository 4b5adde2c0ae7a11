//! Regular contact with a server outside is named; clocks, monitoring and services of many hosts are not.

use crate::streams::{Stream, at};
use std::net::SocketAddr;

const HOST: [u8; 4] = [10, 9, 0, 30];

/// A short connection every `period` seconds, for an hour, with this share of jitter.
fn contacts(stream: &mut Stream, host: [u8; 4], server: SocketAddr, period: f64, jitter: f64) {
    let mut time = 7.0;
    while time < 3_590.0 {
        let port = stream.port();
        stream.session(time, at(host, port), server, 1);
        let off = stream.rng.below(2_000) as f64 / 1_000.0 - 1.0;
        time += period * (1.0 + jitter * off);
    }
}

#[test]
fn a_beacon_is_named_by_its_host() {
    for (period, jitter) in [(60.0, 0.0), (60.0, 0.1), (120.0, 0.05)] {
        let mut stream = Stream::with_office(1, 60);
        contacts(&mut stream, HOST, at([185, 199, 7, 7], 443), period, jitter);
        stream.says(&[("beacon", "10.9.0.30")]);
    }
}

#[test]
fn harmless_regular_contact_is_not_named() {
    let mut stream = Stream::with_office(1, 60);
    // A clock, a monitoring system inside, one outside with many servers, a service of many hosts.
    for number in 0..110 {
        let time = 5.0 + 32.0 * f64::from(number);
        stream.question(time, at(HOST, 123), at([185, 199, 7, 8], 123), 48);
    }
    contacts(&mut stream, HOST, at([10, 9, 1, 1], 443), 60.0, 0.0);
    for server in 1..12 {
        contacts(&mut stream, [10, 9, 0, 31], at([185, 199, 8, server], 443), 60.0, 0.01);
    }
    for host in 40..50 {
        contacts(&mut stream, [10, 9, 0, host], at([185, 199, 9, 1], 443), 60.0, 0.02);
    }
    // Irregular contact.
    let mut time = 3.0;
    while time < 3_590.0 {
        let port = stream.port();
        stream.session(time, at([10, 9, 0, 60], port), at([185, 199, 9, 9], 443), 1);
        time += -60.0 * (1.0 - stream.rng.below(1_000_000) as f64 / 1e6).ln();
    }
    stream.says(&[]);
}
