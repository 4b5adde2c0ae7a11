//! Evaluates an expression on a frame.
//!
//! The rules are those of the machine that libpcap compiles for. A load beyond the captured bytes
//! rejects the frame, whatever the rest of the expression says. Numbers are unsigned and have 32
//! bits.

use super::expr::{Expr, Header, Number, Operation, Over, Relation, Test, Way, Within};
use crate::{
    LinkType,
    flow::protocol,
    packet::{
        Cut, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Malformed, Undecoded, be16, be32, first, hardware,
        is_vlan,
    },
    source::Frame,
    work::step,
};

const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;

/// The frame is rejected at once: a load beyond the frame, or a division by zero.
struct Rejected;

type Answer<T = bool> = Result<T, Rejected>;

/// Whether the expression holds if every test skips `tags` more VLAN tags.
#[inline]
pub(super) fn holds(expr: &Expr, frame: &Frame<'_>, tags: usize) -> bool {
    eval(expr, frame, tags).unwrap_or(false)
}

fn eval(expr: &Expr, frame: &Frame<'_>, tags: usize) -> Answer {
    step();
    match expr {
        Expr::And(both) => Ok(eval(&both[0], frame, tags)? && eval(&both[1], frame, tags)?),
        Expr::Or(both) => Ok(eval(&both[0], frame, tags)? || eval(&both[1], frame, tags)?),
        Expr::Not(inner) => Ok(!eval(inner, frame, tags)?),
        Expr::Test(what, depth) => test(what, &View { frame, tags: tags + depth }),
    }
}

/// A frame whose first `tags` VLAN tags are skipped.
struct View<'a> {
    frame: &'a Frame<'a>,
    tags: usize,
}

impl View<'_> {
    /// The EtherType of the network header, and its position. Only Ethernet has tags.
    #[inline]
    fn network(&self) -> Answer<(u16, usize)> {
        let (link, bytes) = (self.frame.link, self.frame.bytes);
        if link == LinkType::ETHERNET {
            let at = 12 + 4 * self.tags;
            return Ok((be16(bytes, at).ok_or(Rejected)?, at + 2));
        }
        if self.tags > 0 {
            return Err(Rejected);
        }
        match first(link, bytes, Cut::of(self.frame)) {
            Ok(found) => Ok(found),
            Err(Undecoded::Truncated(_) | Undecoded::Malformed(Malformed::Short(_))) => {
                Err(Rejected)
            }
            // A frame without an EtherType matches no EtherType test.
            Err(_) => Ok((0, 0)),
        }
    }

    /// The position of the network header, if it has this EtherType.
    #[inline]
    fn network_of(&self, kind: u16) -> Answer<Option<usize>> {
        let (found, at) = self.network()?;
        Ok((found == kind).then_some(at))
    }

    #[inline]
    fn u8(&self, at: usize) -> Answer<u8> {
        self.frame.bytes.get(at).copied().ok_or(Rejected)
    }

    #[inline]
    fn u16(&self, at: usize) -> Answer<u16> {
        be16(self.frame.bytes, at).ok_or(Rejected)
    }

    #[inline]
    fn u32(&self, at: usize) -> Answer<u32> {
        be32(self.frame.bytes, at).ok_or(Rejected)
    }

    fn u128(&self, at: usize) -> Answer<u128> {
        let bytes = self.frame.bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Rejected)?;
        Ok(u128::from_be_bytes(*bytes))
    }

    /// The position of the IPv4 header, if it carries this protocol.
    fn over_ip(&self, number: u8) -> Answer<Option<usize>> {
        match self.network_of(ETHERTYPE_IPV4)? {
            Some(at) if self.u8(at + 9)? == number => Ok(Some(at)),
            _ => Ok(None),
        }
    }

    fn is_later_fragment(&self, ip: usize) -> Answer {
        Ok(self.u16(ip + 6)? & 0x1fff != 0)
    }

    /// The position after the IPv4 header.
    fn behind_ip(&self, ip: usize) -> Answer<usize> {
        Ok(ip + usize::from(self.u8(ip)? & 0x0f) * 4)
    }
}

fn test(test: &Test, view: &View<'_>) -> Answer {
    match *test {
        Test::Network(kind) => Ok(view.network()?.0 == kind),
        Test::Ip(number) => Ok(view.over_ip(number)?.is_some()),
        Test::Ip6(number) => {
            let Some(at) = view.network_of(ETHERTYPE_IPV6)? else { return Ok(false) };
            let next = view.u8(at + 6)?;
            Ok(next == number || (next == 44 && view.u8(at + 40)? == number))
        }
        Test::Address { within, way, address, mask } => {
            let (kind, source, destination) = match within {
                Within::Ip => (ETHERTYPE_IPV4, 12, 16),
                Within::Arp => (ARP, 14, 24),
                Within::Rarp => (RARP, 14, 24),
            };
            let Some(at) = view.network_of(kind)? else { return Ok(false) };
            ends(way, |from_source| {
                let at = at + if from_source { source } else { destination };
                Ok(view.u32(at)? & mask == address)
            })
        }
        Test::Address6 { way, address, mask } => {
            let Some(at) = view.network_of(ETHERTYPE_IPV6)? else { return Ok(false) };
            ends(way, |from_source| {
                Ok(view.u128(at + if from_source { 8 } else { 24 })? & mask == address)
            })
        }
        Test::Port { over, way, low, high } => port(view, over, way, low, high),
        Test::Ether { way, address } => {
            let (link, bytes) = (view.frame.link, view.frame.bytes);
            let Some([source, destination]) = hardware(link, bytes) else { return Ok(false) };
            ends(way, |from_source| {
                let at = if from_source { source } else { destination };
                Ok(bytes.get(at..at + 6).ok_or(Rejected)? == address)
            })
        }
        Test::EtherGroup { all } => {
            let (link, bytes) = (view.frame.link, view.frame.bytes);
            let Some([_, at]) = hardware(link, bytes) else { return Ok(false) };
            if all {
                return Ok(bytes.get(at..at + 6).ok_or(Rejected)? == [0xff; 6]);
            }
            Ok(view.u8(at)? & 1 != 0)
        }
        Test::IpGroup => {
            let Some(at) = view.network_of(ETHERTYPE_IPV4)? else { return Ok(false) };
            Ok(view.u8(at + 16)? >= 224)
        }
        Test::Ip6Group => {
            let Some(at) = view.network_of(ETHERTYPE_IPV6)? else { return Ok(false) };
            Ok(view.u8(at + 24)? == 255)
        }
        Test::Vlan(id) => {
            if view.frame.link != LinkType::ETHERNET {
                return Ok(false);
            }
            let (kind, at) = view.network()?;
            if !is_vlan(kind) {
                return Ok(false);
            }
            match id {
                Some(id) => Ok(view.u16(at)? & 0x0fff == id),
                None => Ok(true),
            }
        }
        Test::Compare(ref both, relation) => compare(view, both, relation),
    }
}

/// Tests one end or the other or both.
#[inline]
fn ends(way: Way, end: impl Fn(bool) -> Answer) -> Answer {
    match way {
        Way::Source => end(true),
        Way::Destination => end(false),
        Way::Either => Ok(end(true)? || end(false)?),
        Way::Both => Ok(end(true)? && end(false)?),
    }
}

fn port(view: &View<'_>, over: Over, way: Way, low: u16, high: u16) -> Answer {
    let asked = |number: u8| match over {
        Over::One(one) => number == one,
        Over::TcpUdpSctp => {
            matches!(number, protocol::TCP | protocol::UDP | protocol::SCTP)
        }
    };
    let (kind, at) = view.network()?;
    let ports = match kind {
        ETHERTYPE_IPV4 => {
            if !asked(view.u8(at + 9)?) || view.is_later_fragment(at)? {
                return Ok(false);
            }
            view.behind_ip(at)?
        }
        ETHERTYPE_IPV6 => {
            if !asked(view.u8(at + 6)?) {
                return Ok(false);
            }
            at + 40
        }
        _ => return Ok(false),
    };
    ends(way, |from_source| {
        let port = view.u16(ports + if from_source { 0 } else { 2 })?;
        Ok((low..=high).contains(&port))
    })
}

fn compare(view: &View<'_>, both: &[Number; 2], relation: Relation) -> Answer {
    // Checks that the frame has the required headers before it reads any byte of them.
    if !(applies(view, &both[0])? && applies(view, &both[1])?) {
        return Ok(false);
    }
    let (left, right) = (number(view, &both[0])?, number(view, &both[1])?);
    Ok(match relation {
        Relation::Equal => left == right,
        Relation::NotEqual => left != right,
        Relation::Less => left < right,
        Relation::LessEqual => left <= right,
        Relation::Greater => left > right,
        Relation::GreaterEqual => left >= right,
    })
}

/// Whether the frame has the headers that a number is made from.
fn applies(view: &View<'_>, number: &Number) -> Answer {
    step();
    match number {
        Number::Constant(_) | Number::Length => Ok(true),
        // For a computed number, libpcap checks only the headers of the first operand.
        Number::Compute(both, _) => applies(view, &both[0]),
        Number::Load { from, index, .. } => {
            if !applies(view, index)? {
                return Ok(false);
            }
            match *from {
                Header::Ether => Ok(true),
                Header::Network(kind) => Ok(view.network_of(kind)?.is_some()),
                Header::Transport(number) => match view.over_ip(number)? {
                    Some(ip) => Ok(!view.is_later_fragment(ip)?),
                    None => Ok(false),
                },
                Header::Icmp6 => match view.network_of(ETHERTYPE_IPV6)? {
                    Some(at) => Ok(view.u8(at + 6)? == protocol::ICMPV6),
                    None => Ok(false),
                },
            }
        }
    }
}

fn number(view: &View<'_>, what: &Number) -> Answer<u32> {
    step();
    match what {
        Number::Constant(value) => Ok(*value),
        Number::Length => Ok(view.frame.wire_len),
        Number::Load { from, index, size } => {
            let index = number(view, index)?;
            let start = match from {
                Header::Ether => 0,
                Header::Network(_) => view.network()?.1,
                Header::Transport(_) => view.behind_ip(view.network()?.1)?,
                Header::Icmp6 => view.network()?.1 + 40,
            };
            // A position that does not fit is beyond the frame.
            let at = usize::try_from(u64::from(index) + start as u64).map_err(|_| Rejected)?;
            match size {
                1 => view.u8(at).map(u32::from),
                2 => view.u16(at).map(u32::from),
                _ => view.u32(at),
            }
        }
        Number::Compute(both, operation) => {
            let (left, right) = (number(view, &both[0])?, number(view, &both[1])?);
            compute(left, *operation, right).ok_or(Rejected)
        }
    }
}

/// The result modulo 2^32, `None` for a division by zero.
pub(super) fn compute(left: u32, operation: Operation, right: u32) -> Option<u32> {
    match operation {
        Operation::Add => Some(left.wrapping_add(right)),
        Operation::Subtract => Some(left.wrapping_sub(right)),
        Operation::Multiply => Some(left.wrapping_mul(right)),
        Operation::Divide => left.checked_div(right),
        Operation::Remainder => left.checked_rem(right),
        Operation::And => Some(left & right),
        Operation::Or => Some(left | right),
        Operation::Xor => Some(left ^ right),
        Operation::ShiftLeft => Some(left.checked_shl(right).unwrap_or(0)),
        Operation::ShiftRight => Some(left.checked_shr(right).unwrap_or(0)),
    }
}
