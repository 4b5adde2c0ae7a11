//! `sidon plan zone`: small sets of small numbers, without false positives.

use super::worth::{excess, zone_floor};
use crate::{
    args::{number::whole, refusal},
    show,
};
use serde_json::{Value, json};
use sidon::{plan::zone::Target, zone::Shape};
use sidon_lab::formulas::zone::{self, Held, Way};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keys are the numbers from 0 to N - 1
    #[arg(long, value_name = "N", value_parser = whole)]
    universe: u64,
    /// Most keys that are stored at a time
    #[arg(long, value_name = "D", value_parser = whole)]
    members: u64,
    /// List the universes up to --universe in which a code (ols, pol) is shorter than the residues
    /// (egh), instead of the plan
    #[arg(long)]
    crossovers: bool,
    /// Write JSON: {"rows": [{"code", "bits", "floor_bits", "excess", "probes", "lines", "zone",
    /// "deletes", "merges", "grows", "ages", "matrix_bits", "shape"}]}; the row of polynomials also
    /// has "cut": {"bits", "zone", "shape"} if its last group can be cut. With --crossovers:
    /// {"rows": [{"code", "from", "to"}]}
    #[arg(long)]
    json: bool,
}

fn target(args: &Args) -> Target {
    Target { universe: args.universe, members: args.members }
}

/// The rows of the plan, or an error that names the option to change.
fn rows(args: &Args) -> anyhow::Result<Vec<Way>> {
    zone::ways(target(args)).map_err(|why| refusal(why, option))
}

fn option(name: &str) -> Option<&'static str> {
    match name {
        "universe" => Some("--universe"),
        "members" => Some("--members"),
        _ => None,
    }
}

/// Lines of 64 bytes that a lookup reads. A lookup in a code reads at most one line per probe.
fn lines(row: &Way) -> u64 {
    let all = row.bits.div_ceil(512);
    match row.held {
        Held::List(_) | Held::ListThenBloom(..) => all,
        _ => row.probes.min(all),
    }
}

/// Whether members can be removed: from a list and a bitmap, not from bits that members share.
fn deletes(row: &Way) -> bool {
    matches!(row.held, Held::List(_) | Held::Bitmap)
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let (n, d, floor) = (args.universe, args.members, zone_floor(target(args)));
    let mut all =
        vec![format!("floor = log2(sum of C({n}, i) for i = 0 .. {d}) = {floor:.3} bits")];
    for row in rows(args)? {
        let formula = match (&row.held, row.held.code()) {
            (_, Some(Shape::Egh(shape))) => {
                let moduli: Vec<_> = shape.moduli.iter().map(u32::to_string).collect();
                format!(
                    "the sum of pairwise coprime moduli such that no {d} residues cover another \
                     number:\n  {}",
                    moduli.join(" + ")
                )
            }
            (_, Some(Shape::Ols(shape))) => {
                format!("(d + 1) s with s^2 >= n: {} * {}", shape.groups, shape.order)
            }
            (_, Some(Shape::Pol(shape))) => format!(
                "((t - 1) d + 1) q with q^t >= n and q points, q + 1 with infinity:\n  {} * {}, t = {}{}",
                shape.groups,
                shape.order,
                shape.digits,
                if shape.infinity { ", the last group cut to what occurs" } else { "" },
            ),
            (Held::List(width), _) => format!("d numbers of {width} bits, and their number"),
            (Held::ListThenBloom(width, filter), _) => format!(
                "d numbers of {width} bits, their number, and a Bloom filter of {} bits for more",
                filter.bits
            ),
            _ => "one bit per number".to_owned(),
        };
        all.push(format!(
            "\n{}: {formula}\n  = {} bits, {} over the floor",
            if is_cut(&row) { "pol, cut" } else { row.held.name() },
            show::whole(row.bits),
            excess(row.bits as f64, floor)
        ));
    }
    Ok(all)
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.crossovers {
        return crossovers(args);
    }
    let (rows, floor) = (rows(args)?, zone_floor(target(args)));
    let matrix = |row: &Way| match row.held {
        Held::List(_) | Held::Bitmap | Held::ListThenBloom(..) => 0,
        _ => row.bits.saturating_mul(args.universe),
    };
    if args.json {
        let cut = rows.iter().find(|row| is_cut(row));
        let plain = rows.iter().filter(|row| !is_cut(row)).map(|row| {
            let mut json = json!({
                "code": row.held.name(),
                "bits": row.bits,
                "floor_bits": floor,
                "excess": row.bits as f64 / floor - 1.0,
                "probes": row.probes,
                "lines": lines(row),
                "deletes": deletes(row),
                "merges": true,
                "grows": false,
                "ages": false,
                "zone": row.zone,
                "matrix_bits": matrix(row),
                "shape": shape_json(row),
            });
            if let (Held::Code(Shape::Pol(_)), Some(cut)) = (&row.held, cut) {
                let shape = shape_json(cut);
                json["cut"] = json!({ "bits": cut.bits, "zone": cut.zone, "shape": shape });
            }
            json
        });
        return show::json_rows(plain.collect());
    }
    let table = rows.iter().map(|row| {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        vec![
            if is_cut(row) { "pol, cut".to_owned() } else { row.held.name().to_owned() },
            show::whole(row.bits),
            excess(row.bits as f64, floor),
            show::whole(row.probes),
            show::whole(lines(row)),
            yes(deletes(row)),
            show::whole(row.zone),
            show::whole(matrix(row)),
            super::shape_text(&shape_json(row)),
        ]
    });
    let head = [
        "code",
        "bits",
        "over floor",
        "probes",
        "lines",
        "deletes",
        "zone",
        "matrix bits",
        "shape",
    ];
    show::print(&show::table(&head, table))?;
    show::print(&show::folded(&format!(
        "\nThe floor: fewer than {floor:.1} bits cannot distinguish all these sets. All rows can be \
         merged; none grows or ages."
    )))?;
    let advice = match rows.first().map(|row| &row.held) {
        Some(Held::List(_)) => {
            "\nTo store the members and no more, a list of them is the smallest: take that. A code \
             is for summaries that are merged or added without decoding, and for lookups without a \
             branch."
        }
        Some(Held::Bitmap) => "\nOne bit per key is the smallest here: take that.",
        _ => return Ok(()),
    };
    show::print(&show::folded(advice))
}

fn is_cut(row: &Way) -> bool {
    matches!(row.held, Held::Cut(_))
}

fn crossovers(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.universe <= 1 << 20,
        "--universe {} is too large for --crossovers, which tries every universe; type --universe \
         1048576 or less",
        args.universe
    );
    let [squares, cubes] =
        zone::crossovers(args.members, args.universe).map_err(|why| refusal(why, option))?;
    let named =
        |code: &'static str, runs: Vec<(u64, u64)>| runs.into_iter().map(move |run| (code, run));
    let runs = named("ols", squares).chain(named("pol", cubes));
    if args.json {
        let rows = runs.map(|(code, (from, to))| json!({ "code": code, "from": from, "to": to }));
        return show::json_rows(rows.collect());
    }
    let lines =
        runs.map(|(code, (from, to))| vec![code.to_owned(), show::whole(from), show::whole(to)]);
    show::print(&show::table(&["shorter than egh", "from universe", "to"], lines))
}

fn shape_json(row: &Way) -> Value {
    match (&row.held, row.held.code()) {
        (_, Some(Shape::Egh(shape))) => json!({ "moduli": shape.moduli }),
        (_, Some(Shape::Ols(shape))) => json!({ "order": shape.order, "groups": shape.groups }),
        (_, Some(Shape::Pol(shape))) => json!({
            "order": shape.order,
            "digits": shape.digits,
            "groups": shape.groups,
            "infinity": shape.infinity,
        }),
        (Held::List(width), _) => json!({ "members": row.zone, "width": width }),
        (Held::ListThenBloom(width, filter), _) => json!({
            "members": row.zone,
            "width": width,
            "bits": filter.bits,
            "hashes": filter.hashes,
        }),
        _ => json!({}),
    }
}
