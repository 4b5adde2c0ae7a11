//! The parts of an expression.

/// A test of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr {
    And(Box<[Expr; 2]>),
    Or(Box<[Expr; 2]>),
    Not(Box<Expr>),
    /// A test, and the number of VLAN tags that it skips.
    Test(Test, usize),
}

impl Expr {
    pub(super) fn and(self, other: Expr) -> Expr {
        Expr::And(Box::new([self, other]))
    }

    pub(super) fn or(self, other: Expr) -> Expr {
        Expr::Or(Box::new([self, other]))
    }

    pub(super) fn not(self) -> Expr {
        Expr::Not(Box::new(self))
    }
}

/// One primitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    /// The network protocol has this Ethernet type.
    Network(u16),
    /// The protocol over IPv4.
    Ip(u8),
    /// The protocol over IPv6, after at most a fragment header.
    Ip6(u8),
    /// An address of IPv4, in IP or in the two ARPs.
    Address { within: Within, way: Way, address: u32, mask: u32 },
    /// An address of IPv6.
    Address6 { way: Way, address: u128, mask: u128 },
    /// A port, over IPv4 and IPv6.
    Port { over: Over, way: Way, low: u16, high: u16 },
    /// A hardware address.
    Ether { way: Way, address: [u8; 6] },
    /// Broadcast if `all`, else multicast, by the hardware address.
    EtherGroup { all: bool },
    /// Multicast by the IPv4 address.
    IpGroup,
    /// Multicast by the IPv6 address.
    Ip6Group,
    /// A VLAN tag, with any VLAN ID or with this one.
    Vlan(Option<u16>),
    /// A comparison of two numbers.
    Compare(Box<[Number; 2]>, Relation),
}

/// The protocol whose IPv4 addresses are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Ip,
    Arp,
    Rarp,
}

/// The end, or ends, that a test applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Source,
    Destination,
    Either,
    Both,
}

/// The protocols whose ports are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    One(u8),
    TcpUdpSctp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// A number of 32 bits, loaded from the frame or computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    Constant(u32),
    /// Bytes on the wire.
    Length,
    /// One, two or four bytes of a header.
    Load {
        from: Header,
        index: Box<Number>,
        size: u8,
    },
    Compute(Box<[Number; 2]>, Operation),
}

/// The header in which `[ ]` counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// The whole frame.
    Ether,
    /// The network header, if it has this EtherType.
    Network(u16),
    /// The header of this protocol, over IPv4.
    Transport(u8),
    /// ICMP over IPv6.
    Icmp6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// A test of the length on the wire: at least `bytes`, or at most `bytes` if `least` is false.
pub(super) fn length(least: bool, bytes: u32) -> Test {
    let relation = if least { Relation::GreaterEqual } else { Relation::LessEqual };
    Test::Compare(Box::new([Number::Length, Number::Constant(bytes)]), relation)
}
