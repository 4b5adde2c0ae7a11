//! The report for people: a table an operation and size, fastest first.

use crate::report::{Row, Size};
use comfy_table::{Cell, CellAlignment, Table, presets};

/// Prints every group of comparable rows, then how ours compare.
pub(crate) fn print(rows: &[Row]) {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| group[0].comparable(row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| a.ns.median.total_cmp(&b.ns.median));
        println!("\n{}, {}, {}", group[0].section, group[0].op, size(group[0].size));
        println!("{}", times(group));
    }
    let compared: Vec<&Row> = rows.iter().filter(|row| !row.ratio.is_empty()).collect();
    if !compared.is_empty() {
        println!(
            "\nours against peers of the same kind: peer's time / ours, above 1 ours is faster"
        );
        println!("{}", comparison(&compared, rows));
    }
}

fn times(group: &[&Row]) -> Table {
    let mut table = empty(&["structure", "ns", "min..max", "bits/key", "fpr", "too high", "lost"]);
    for row in group {
        let mark = if row.ours { "* " } else { "  " };
        let number = |value: Option<String>| right(value.unwrap_or_default());
        table.add_row(vec![
            Cell::new(format!("{mark}{}", row.structure)),
            right(format!("{:.1}", row.ns.median)),
            right(format!("{:.1}..{:.1}", row.ns.least, row.ns.most)),
            number(row.bits_per_key.map(|bits| format!("{bits:.2}"))),
            number(row.fpr.map(|fpr| format!("{fpr:.6}"))),
            number(row.overestimate.map(|mean| format!("{mean:.4}"))),
            number(row.lost.map(|lost| lost.to_string())),
        ]);
    }
    table
}

/// A peer of the same kind can do what ours can: keys leave both, or neither.
fn comparison(compared: &[&Row], rows: &[Row]) -> Table {
    let mut table = empty(&["structure", "op", "size", "ratios, worst first"]);
    for ours in compared {
        let peers = rows.iter().filter(|row| !row.ours && row.comparable(ours));
        let peers = peers.filter(|row| row.removes == ours.removes);
        let mut ratios: Vec<(&str, f64)> = peers
            .filter_map(|peer| Some((peer.structure.as_str(), *ours.ratio.get(&peer.structure)?)))
            .collect();
        ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
        let ratios: Vec<String> =
            ratios.iter().map(|(peer, ratio)| format!("{peer} {ratio:.2}")).collect();
        table.add_row(vec![
            Cell::new(&ours.structure),
            Cell::new(ours.op),
            right(size(ours.size)),
            Cell::new(ratios.join(", ")),
        ]);
    }
    table
}

fn empty(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn size(size: Size) -> String {
    match size {
        Size::Keys(keys) => format!("{keys} keys"),
        Size::Bytes(bytes) => format!("{} KiB", bytes >> 10),
    }
}
