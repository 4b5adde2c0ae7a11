//! The link types of captures, by their registered numbers: the format of a frame's first bytes.

use std::fmt;

/// A link type by the number that pcap and pcapng files carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a protocol family in the byte order of the machine that captured.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet, with any VLAN tags.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP, with or without its address and control bytes.
    pub const PPP: LinkType = LinkType(9);
    /// IP without a link header, as some systems number it.
    pub const RAW_12: LinkType = LinkType(12);
    /// IP without a link header, as OpenBSD numbers it.
    pub const RAW_14: LinkType = LinkType(14);
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// PPPoE: the session header, then PPP.
    pub const PPPOE: LinkType = LinkType(51);
    /// IP without a link header.
    pub const RAW: LinkType = LinkType(101);
    /// IEEE 802.11 without a header of the receiver.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// OpenBSD loopback: a protocol family in network order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IEEE 802.11 after a radiotap header.
    pub const RADIOTAP: LinkType = LinkType(127);
    /// IPv4 without a link header.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 without a link header.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// The name that capture tools print, for the types that are decoded here.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            LinkType::NULL => "NULL",
            LinkType::ETHERNET => "EN10MB",
            LinkType::PPP => "PPP",
            LinkType::RAW_12 | LinkType::RAW_14 | LinkType::RAW => "RAW",
            LinkType::PPP_HDLC => "PPP_SERIAL",
            LinkType::PPPOE => "PPP_ETHER",
            LinkType::IEEE802_11 => "IEEE802_11",
            LinkType::LOOP => "LOOP",
            LinkType::LINUX_SLL => "LINUX_SLL",
            LinkType::RADIOTAP => "IEEE802_11_RADIO",
            LinkType::IPV4 => "IPV4",
            LinkType::IPV6 => "IPV6",
            LinkType::LINUX_SLL2 => "LINUX_SLL2",
            _ => return None,
        })
    }

    /// Whether frames of this type are decoded.
    pub fn is_supported(self) -> bool {
        self.name().is_some()
    }
}

/// The name, or `link type N`.
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "link type {}", self.0),
        }
    }
}
