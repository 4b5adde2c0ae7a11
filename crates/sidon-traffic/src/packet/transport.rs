//! Transport headers after IP: ports, and further fields of TCP and ICMP.

use super::{Cut, Layer, Undecoded};
use crate::flow::protocol;
use std::fmt;

/// Fields of a transport header other than the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp(Tcp),
    /// UDP, UDP-Lite, SCTP, DCCP: only the ports are kept.
    Ports,
    /// ICMP of either version.
    Icmp {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
    },
    /// A protocol without ports, or a fragment that is not the first.
    Other,
    /// The header is incomplete, cut by the capture or by the end of a fragment. The ports are
    /// known.
    Cut,
}

/// Fields of a TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tcp {
    /// The sequence number of the first byte that the segment carries.
    pub sequence: u32,
    /// The sequence number that the sender expects next.
    pub acknowledgement: u32,
    /// The flags.
    pub flags: TcpFlags,
}

/// The eight flags of TCP, in the header's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from this side.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Opens a connection.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// The connection is aborted or refused.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// The receiver passes the data on at once.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// Urgent data.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// Congestion echo.
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced.
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether at least one of `flags` is set.
    #[inline]
    pub fn any(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// The union of both sets of flags.
    #[inline]
    pub const fn with(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | flags.0)
    }
}

/// The flags in the notation of tcpdump: `S`, `S.`, `F.`, `P.`, `.`, `none`.
impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return write!(f, "none");
        }
        for (bit, letter) in "FSRP.UEW".chars().enumerate() {
            if self.0 & 1 << bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

/// The decoded transport header.
pub(super) struct Read {
    pub(super) ports: [u16; 2],
    pub(super) what: Transport,
    /// Bytes of the header.
    pub(super) header: usize,
}

impl Read {
    #[inline]
    pub(super) fn none() -> Self {
        Read { ports: [0, 0], what: Transport::Other, header: 0 }
    }
}

/// Reads the transport header of protocol `number`.
#[inline]
pub(super) fn read(number: u8, bytes: &[u8], cut: Cut) -> Result<Read, Undecoded> {
    match number {
        protocol::TCP | protocol::UDP => {}
        protocol::ICMP | protocol::ICMPV6 => {
            let what = match bytes {
                [kind, code, ..] => Transport::Icmp { kind: *kind, code: *code },
                _ => Transport::Cut,
            };
            return Ok(Read { ports: [0, 0], what, header: 8 });
        }
        number if protocol::has_ports(number) => {}
        _ => return Ok(Read::none()),
    }
    let Some(&[a, b, c, d]) = bytes.first_chunk() else {
        return Err(cut.short(Layer::Transport));
    };
    let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    let (what, header) = match number {
        protocol::TCP => match bytes.first_chunk::<14>() {
            Some(&[_, _, _, _, s0, s1, s2, s3, a0, a1, a2, a3, offset, flags]) => {
                let tcp = Tcp {
                    sequence: u32::from_be_bytes([s0, s1, s2, s3]),
                    acknowledgement: u32::from_be_bytes([a0, a1, a2, a3]),
                    flags: TcpFlags(flags),
                };
                (Transport::Tcp(tcp), usize::from(offset >> 4) * 4)
            }
            None => (Transport::Cut, 20),
        },
        protocol::SCTP | protocol::DCCP => (Transport::Ports, 12),
        _ => (Transport::Ports, 8),
    };
    Ok(Read { ports, what, header })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_as_tcpdump_writes_them() {
        let text = |flags: TcpFlags| flags.to_string();
        assert_eq!(text(TcpFlags::SYN), "S");
        assert_eq!(text(TcpFlags::SYN.with(TcpFlags::ACK)), "S.");
        assert_eq!(text(TcpFlags::PSH.with(TcpFlags::ACK)), "P.");
        assert_eq!(text(TcpFlags(0)), "none");
        assert_eq!(text(TcpFlags(0xff)), "FSRP.UEW");
    }
}
