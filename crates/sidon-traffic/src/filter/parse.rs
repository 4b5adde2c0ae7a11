//! Parses an expression by recursive descent through the grammar.
//!
//! ```text
//! expr  = term { (and | or) (term | id) }          equally strong, from left to right
//! term  = not term | ( expr ) | number relation number | vlan [id] | less n | greater n
//!       | [protocol] [way] [kind] id | protocol
//! id    = address | port | name | ( id { (and | or) id } )
//! ```
//! An `id` without qualifiers takes those of the `id` before it.

use super::{
    NotAFilter,
    expr::{Expr, Over, Test, Way, Within},
    lex::{self, Token, What},
    words,
};
use crate::{
    flow::protocol,
    packet::{ETHERTYPE_IPV4, ETHERTYPE_IPV6},
};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;
/// Most parentheses and negations inside one another.
const DEPTH: usize = 64;

/// The expression, and whether it contains `vlan`. `None` for a text without words.
pub(super) fn parse(text: &str) -> Result<(Option<Expr>, bool), NotAFilter> {
    let tokens = lex::split(text)?;
    if tokens.len() == 1 {
        return Ok((None, false));
    }
    let last = Some(Qualifiers::default());
    let mut parser = Parser { text, tokens, at: 0, depth: 0, vlans: 0, last };
    let expr = parser.expr()?;
    if parser.peek().what != What::End {
        return Err(parser.refuse("expected `and`, `or`, or the end of the expression here"));
    }
    Ok((Some(expr), parser.vlans > 0))
}

pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Number of `vlan` keywords to the left.
    vlans: usize,
    /// The qualifiers for an `id` that has none itself; `None` where an `id` must have its own.
    last: Option<Qualifiers>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Qualifiers {
    protocol: Option<Protocol>,
    way: Option<Way>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unsaid,
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

/// A protocol by its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Ether,
    Ip,
    Ip6,
    Arp,
    Rarp,
    /// Over IPv4 and IPv6.
    Both(u8),
    /// Over IPv4 alone.
    Ip4(u8),
    /// ICMP over IPv6.
    Icmp6,
}

impl Protocol {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "ether" => Protocol::Ether,
            "ip" => Protocol::Ip,
            "ip6" => Protocol::Ip6,
            "arp" => Protocol::Arp,
            "rarp" => Protocol::Rarp,
            "tcp" | "udp" | "sctp" | "ah" | "esp" | "pim" => {
                Protocol::Both(protocol::number(word)?)
            }
            "icmp" | "igmp" | "igrp" | "vrrp" => Protocol::Ip4(protocol::number(word)?),
            "icmp6" => Protocol::Icmp6,
            _ => return None,
        })
    }
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn peek_word(&self, ahead: usize) -> Option<&str> {
        match &self.tokens.get(self.at + ahead)?.what {
            What::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is_sign(&self, ahead: usize, sign: &str) -> bool {
        self.tokens
            .get(self.at + ahead)
            .is_some_and(|token| matches!(token.what, What::Sign(found) if found == sign))
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.is_sign(0, sign);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word(0) == Some(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), NotAFilter> {
        if self.eat(sign) { Ok(()) } else { Err(self.refuse(&format!("expected `{sign}` here"))) }
    }

    /// The error for the piece that comes next.
    pub(super) fn refuse(&self, message: &str) -> NotAFilter {
        let word = self.peek_word(0);
        let message = match word {
            Some(word) if words::is_foreign(word) => {
                format!("`{word}` is a word of libpcap's that is not supported here")
            }
            _ => message.to_owned(),
        };
        NotAFilter { text: self.text.to_owned(), columns: self.peek().columns.clone(), message }
    }

    fn refuse_last(&mut self, message: &str) -> NotAFilter {
        self.at -= 1;
        self.refuse(message)
    }

    pub(super) fn deeper(&mut self) -> Result<(), NotAFilter> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.refuse("nested too deeply"));
        }
        Ok(())
    }

    fn conjunction(&mut self) -> Option<bool> {
        if self.eat("&&") || self.eat_word("and") {
            Some(true)
        } else if self.eat("||") || self.eat_word("or") {
            Some(false)
        } else {
            None
        }
    }

    fn expr(&mut self) -> Result<Expr, NotAFilter> {
        let mut left = self.term()?;
        while let Some(and) = self.conjunction() {
            let right = self.term()?;
            left = if and { left.and(right) } else { left.or(right) };
        }
        Ok(left)
    }

    fn test(&self, test: Test) -> Expr {
        Expr::Test(test, self.vlans)
    }

    fn term(&mut self) -> Result<Expr, NotAFilter> {
        if self.eat("!") || self.eat_word("not") {
            self.deeper()?;
            let inner = self.term()?;
            self.depth -= 1;
            return Ok(inner.not());
        }
        if let Some(comparison) = self.comparison()? {
            self.last = None;
            return Ok(self.test(comparison));
        }
        if self.eat("(") {
            self.deeper()?;
            let inner = self.expr()?;
            self.depth -= 1;
            self.expect(")")?;
            return Ok(inner);
        }
        let Some(word) = self.peek_word(0) else {
            return Err(self.refuse("expected a test here, such as `host`, `port` or `tcp`"));
        };
        match word {
            "vlan" => {
                self.at += 1;
                self.last = None;
                let id = match self.peek_word(0).and_then(integer) {
                    Some(id) if id < 4096 => Some(id as u16),
                    Some(_) => return Err(self.refuse("a VLAN is a number below 4096")),
                    None => None,
                };
                self.at += usize::from(id.is_some());
                let test = self.test(Test::Vlan(id));
                self.vlans += 1;
                Ok(test)
            }
            "less" | "greater" => {
                let least = word == "greater";
                self.at += 1;
                self.last = None;
                let Some(length) = self.peek_word(0).and_then(integer) else {
                    return Err(self.refuse("expected a number of bytes here"));
                };
                self.at += 1;
                Ok(self.test(super::expr::length(least, length)))
            }
            "broadcast" | "multicast" => {
                let all = word == "broadcast";
                self.at += 1;
                self.last = None;
                Ok(self.test(Test::EtherGroup { all }))
            }
            _ => self.primitive(),
        }
    }

    /// `[protocol] [way] [kind] id`, or a protocol alone.
    fn primitive(&mut self) -> Result<Expr, NotAFilter> {
        let start = self.at;
        let mut said = Qualifiers::default();
        if let Some(protocol) = self.peek_word(0).and_then(Protocol::from_word) {
            said.protocol = Some(protocol);
            self.at += 1;
        }
        said.way = self.way();
        said.kind = match self.peek_word(0) {
            Some("host") => Kind::Host,
            Some("net") => Kind::Net,
            Some("port") => Kind::Port,
            Some("portrange") => Kind::PortRange,
            Some("proto") => Kind::Proto,
            _ => Kind::Unsaid,
        };
        self.at += usize::from(said.kind != Kind::Unsaid);
        let alone = said.way.is_none() && said.kind == Kind::Unsaid;
        match (said.protocol, alone) {
            (Some(protocol), true) => {
                if let Some(test) = self.group(protocol)? {
                    return Ok(test);
                }
                if !self.id_follows() {
                    self.last = None;
                    return self.protocol_alone(protocol);
                }
                self.last = Some(said);
            }
            (None, true) => {
                debug_assert_eq!(self.at, start, "nothing was said");
                if self.last.is_none() {
                    return Err(self.refuse("what is this? Say `host`, `net` or `port` before it"));
                }
            }
            _ => self.last = Some(said),
        }
        let qualifiers = self.last.unwrap_or_default();
        self.id(qualifiers)
    }

    fn way(&mut self) -> Option<Way> {
        let one = |word: &str| match word {
            "src" => Some(Way::Source),
            "dst" => Some(Way::Destination),
            _ => None,
        };
        let first = self.peek_word(0).and_then(one)?;
        let second = self.peek_word(2).and_then(one);
        let between = self.peek_word(1);
        if second.is_some_and(|second| second != first) {
            let both = between == Some("and") || self.is_sign(1, "&&");
            if both || between == Some("or") || self.is_sign(1, "||") {
                self.at += 3;
                return Some(if both { Way::Both } else { Way::Either });
            }
        }
        self.at += 1;
        Some(first)
    }

    /// `ip multicast` and the like.
    fn group(&mut self, protocol: Protocol) -> Result<Option<Expr>, NotAFilter> {
        let test = match (protocol, self.peek_word(0)) {
            (Protocol::Ether, Some("broadcast")) => Test::EtherGroup { all: true },
            (Protocol::Ether, Some("multicast")) => Test::EtherGroup { all: false },
            (Protocol::Ip, Some("multicast")) => Test::IpGroup,
            (Protocol::Ip6, Some("multicast")) => Test::Ip6Group,
            (_, Some("broadcast" | "multicast")) => {
                return Err(self.refuse("not known for this protocol: no netmask is known here"));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        self.last = None;
        Ok(Some(self.test(test)))
    }

    /// Whether an address, a number or a name comes next, and not an end or a conjunction.
    fn id_follows(&self) -> bool {
        match self.peek_word(0) {
            Some(word) => !matches!(word, "and" | "or"),
            None => false,
        }
    }

    fn protocol_alone(&mut self, protocol: Protocol) -> Result<Expr, NotAFilter> {
        Ok(match protocol {
            Protocol::Ether => return Err(self.refuse("expected an address here")),
            Protocol::Ip => self.test(Test::Network(ETHERTYPE_IPV4)),
            Protocol::Ip6 => self.test(Test::Network(ETHERTYPE_IPV6)),
            Protocol::Arp => self.test(Test::Network(ARP)),
            Protocol::Rarp => self.test(Test::Network(RARP)),
            Protocol::Both(number) => self.over_either(number),
            Protocol::Ip4(number) => self.test(Test::Ip(number)),
            Protocol::Icmp6 => self.test(Test::Ip6(protocol::ICMPV6)),
        })
    }

    fn over_either(&self, number: u8) -> Expr {
        self.test(Test::Ip(number)).or(self.test(Test::Ip6(number)))
    }

    /// What the qualifiers say of an id, or of several in parentheses.
    fn id(&mut self, said: Qualifiers) -> Result<Expr, NotAFilter> {
        if self.eat("!") || self.eat_word("not") {
            self.deeper()?;
            let inner = self.id(said)?;
            self.depth -= 1;
            return Ok(inner.not());
        }
        if self.eat("(") {
            self.deeper()?;
            let mut left = self.id(said)?;
            while let Some(and) = self.conjunction() {
                let right = self.id(said)?;
                left = if and { left.and(right) } else { left.or(right) };
            }
            self.depth -= 1;
            self.expect(")")?;
            return Ok(left);
        }
        let Some(word) = self.peek_word(0) else {
            return Err(self.refuse(match said.kind {
                Kind::Port | Kind::PortRange => "expected a port here",
                Kind::Proto => "expected a protocol here",
                _ => "expected an address here",
            }));
        };
        let word = word.to_owned();
        self.at += 1;
        match said.kind {
            Kind::Port => self.port(said, &word),
            Kind::PortRange => self.port_range(said, &word),
            Kind::Proto => self.proto(said, &word),
            Kind::Unsaid | Kind::Host | Kind::Net => self.address(said, &word),
        }
    }

    fn over(&mut self, said: Qualifiers) -> Result<Over, NotAFilter> {
        match said.protocol {
            None => Ok(Over::TcpUdpSctp),
            Some(Protocol::Both(number @ (protocol::TCP | protocol::UDP | protocol::SCTP))) => {
                Ok(Over::One(number))
            }
            Some(_) => Err(self.refuse_last("only `tcp`, `udp` and `sctp` have ports")),
        }
    }

    /// A port's number, and the protocol if its name belongs to one.
    fn port_number(&mut self, word: &str) -> Result<(u16, Option<u8>), NotAFilter> {
        match (integer(word), words::port(word)) {
            (Some(number), _) => u16::try_from(number)
                .map(|number| (number, None))
                .map_err(|_| self.refuse_last("a port is a number below 65536")),
            (None, Some(port)) => Ok(port),
            (None, None) => Err(self.refuse_last("not a port: expected a number or a known name")),
        }
    }

    fn port(&mut self, said: Qualifiers, word: &str) -> Result<Expr, NotAFilter> {
        let (low, named) = self.port_number(word)?;
        let over = match (self.over(said)?, named) {
            (Over::TcpUdpSctp, Some(number)) => Over::One(number),
            (Over::One(asked), Some(number)) if asked != number => {
                return Err(self.refuse_last("this name is not a port of that protocol"));
            }
            (over, _) => over,
        };
        let way = said.way.unwrap_or(Way::Either);
        Ok(self.test(Test::Port { over, way, low, high: low }))
    }

    fn port_range(&mut self, said: Qualifiers, word: &str) -> Result<Expr, NotAFilter> {
        let (low, _) = self.port_number(word)?;
        let over = self.over(said)?;
        self.expect("-")?;
        let Some(high) = self.peek_word(0).map(str::to_owned) else {
            return Err(self.refuse("expected a port here"));
        };
        self.at += 1;
        let (high, _) = self.port_number(&high)?;
        let way = said.way.unwrap_or(Way::Either);
        Ok(self.test(Test::Port { over, way, low: low.min(high), high: low.max(high) }))
    }

    fn proto(&mut self, said: Qualifiers, word: &str) -> Result<Expr, NotAFilter> {
        if said.protocol == Some(Protocol::Ether) {
            let kind = match word {
                "ip" => ETHERTYPE_IPV4,
                "ip6" => ETHERTYPE_IPV6,
                "arp" => ARP,
                "rarp" => RARP,
                word => match integer(word) {
                    Some(kind) if (1501..=0xffff).contains(&kind) => kind as u16,
                    _ => return Err(self.refuse_last("expected an Ethernet type above 1500")),
                },
            };
            return Ok(self.test(Test::Network(kind)));
        }
        let number = protocol::number(word).or(integer(word).and_then(|n| u8::try_from(n).ok()));
        let Some(number) = number else {
            return Err(self.refuse_last("not a protocol: expected a number below 256 or a name"));
        };
        match said.protocol {
            None => Ok(self.over_either(number)),
            Some(Protocol::Ip) => Ok(self.test(Test::Ip(number))),
            Some(Protocol::Ip6) => Ok(self.test(Test::Ip6(number))),
            Some(_) => Err(self.refuse_last("only `ether`, `ip` and `ip6` go before `proto`")),
        }
    }

    fn address(&mut self, said: Qualifiers, word: &str) -> Result<Expr, NotAFilter> {
        let way = said.way.unwrap_or(Way::Either);
        if let Some(Protocol::Both(_) | Protocol::Ip4(_) | Protocol::Icmp6) = said.protocol {
            return Err(
                self.refuse_last("expected `port`, `and`, `or`, or the end of the expression here")
            );
        }
        if said.protocol == Some(Protocol::Ether) {
            return match hardware(word) {
                Some(address) => Ok(self.test(Test::Ether { way, address })),
                None => Err(self.refuse_last("expected a hardware address such as 0:1:2:3:4:5")),
            };
        }
        if let Ok(address) = word.parse::<Ipv6Addr>() {
            return self.address6(said, way, address);
        }
        if hardware(word).is_some() {
            return Err(self.refuse_last("say `ether` before a hardware address"));
        }
        let Some((address, bits)) = dotted(word, said.kind == Kind::Net) else {
            let known = matches!(word, "and" | "or" | "not" | "host" | "net" | "port" | "proto");
            return Err(self.refuse_last(if known || words::is_foreign(word) {
                "expected an address here"
            } else {
                "not an address; names are not looked up"
            }));
        };
        let mask = self.mask(said, bits)?;
        if address & !mask != 0 {
            return Err(self.refuse_last("the address has bits outside its network mask"));
        }
        let within = |within| self.test(Test::Address { within, way, address, mask });
        match said.protocol {
            None => Ok(within(Within::Ip).or(within(Within::Arp)).or(within(Within::Rarp))),
            Some(Protocol::Ip) => Ok(within(Within::Ip)),
            Some(Protocol::Arp) => Ok(within(Within::Arp)),
            Some(Protocol::Rarp) => Ok(within(Within::Rarp)),
            Some(_) => Err(self.refuse_last("expected an address of IPv6 here")),
        }
    }

    /// `/bits`, `mask a.b.c.d`, or what the address's own length says.
    fn mask(&mut self, said: Qualifiers, bits: u32) -> Result<u32, NotAFilter> {
        let prefix = |bits: u32| u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        if self.is_sign(0, "/") || self.peek_word(0) == Some("mask") {
            if said.kind != Kind::Net {
                return Err(self.refuse("a mask belongs to a `net`"));
            }
            let slash = self.eat("/");
            self.at += usize::from(!slash);
            let word = self.peek_word(0).map(str::to_owned).unwrap_or_default();
            let mask = if slash {
                integer(&word).filter(|bits| *bits <= 32).map(prefix)
            } else {
                word.parse().ok().map(Ipv4Addr::to_bits)
            };
            let Some(mask) = mask else {
                return Err(self.refuse("expected a mask of at most 32 bits here"));
            };
            self.at += 1;
            return Ok(mask);
        }
        Ok(prefix(bits))
    }

    fn address6(
        &mut self,
        said: Qualifiers,
        way: Way,
        address: Ipv6Addr,
    ) -> Result<Expr, NotAFilter> {
        if !matches!(said.protocol, None | Some(Protocol::Ip6)) {
            return Err(self.refuse_last("expected an address of IPv4 here"));
        }
        let mut mask = u128::MAX;
        if self.is_sign(0, "/") {
            if said.kind != Kind::Net {
                return Err(self.refuse("a mask belongs to a `net`"));
            }
            self.at += 1;
            let bits = self.peek_word(0).and_then(integer).filter(|bits| *bits <= 128);
            let Some(bits) = bits else {
                return Err(self.refuse("expected a number of at most 128 bits here"));
            };
            self.at += 1;
            mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        }
        let address = address.to_bits();
        if address & !mask != 0 {
            return Err(self.refuse_last("the address has bits outside its network mask"));
        }
        Ok(self.test(Test::Address6 { way, address, mask }))
    }
}

/// A number as C writes it: decimal, `0x` hexadecimal, `0` octal.
pub(super) fn integer(word: &str) -> Option<u32> {
    if let Some(hex) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    if word.len() > 1 && word.starts_with('0') {
        return u32::from_str_radix(word, 8).ok();
    }
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    word.parse().ok()
}

/// One to four numbers with dots between, and how many bits that fixes. A number alone is a
/// network.
fn dotted(word: &str, net: bool) -> Option<(u32, u32)> {
    let mut address = 0u32;
    let mut bits = 0;
    for part in word.split('.') {
        if bits == 32 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        address |= u32::from(part.parse::<u8>().ok()?) << (24 - bits);
        bits += 8;
    }
    (net || bits > 8).then_some((address, bits))
}

fn hardware(word: &str) -> Option<[u8; 6]> {
    let mut address = [0; 6];
    let mut parts = word.split(':');
    for byte in &mut address {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}
