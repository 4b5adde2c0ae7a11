//! Reads the tables `[[flows]]` of a scenario: who talks to whom, when, and with which packets.

use super::{
    Choice, Flows, Number, Script, Starts, Step,
    fields::{
        Fields, LONGEST, Value, Wrong, addresses, decimal, flag, flags, number, payload, ports,
        seconds, text_of, wrong,
    },
};
use crate::{
    flow::protocol,
    generate::SECOND,
    packet::{Fragment, TcpFlags},
};

/// The most flows of one kind, and the most repetitions of a packet.
pub(super) const MOST: u64 = 1 << 32;
/// Nanoseconds between two packets of a flow, unless the file says otherwise.
const GAP: u64 = 20_000;
/// Numbers of IPv6 extension headers, which are not a protocol after IP.
const EXTENSIONS: [u8; 9] = [0, 43, 44, 51, 59, 60, 135, 139, 140];

/// The protocol and the IP version of flows, which decide what their packets can be.
#[derive(Clone, Copy)]
struct Ip {
    protocol: u8,
    is_v4: bool,
}

pub(super) fn flows(fields: &Fields<'_>) -> Result<Flows, Wrong> {
    fields.only(&[
        "name",
        "count",
        "units",
        "from",
        "until",
        "gaps",
        "pulses",
        "protocol",
        "source",
        "source_port",
        "destination",
        "destination_port",
        "packets",
        "rounds",
        "fails",
        "failed",
    ])?;
    let source = fields.required("source", addresses)?;
    let destination = fields.required("destination", addresses)?;
    let is_v4 = source.1;
    if is_v4 != destination.1 {
        return wrong("source and destination are of different IP versions", fields.span.clone());
    }
    let protocol = fields.required("protocol", |value| protocol_of(value, is_v4))?;
    let any = Choice { first: 1_024, more: 64_511, in_turn: false };
    let none = Choice { first: 0, more: 0, in_turn: false };
    let ports = if protocol::has_ports(protocol) {
        [fields.optional("source_port", any, ports)?, fields.required("destination_port", ports)?]
    } else {
        [none; 2]
    };
    let ip = Ip { protocol, is_v4 };
    let packets = script(fields, "packets", ip)?;
    if packets.steps.is_empty() {
        return wrong("the flows have no packets", fields.span.clone());
    }
    let (fails, failed) = match fields.table.contains_key("fails") {
        false => (0.0, Script::default()),
        true => {
            (fields.required("fails", |value| decimal(value, 1.0))?, script(fields, "failed", ip)?)
        }
    };
    let has_failed = fields.table.contains_key("failed");
    if failed.steps.is_empty() == fields.table.contains_key("fails")
        || has_failed == failed.steps.is_empty()
    {
        return wrong("expected both fails and failed, or neither", fields.span.clone());
    }
    Ok(Flows {
        name: fields.optional("name", String::new(), text_of)?,
        number: number_of(fields)?,
        starts: starts(fields)?,
        protocol,
        addresses: [source.0, destination.0],
        is_v4,
        ports,
        packets,
        failed,
        fails,
    })
}

fn number_of(fields: &Fields<'_>) -> Result<Number, Wrong> {
    let count = fields.optional("count", None, |value| number(value, MOST).map(Some))?;
    let units = fields.optional("units", None, |value| decimal(value, 1e6).map(Some))?;
    match (count, units) {
        (Some(count), None) => Ok(Number::Count(count)),
        (None, Some(units)) => Ok(Number::Units(units)),
        _ => wrong("expected either count or units", fields.span.clone()),
    }
}

fn starts(fields: &Fields<'_>) -> Result<Starts, Wrong> {
    let from = fields.required("from", seconds)?;
    let until = fields.optional("until", from, seconds)?;
    if until < from {
        return wrong("until is before from", fields.span.clone());
    }
    let random = fields.optional("gaps", false, |value| match &*text_of(value)? {
        "even" => Ok(false),
        "exponential" => Ok(true),
        _ => wrong("expected even or exponential", value.span()),
    })?;
    let pulses = fields.optional("pulses", None, |value| {
        let Some(table) = value.get_ref().as_table() else {
            return wrong("expected a table with on and every", value.span());
        };
        let fields = Fields { table, span: value.span() };
        fields.only(&["on", "every"])?;
        let (on, every) = (fields.required("on", seconds)?, fields.required("every", seconds)?);
        match (1..=every).contains(&on) {
            true => Ok(Some([on, every])),
            false => wrong("expected on above 0, and not above every", value.span()),
        }
    })?;
    Ok(Starts { time_ns: [from, until], random, pulses })
}

fn protocol_of(value: &Value<'_>, is_v4: bool) -> Result<u8, Wrong> {
    let named = [protocol::TCP, protocol::UDP, protocol::ICMP, protocol::ICMPV6];
    let unnamed =
        |one: &u8| !named.contains(one) && !EXTENSIONS.contains(one) && !protocol::has_ports(*one);
    let expected = "expected tcp, udp or icmp, or the number of a protocol without ports";
    let Some(name) = value.get_ref().as_str() else {
        let number = number(value, u8::MAX.into()).ok().map(|number| number as u8);
        return number.filter(unnamed).map_or_else(|| wrong(expected, value.span()), Ok);
    };
    match (name, is_v4) {
        ("tcp", _) => Ok(protocol::TCP),
        ("udp", _) => Ok(protocol::UDP),
        ("icmp", true) => Ok(protocol::ICMP),
        ("icmp", false) => Ok(protocol::ICMPV6),
        _ => wrong(expected, value.span()),
    }
}

/// The packets in a field. The script is empty if the field is missing.
fn script(fields: &Fields<'_>, name: &str, ip: Ip) -> Result<Script, Wrong> {
    let (mut script, mut in_body) = (Script { rounds: 1, ..Script::default() }, Vec::new());
    for (index, fields) in fields.tables(name)?.iter().enumerate() {
        script.steps.push(step(fields, index == 0, ip)?);
        if fields.optional("round", false, flag)? {
            in_body.push(index);
        }
    }
    let is_main = name == "packets";
    let rounds = |value: &Value<'_>| number(value, MOST - 1);
    let rounds = if is_main { fields.optional("rounds", 0, rounds)? } else { 0 };
    if (rounds > 0) == in_body.is_empty() {
        return wrong("expected rounds, and packets with round = true", fields.span.clone());
    }
    if let [first, .., last] | [first @ last] = in_body[..] {
        script.body = first..last + 1;
        script.rounds = rounds as u32;
    }
    if script.body.len() != in_body.len() {
        return wrong("packets with round = true must follow each other", fields.span.clone());
    }
    if script.lasts_ns() > (LONGEST * SECOND as f64) as u64 {
        return wrong("a flow lasts longer than a week", fields.span.clone());
    }
    Ok(script)
}

fn step(fields: &Fields<'_>, first: bool, ip: Ip) -> Result<Step, Wrong> {
    fields.only(&[
        "flags", "reply", "by", "payload", "after", "jitter", "repeat", "round", "fragment",
        "icmp", "ttl",
    ])?;
    let icmp = fields.optional("icmp", None, |value| icmp(value).map(Some))?;
    let reply = fields.optional("reply", false, flag)?;
    let fragment =
        fields.optional("fragment", Fragment::Whole, |value| match &*text_of(value)? {
            "first" => Ok(Fragment::First),
            "later" => Ok(Fragment::Later),
            _ => wrong("expected first or later", value.span()),
        })?;
    let is_tcp = ip.protocol == protocol::TCP && icmp.is_none() && fragment != Fragment::Later;
    let flags = match is_tcp {
        true => fields.required("flags", flags)?,
        false => TcpFlags(0),
    };
    // Type 8 is an echo and 0 the reply; ICMPv6 has 128 and 129.
    let echo = match ip.protocol {
        protocol::ICMP => Some([if reply { 0 } else { 8 }, 0]),
        protocol::ICMPV6 => Some([if reply { 129 } else { 128 }, 0]),
        _ => None,
    };
    Ok(Step {
        after_ns: fields.optional("after", if first { 0 } else { GAP }, seconds)?,
        jitter_ns: fields.optional("jitter", 0, seconds)?,
        repeat: fields.optional("repeat", 1, |value| match number(value, MOST - 1)? {
            0 => wrong("expected at least one packet", value.span()),
            repeat => Ok(repeat as u32),
        })?,
        reply,
        by: fields.optional("by", None, |value| match addresses(value)? {
            (by, is_v4) if is_v4 == ip.is_v4 => Ok(Some(by)),
            _ => wrong("expected the same IP version as that of the source", value.span()),
        })?,
        flags,
        payload: fields.optional("payload", [0; 2], payload)?,
        fragment,
        icmp: icmp.or(echo),
        ttl: fields.optional("ttl", 60, |value| number(value, u8::MAX.into()))? as u8,
    })
}

/// Type and code of ICMP.
fn icmp(value: &Value<'_>) -> Result<[u8; 2], Wrong> {
    let list = value.get_ref().as_array().map(|list| list.iter().collect::<Vec<_>>());
    match list.as_deref() {
        Some([kind, code]) => Ok([number(kind, 255)? as u8, number(code, 255)? as u8]),
        _ => wrong("expected a type and a code, such as [3, 1]", value.span()),
    }
}
