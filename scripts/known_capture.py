"""Captures of a known background and a flood, and the truth about them.

The background has TCP connections with known outcomes and UDP exchanges, over IPv4 and IPv6. A first part of
it comes 15 seconds before the flood. The rest is spread over the flood, which takes 2.4 seconds: shorter than
any timeout of a connection, so that the connections at the end are known, too.

A flood has one packet per key of the table that it fills:

| table | packets |
|---|---|
| flows | UDP from 50,000 ports of each of a few hosts |
| hosts, sources_v4, connections | SYNs from distinct IPv4 addresses |
| ports | UDP from one host to distinct ports |
| sources_v6 | UDP from distinct IPv6 addresses |

scripts/figures-are-true compares the outputs of sidon with the truth.
"""
import collections
import heapq
import ipaddress
import random
import struct
from array import array

NS = 10**9
START = 1_700_000_000 * NS
PROTOCOLS = {6: "tcp", 17: "udp"}
SYN, ACK = 2, 16
FLAGS = {"F": 1, "S": SYN, "R": 4, "P": 8, "A": ACK}
VICTIM4, VICTIM6, FLOODER = ("198.18.0.7", 777), ("2001:db8:ffff::7", 444), ("198.18.9.9", 65535)

# Connections of the background, by what their packets do: opener > and responder <. `handshake` is the
# packet that ends the half-open state. `stay` is the timer that removes the connection: after 5 s of the
# attempt, after 3 to 10 s of silence (short), after 20 to 40 s (answered) or after 5 to 10 minutes (long).
Kind = collections.namedtuple("Kind", "packets outcome handshake completes open one_way stay times")
KINDS = [
    Kind(">S <SA >A >PA <PA >FA <FA >A", "SF", 2, 1, 0, 0, "short", 400),
    Kind(">S <SA >A >PA <PA", "S1", 2, 1, 1, 0, "long", 40),
    Kind(">S <RA", "REJ", 1, 0, 0, 0, "short", 20),
    Kind(">S", "S0", None, 0, 0, 0, "attempt", 20),
    Kind(">S <SA", "S1", None, 0, 0, 0, "answered", 12),
    Kind(">S <SA >A >PA >R", "RSTO", 2, 1, 0, 0, "short", 20),
    Kind(">S <SA >A <PA <RA", "RSTR", 2, 1, 0, 0, "short", 12),
    Kind(">S <SA >A >FA", "S2", 2, 1, 0, 0, "long", 12),
    Kind(">S >A >PA", "S0", 1, 0, 0, 1, "attempt", 12),
]
# Ports of responders and openers. The last two responders have the higher port, so that only the order of
# the packets names the service.
SERVICES = [(443, 40000), (80, 50000), (22, 33000), (6881, 45000), (53211, 20011), (61000, 30011)]


def number(address):
    return int(ipaddress.ip_address(address))


class Capture:
    """A capture file, and the truth about it."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        self.now = START
        self.packets = self.bytes = 0
        # Bytes and packets by key: all of the background, and what floods add to few keys.
        self.flows, self.hosts, self.services = {}, {}, {}
        # Source addresses of the background; the number of sources by /24 and by /64.
        self.sources, self.v4, self.v6 = set(), bytearray(1 << 24), collections.Counter()
        self.outcomes, self.present = collections.Counter(), collections.Counter()
        self.half_open = self.peak = self.open = self.completed = self.one_way = 0
        # The flood: one packet of `flood_size` bytes between `flood_at` and each of `flood_ends`, which
        # are address << 16 | port. With `flood_hosts`, each of them is another host.
        self.flood_ends, self.flood_at, self.flood_size, self.flood_hosts = set(), None, 0, False
        self.attempts = 0
        # Truths that follow from an output, such as the sum of all rows that it does not list.
        self.extra = {}

    def count(self, source, to, protocol, service, size):
        """Adds a packet to the truth. An end is an address and a port."""
        self.packets += 1
        self.bytes += size
        add(self.flows, (PROTOCOLS[protocol], frozenset([source, to])), size)
        add(self.hosts, source[0], size)
        add(self.hosts, to[0], size)
        add(self.services, f"{service}/{PROTOCOLS[protocol]}", size)
        self.source(source[0])

    def source(self, address):
        if address not in self.sources:
            self.sources.add(address)
            self.subnet(number(address), ":" in address)

    def subnet(self, bits, is_v6):
        if is_v6:
            self.v6[bits >> 64] += 1
        else:
            self.v4[bits >> 8] += 1

    def half(self, change):
        self.half_open += change
        self.peak = max(self.peak, self.half_open)

    def packet(self, source, to, protocol, service, payload=0, flags=0):
        """Writes one packet of the background."""
        frame = headers(source, to, protocol, flags, payload) + bytes(payload)
        self.now += 50_000
        head = struct.pack("<IIII", self.now // NS, self.now % NS, len(frame), len(frame))
        self.file.write(head + frame)
        self.count(source, to, protocol, service, len(frame))

    def connection(self, kind, opener, responder, sizes, is_last):
        """Writes a connection. `is_last` says that the capture ends in less than three seconds."""
        for index, text in enumerate(kind.packets.split()):
            ends = (opener, responder) if text[0] == ">" else (responder, opener)
            flags = sum(FLAGS[flag] for flag in text[1:])
            self.packet(*ends, 6, responder[1], next(sizes) if "P" in text else 0, flags)
            self.half((index == 0) - (index == kind.handshake))
        self.outcomes[kind.outcome] += 1
        self.present[kind.outcome] += is_last or kind.stay in ("answered", "long")
        self.open += kind.open
        self.completed += kind.completes
        self.one_way += kind.one_way

    def background(self, share, is_last):
        """Writes 1/`share` of the background, in flows that no other part has."""
        rng = random.Random(len(self.flows))
        sizes = iter(lambda: rng.choice([17, 100, 500, 1000, 1400]), None)
        jobs = [kind for kind in KINDS for _ in range(max(1, kind.times // share))]
        jobs += [None] * max(1, 60 // share)
        rng.shuffle(jobs)
        for kind in jobs:
            index = len(self.flows)
            port, opener_port = SERVICES[index % len(SERVICES)]
            net = "2001:db8:1::{:x}" if index % 3 == 0 else "10.1.0.{}"
            opener = (net.format(1 + index % 100), opener_port + index // 100)
            responder = (net.format(200 + index % 7), port)
            if kind:
                self.connection(kind, opener, responder, sizes, is_last)
            else:
                self.packet(opener, responder, 17, port, next(sizes))
                self.packet(responder, opener, 17, port, next(sizes))

    def write(self, table, keys):
        """Writes the whole capture, with `keys` keys for `table`."""
        self.background(1, False)
        # Timers remove connections of the first part, except answered and established ones.
        self.now += 15 * NS
        self.half_open = sum(kind.times for kind in KINDS if kind.stay == "answered")
        protocol, flags, vary, self.flood_at = 17, 0, "source", VICTIM4
        if table == "flows":
            start = number("198.51.100.0")
            ends = [(start + i // 50_000, 10_000 + i % 50_000) for i in range(keys)]
        elif table == "ports":
            vary, self.flood_at = "to", FLOODER
            ends = [(number(VICTIM4[0]), 1 + i) for i in range(keys)]
        elif table == "sources_v6":
            self.flood_at, self.flood_hosts = VICTIM6, True
            ends = [(0x2001_0DB8_0002 << 80 | i % 5003 << 64 | i, 65535) for i in range(keys)]
        else:
            protocol, flags, self.flood_hosts, self.attempts = 6, SYN, True, keys
            # Distinct addresses of 11.0.0.0 to 126.255.255.255, as if forged at random.
            ends = [((11 << 24) + i * 2654435761 % (116 << 24), 65535) for i in range(keys)]
        begun, parts = self.now, 40
        for part in range(parts):
            some = ends[keys * part // parts:keys * (part + 1) // parts]
            first = begun + part * 60_000_000
            if some:
                self.flood(first, first + 40_000_000, protocol, flags, some, vary)
            self.background(parts, True)
        self.file.close()

    def flood(self, first, last, protocol, flags, ends, vary):
        """Writes one packet from (`vary` "source") or to each of `ends`, from time `first` to `last`.

        All records are copies of one template, and slices fill their columns byte by byte: a million
        packets take a second.
        """
        is_v6 = ":" in self.flood_at[0]
        pair = [("::" if is_v6 else "0.0.0.0", 0), self.flood_at]
        frame = headers(*(pair if vary == "source" else pair[::-1]), protocol, flags, 0)
        width, at, ports_at = (16, 22, 54) if is_v6 else (4, 26, 34)
        if vary == "to":
            at, ports_at = at + width, ports_at + 2
        times = [first + (last - first) * i // len(ends) for i in range(len(ends))]
        record = bytes(8) + struct.pack("<II", len(frame), len(frame)) + frame
        records = bytearray(record * len(ends))
        for start, column, size in [
            (0, array("I", (t // NS for t in times)).tobytes(), 4),
            (4, array("I", (t % NS for t in times)).tobytes(), 4),
            (16 + at, b"".join(address.to_bytes(width, "big") for address, _ in ends), width),
            (16 + ports_at, b"".join(port.to_bytes(2, "big") for _, port in ends), 2),
        ]:
            for byte in range(size):
                records[start + byte::len(record)] = column[byte::size]
        self.file.write(records)
        self.now = last

        size, times, name = len(frame), len(ends), PROTOCOLS[protocol]
        self.packets += times
        self.bytes += size * times
        self.flood_size = size
        self.flood_ends.update(address << 16 | port for address, port in ends)
        add(self.hosts, self.flood_at[0], size, times)
        if vary == "source":
            add(self.services, f"{self.flood_at[1]}/{name}", size, times)
        else:
            self.source(self.flood_at[0])
        for address, port in ends:
            if vary == "to":
                add(self.services, f"{port}/{name}", size)
            if self.flood_hosts:
                self.subnet(address, is_v6)
            else:
                text = str(ipaddress.IPv4Address(address))
                add(self.hosts, text, size)
                if vary == "source":
                    self.source(text)
        if protocol == 6:
            self.half(times)
            self.outcomes["S0"] += times
            self.present["S0"] += times

    # ---- the truth ----

    def amounts(self, table, key):
        """The true bytes and packets of a key, as sidon prints it."""
        one, none = [self.flood_size, 1], [0, 0]
        if table == "top_ports":
            return self.services.get(key, none)
        if table == "top_hosts":
            is_flood = self.flood_hosts and number(key) << 16 | 65535 in self.flood_ends
            return one if is_flood else self.hosts.get(key, none)
        source, _, to, protocol = key.split(" ")
        ends = [end.rpartition(":") for end in (source, to)]
        ends = [(address.strip("[]"), int(port)) for address, _, port in ends]
        other = [end for end in ends if end != self.flood_at]
        if len(other) == 1 and number(other[0][0]) << 16 | other[0][1] in self.flood_ends:
            return one
        return self.flows.get((protocol, frozenset(ends)), none)

    def largest(self, table, n):
        """The true bytes of the `n` heaviest keys."""
        known = {"top_flows": self.flows, "top_hosts": self.hosts, "top_ports": self.services}[table]
        flood = table == "top_flows" or table == "top_hosts" and self.flood_hosts
        amounts = [size for size, _ in known.values()]
        amounts += [self.flood_size] * (min(n, len(self.flood_ends)) if flood else 0)
        return heapq.nlargest(n, amounts)

    def truth(self, name):
        """The truth of a figure by its path in JSON; `None` if it is not counted here."""
        if name in self.extra:
            return self.extra[name]
        if name[0] in ("top_flows", "top_hosts", "top_ports") and name[-1] in ("bytes", "packets"):
            return self.amounts(name[0], name[1])[name[-1] == "packets"]
        if name[0] == "new_sources":
            net = ipaddress.ip_network(name[1])
            bits = int(net.network_address)
            return self.v6[bits >> 64] if net.version == 6 else self.v4[bits >> 8]
        if name[0] == "alarms" and name[1] == f"syn_flood {VICTIM4[0]}":
            return self.attempts
        if name[:2] == ("connections", "by_state"):
            return self.outcomes[name[2]]
        if name[:2] == ("connections", "present_by_state"):
            return self.present[name[2]]
        if name[:2] == ("connections", "ended"):
            return self.outcomes[name[2]] - self.present[name[2]]
        v4 = len(self.v4) - self.v4.count(0)
        flood_sources = len(self.flood_ends) if self.flood_hosts else 0
        return {
            "packets": self.packets, "decoded": self.packets, "ledger.seen": self.packets,
            "ledger.decoded": self.packets, "ledger.filtered": 0, "ledger.balance": 0,
            "ledger.undecoded": 0, "ledger.filtered_behind_vlan_tag": 0,
            "bytes": self.bytes, "new_sources_total": len(self.sources) + flood_sources,
            "new_sources_subnets": v4 + len(self.v6), "connections.total": sum(self.outcomes.values()),
            "connections.half_open": self.half_open, "connections.peak_half_open": self.peak,
            "connections.open": self.open, "connections.came_about": self.completed,
            "connections.one_way": self.one_way,
        }.get(".".join(name))


def add(table, key, size, times=1):
    amounts = table.setdefault(key, [0, 0])
    amounts[0] += size * times
    amounts[1] += times


def headers(source, to, protocol, flags, payload):
    """Ethernet, IP and transport headers of a packet."""
    transport = struct.pack(">HH", source[1], to[1])
    if protocol == 6:
        transport += struct.pack(">IIBBHHH", 1, 1 if flags & ACK else 0, 5 << 4, flags, 65535, 0, 0)
    else:
        transport += struct.pack(">HH", 8 + payload, 0)
    ends = [ipaddress.ip_address(address).packed for address, _ in (source, to)]
    length = len(transport) + payload
    if len(ends[0]) == 16:
        ip, ether = struct.pack(">IHBB", 6 << 28, length, protocol, 64), 0x86DD
    else:
        ip, ether = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, protocol, 0), 0x0800
    return bytes(12) + struct.pack(">H", ether) + ip + b"".join(ends) + transport
