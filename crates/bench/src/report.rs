//! Rows, how ours compare with the peers', and the JSON of both.

use crate::stats::{Summary, ratio};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How large the thing was that was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// Keys stored or hashed.
    Keys(u64),
    /// Bytes of a table.
    Bytes(u64),
}

/// One operation of one structure at one size.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// `machine`, `hash`, `member`, `zone`, `count`, `refused`, `state`, `distinct`, `fan_out`, `prefixes` or `top`.
    pub(crate) section: &'static str,
    /// The structure's name.
    pub(crate) structure: String,
    /// Whether it is Sidon's.
    pub(crate) ours: bool,
    /// Whether keys can leave it.
    pub(crate) removes: bool,
    /// The operation.
    pub(crate) op: &'static str,
    /// At which size.
    pub(crate) size: Size,
    /// Nanoseconds an operation.
    pub(crate) ns: Summary,
    /// Bits of its table for each member.
    pub(crate) bits_per_key: Option<f64>,
    /// The share of strangers that passed.
    pub(crate) fpr: Option<f64>,
    /// Members that were not found, in the worst round.
    pub(crate) lost: Option<u64>,
    /// By how much a count was too high, on average.
    pub(crate) overestimate: Option<f64>,
    /// On our rows: by peer, how many times as fast we are.
    pub(crate) ratio: BTreeMap<String, f64>,
}

impl Row {
    /// Whether the two timed the same thing.
    pub(crate) fn comparable(&self, other: &Row) -> bool {
        (self.section, self.op, self.size) == (other.section, other.op, other.size)
    }

    fn json(&self) -> Value {
        let mut row = Map::new();
        row.insert("section".into(), self.section.into());
        row.insert("structure".into(), self.structure.clone().into());
        row.insert("op".into(), self.op.into());
        let (name, size) = match self.size {
            Size::Keys(keys) => ("keys", keys),
            Size::Bytes(bytes) => ("bytes", bytes),
        };
        row.insert(name.into(), size.into());
        row.insert("ns".into(), self.ns.median.into());
        row.insert("spread".into(), json!({"min": self.ns.least, "max": self.ns.most}));
        if ["member", "state"].contains(&self.section) {
            row.insert("bits_per_key".into(), self.bits_per_key.into());
            row.insert("fpr".into(), self.fpr.into());
            row.insert("lost".into(), self.lost.into());
        }
        if ["count", "top", "prefixes"].contains(&self.section) {
            row.insert("overestimate".into(), self.overestimate.into());
            row.insert("lost".into(), self.lost.into());
        }
        if self.ours {
            row.insert("ratio".into(), json!(self.ratio));
        }
        Value::Object(row)
    }
}

/// Fills in the ratios of our rows.
pub(crate) fn compare(rows: &mut [Row]) {
    let peers: Vec<Row> = rows.iter().filter(|row| !row.ours).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.ours) {
        let same = peers.iter().filter(|peer| peer.comparable(row));
        let ratios =
            same.map(|peer| (peer.structure.clone(), ratio(peer.ns.median, row.ns.median)));
        row.ratio = ratios.collect();
    }
}

/// Names of our structures that lost a member, each once.
pub(crate) fn losers(rows: &[Row]) -> Vec<&str> {
    let lost = rows.iter().filter(|row| row.ours && row.lost.is_some_and(|lost| lost > 0));
    let mut names: Vec<_> = lost.map(|row| row.structure.as_str()).collect();
    names.dedup();
    names
}

/// All of it as one object.
pub(crate) fn json(machine: &Value, settings: &Value, notes: &[String], rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    json!({"machine": machine, "settings": settings, "notes": notes, "rows": rows})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(structure: &str, ours: bool, op: &'static str, ns: f64) -> Row {
        Row {
            section: "member",
            structure: structure.into(),
            ours,
            removes: false,
            op,
            size: Size::Keys(10),
            ns: Summary::of(&[ns]),
            bits_per_key: Some(8.0),
            fpr: Some(0.01),
            lost: Some(0),
            overestimate: None,
            ratio: BTreeMap::new(),
        }
    }

    #[test]
    fn only_our_rows_get_ratios_and_only_of_the_same_operation() {
        let mut rows = [
            row("ours", true, "insert", 10.0),
            row("peer", false, "insert", 25.0),
            row("peer", false, "remove", 99.0),
        ];
        compare(&mut rows);
        assert_eq!(rows[0].ratio, BTreeMap::from([("peer".into(), 2.5)]));
        assert!(rows[1].ratio.is_empty());
        assert_eq!(rows[0].json()["ratio"]["peer"], 2.5);
        assert_eq!(rows[1].json().get("ratio"), None);
        assert_eq!(rows[0].json()["keys"], 10);
    }

    #[test]
    fn a_peer_may_lose_members_and_we_may_not() {
        let mut rows = [row("ours", true, "insert", 1.0), row("peer", false, "insert", 1.0)];
        rows[1].lost = Some(3);
        assert!(losers(&rows).is_empty());
        rows[0].lost = Some(1);
        assert_eq!(losers(&rows), ["ours"]);
    }
}
