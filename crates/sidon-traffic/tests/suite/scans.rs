//! Scans of every technique are named by their source, once, and clients that fail now and then are not.

use crate::streams::{Stream, any, at};

const SCANNER: [u8; 4] = [192, 0, 2, 66];
const NAME: &str = "192.0.2.66";

#[track_caller]
fn named(stream: &mut Stream, kinds: &[&str]) {
    let all = stream.incidents();
    assert!(all.len() == 1 && all[0].1 == NAME && kinds.contains(&all[0].0), "{all:?}");
}

#[track_caller]
fn silent(stream: &mut Stream) {
    let all = stream.incidents();
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn ports_of_a_host_by_every_technique() {
    for text in ["S", "F", "FPU", "", "A", "udp"] {
        for rate in [20.0, 5_000.0] {
            let mut stream = Stream::with_office(1, 12);
            for (number, time) in (0u16..).zip(stream.times(1.0, 11.0, rate).take(1_000)) {
                let from = at(SCANNER, 50_000);
                let to = at([10, 9, 0, 77], 1 + number);
                if text == "udp" {
                    stream.udp(time, from, to, 0);
                    if number % 4 == 0 {
                        stream.icmp(time + 0.001, to.ip(), from.ip(), 3, 60);
                    }
                    continue;
                }
                stream.tcp(time, from, to, text, 0);
                if number % 2 == 0 {
                    stream.tcp(time + 0.001, to, from, "RA", 0);
                }
            }
            named(&mut stream, &["port_scan"]);
        }
    }
}

#[test]
fn the_number_of_ports_is_right_however_fast_the_scan_is() {
    for seconds in [0.2, 2.0, 20.0] {
        let mut stream = Stream::with_office(1, 24);
        for number in 0..1_000u16 {
            let time = 1.0 + seconds * f64::from(number) / 1_000.0;
            stream.tcp(time, at(SCANNER, 50_000), at([10, 9, 0, 77], 1 + number), "S", 0);
        }
        named(&mut stream, &["port_scan"]);
        let report = stream.report(16 << 20, 1);
        let evidence = &report.alarms[0].evidence;
        let about = evidence.iter().find(|(name, _)| *name == "targets_about").unwrap().1;
        assert!((700..=1_300).contains(&about.value()), "{about:#} in {seconds} s");
    }
}

#[test]
fn hosts_by_every_technique() {
    for text in ["S", "F", "FPU", "", "A", "udp", "icmp"] {
        let mut stream = Stream::with_office(1, 30);
        for (number, time) in (0u8..=255).zip(stream.times(1.0, 28.0, 20.0)) {
            let (from, to) = (at(SCANNER, 50_000), at([10, 9, 7, number], 445));
            match text {
                "udp" => stream.udp(time, from, to, 12),
                "icmp" => {
                    stream.icmp(time, from.ip(), to.ip(), 8, 8);
                    if number % 4 == 0 {
                        stream.icmp(time + 0.001, to.ip(), from.ip(), 0, 8);
                    }
                }
                _ => stream.tcp(time, from, to, text, 0),
            }
        }
        named(&mut stream, &["address_scan"]);
    }
}

#[test]
fn a_try_a_minute_for_an_hour() {
    for text in ["S", "udp", "icmp"] {
        let mut stream = Stream::with_office(1, 60);
        for number in 0..60u8 {
            let time = 5.0 + 60.0 * f64::from(number);
            let (from, to) = (at(SCANNER, 50_000 + u16::from(number)), at([10, 9, 7, number], 445));
            match text {
                "udp" => stream.udp(time, from, to, 12),
                "icmp" => stream.icmp(time, from.ip(), to.ip(), 8, 8),
                _ => stream.tcp(time, from, to, text, 0),
            }
            // The office goes on.
            for second in (0..60).step_by(5) {
                let port = stream.port();
                let client = at([10, 9, 0, second], port);
                stream.session(time + f64::from(second), client, at([198, 51, 100, 1], 443), 2);
            }
        }
        named(&mut stream, &["address_scan"]);
    }
}

#[test]
fn ports_and_hosts_at_random() {
    let mut stream = Stream::with_office(1, 30);
    for (number, time) in (0u32..).zip(stream.times(1.0, 28.0, 30.0)) {
        let [host, port] = [stream.rng.below(4_000) as u32, stream.rng.below(60_000) as u32];
        let [_, _, c, d] = host.to_be_bytes();
        let (from, to) = (at(SCANNER, 50_000), at([10, 60, c, d], 1 + port as u16));
        match number % 40 {
            0 => stream.session(time, from, to, 1),
            _ => stream.tcp(time, from, to, "S", 0),
        }
    }
    named(&mut stream, &["random_scan"]);
}

#[test]
fn decoys_below_the_line_do_not_hide_a_scan() {
    for gap in [0.001, 1.0] {
        let mut stream = Stream::with_office(1, 40);
        // Each decoy tries ten ports, then another one begins.
        for decoy in 0..3_000u16 {
            let [high, low] = decoy.to_be_bytes();
            for port in 0..10 {
                let time = 1.0 + f64::from(decoy) / 100.0 + f64::from(port) / 2_000.0;
                let from = at([172, 20, high, low], 50_000);
                stream.tcp(time, from, at([10, 9, 0, 77], 20 + port), "S", 0);
            }
        }
        for number in 0..30u16 {
            let time = 5.0 + gap * f64::from(number);
            stream.tcp(time, at(SCANNER, 50_000), at([10, 9, 0, 78], 20 + number), "S", 0);
        }
        let all = stream.incidents();
        assert!(all.contains(&("port_scan", NAME.to_owned())), "{gap}: {all:?}");
    }
}

#[test]
fn clients_that_fail_now_and_then() {
    // A crawler with 5 % dead hosts, and a gateway with 3 %.
    for (share, rate) in [(0.05, 200.0), (0.03, 100.0)] {
        let mut stream = Stream::with_office(1, 30);
        for time in stream.times(1.0, 28.0, rate) {
            let port = stream.port();
            let to = at(any(&mut stream.rng), 443);
            match stream.rng.chance(share) {
                true => {
                    stream.tcp(time, at(SCANNER, port), to, "S", 0);
                    stream.tcp(time + 1.0, at(SCANNER, port), to, "S", 0);
                }
                false => stream.session(time, at(SCANNER, port), to, 2),
            }
        }
        silent(&mut stream);
    }
}

#[test]
fn monitoring_of_hosts_of_which_some_are_down() {
    for down_last in [true, false] {
        for kind in ["tcp", "udp", "icmp"] {
            let mut stream = Stream::with_office(1, 60);
            for round in 0..3 {
                for number in 0..254u8 {
                    let time = 1.0 + 20.0 * f64::from(round) + f64::from(number) / 14.0;
                    let port = stream.port();
                    let to = at([10, 9, 8, 1 + number], 161);
                    let is_down = if down_last { number >= 224 } else { number % 8 == 5 };
                    let from = at([10, 9, 0, 250], port);
                    match (kind, is_down) {
                        ("tcp", true) => stream.tcp(time, from, to, "S", 0),
                        ("tcp", false) => stream.session(time, from, to, 1),
                        ("udp", true) => stream.udp(time, from, to, 40),
                        ("udp", false) => stream.question(time, from, to, 100),
                        (_, is_down) => {
                            stream.icmp(time, from.ip(), to.ip(), 8, 56);
                            if !is_down {
                                stream.icmp(time + 0.001, to.ip(), from.ip(), 0, 56);
                            }
                        }
                    }
                }
            }
            silent(&mut stream);
        }
    }
}

#[test]
fn health_checks_of_a_load_balancer() {
    let mut stream = Stream::with_office(1, 60);
    for time in stream.times(0.5, 58.0, 40.0) {
        let port = stream.port();
        let number = (time * 40.0) as u64 % 60;
        let (from, to) = (at([10, 9, 0, 240], port), at([10, 9, 9, number as u8], 8_080));
        stream.tcp(time, from, to, "S", 0);
        stream.tcp(time + 0.001, to, from, "SA", 0);
        stream.tcp(time + 0.002, from, to, "R", 0);
    }
    silent(&mut stream);
}

#[test]
fn peers_mail_names_and_traceroute() {
    let mut stream = Stream::with_office(1, 60);
    for time in stream.times(0.5, 58.0, 10.0) {
        let port = stream.port();
        // A peer whose contacts are half gone; TCP and UDP at any port.
        let peer = at(any(&mut stream.rng), 1_024 + stream.rng.below(60_000) as u16);
        match stream.rng.below(4) {
            0 => stream.tcp(time, at([10, 9, 0, 11], port), peer, "S", 0),
            1 => stream.session(time, at([10, 9, 0, 11], port), peer, 2),
            2 => stream.udp(time, at([10, 9, 0, 11], 6_881), peer, 100),
            _ => stream.question(time, at([10, 9, 0, 11], 6_881), peer, 200),
        }
    }
    for time in stream.times(0.5, 58.0, 4.0) {
        let port = stream.port();
        let server = at(any(&mut stream.rng), 25);
        match stream.rng.chance(0.3) {
            true => stream.tcp(time, at([10, 9, 0, 12], port), server, "S", 0),
            false => stream.session(time, at([10, 9, 0, 12], port), server, 2),
        }
    }
    for number in 0..90u16 {
        let time = 3.0 + f64::from(number) / 4.0;
        let (from, to) = (at([10, 9, 0, 13], 40_000), at([8, 8, 4, 4], 33_434 + number));
        stream.udp(time, from, to, 24);
        stream.icmp(time + 0.01, [10, 9, 0, 254].into(), from.ip(), 11, 60);
    }
    silent(&mut stream);
}
