use super::*;
use sidon::Seed;
use sidon_traffic::{
    Decoder, Engine, Filter, Generator, Mix, Settings,
    generate::{Flood, Shares},
};

const STYLE: Style = Style {
    colour: false,
    width: 80,
    height: None,
    top: None,
    detail: Detail::Usual,
    space: Space::Enough,
};

fn report(top: usize) -> Report {
    let victim = "198.18.0.9:25".parse().unwrap();
    let flood = Flood { sources: 90_000, victim, after: 5_000, share: 80, ..Flood::default() };
    let shares = Shares { scan: 5, ..Mix::default().shares };
    let mix = Mix {
        packets: 120_000,
        rate: 2_000,
        ipv6: 30,
        shares,
        flood: Some(flood),
        ..Mix::default()
    };
    let settings = Settings { memory: 1 << 20, top, audit: true, ..Settings::new(Seed(1)) };
    let mut engine = Engine::new(settings, Filter::default(), Decoder::default()).unwrap();
    Generator::new(mix, 5).unwrap().for_each(|packet| engine.packet(&packet));
    engine.finish().0
}

#[test]
fn screens_fit_their_terminal_and_fill_it() {
    let mut report = report(200);
    report.audit = None;
    let title = "/a/rather/long/path/to/a/capture/of/last/night.pcapng (Pcap, fixed seed)";
    for width in [80, 100, 120] {
        for height in [24, 40, 60, 100] {
            for detail in [Detail::Little, Detail::Usual] {
                let style = Style { width, height: Some(height), detail, ..STYLE };
                let screen = render(title, &report, style);
                let wide = screen.lines().find(|line| line.chars().count() > width);
                assert_eq!(wide, None, "{width}x{height}");
                let lines = screen.lines().count();
                assert!(lines < height, "{lines} of {height}: {screen}");
                // One line is for the prompt. A flow over IPv6 takes two lines, and one may be
                // too high for what is left.
                assert!(lines + 2 >= height, "{lines} of {height}: {screen}");
            }
        }
    }
}

#[test]
fn no_mark_is_exact_once_tables_have_refused() {
    let report = report(10);
    let style = Style { detail: Detail::Much, ..STYLE };
    let screen = render("a", &report, style);
    let line = |start: &str| {
        let found = screen.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start}: {screen}")).to_owned()
    };
    assert!(line("CONNECTIONS").contains("CONNECTIONS  ~ "), "{screen}");
    assert!(line("NEW SOURCES").contains("NEW SOURCES  >= "), "{screen}");
    assert!(line("AUDIT").starts_with("AUDIT  0 violations in "), "{screen}");
    assert!(!screen.to_lowercase().contains("list complete"), "{screen}");
}
