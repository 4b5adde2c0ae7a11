//! `sidon plan zone`: few numbers of a universe, without a false positive.

use super::{
    relaxed,
    worth::{excess, zone_floor},
};
use crate::show;
use serde_json::{Value, json};
use sidon::{
    plan::{self, Few, Held, Zone},
    zone::Shape,
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Keys are the numbers below this
    #[arg(long, value_name = "N", value_parser = super::whole)]
    universe: u64,
    /// How many are in at a time, at the most
    #[arg(long, value_name = "D", value_parser = super::whole)]
    members: u64,
    /// In which universes up to --universe a code is shorter than the residues, in place of the plan
    #[arg(long)]
    crossovers: bool,
    /// Write JSON: {"rows": [{"code", "bits", "floor_bits", "excess", "probes", "lines", "zone",
    /// "deletes", "merges", "grows", "ages", "matrix_bits", "shape"}]}, a row of
    /// polynomials that can be cut with "cut": {"bits", "zone", "shape"}; with --crossovers {"rows":
    /// [{"code", "from", "to"}]}
    #[arg(long)]
    json: bool,
}

fn few(args: &Args) -> Few {
    Few { universe: args.universe, members: args.members }
}

/// The rows that are asked for, or what to relax.
fn rows(args: &Args) -> anyhow::Result<Vec<Zone>> {
    plan::zones(few(args)).map_err(|why| {
        relaxed(why, |name| match name {
            "universe" => Some("--universe"),
            "members" => Some("--members"),
            _ => None,
        })
    })
}

/// Lines of 64 bytes that a lookup reads: of a code at most one a probe, and no more than it has.
fn lines(row: &Zone) -> u64 {
    let all = row.bits.div_ceil(512);
    match row.held {
        Held::List(_) => all,
        _ => row.probes.min(all),
    }
}

/// Whether members can leave: from a list and a bitmap, not from bits that members share.
fn deletes(row: &Zone) -> bool {
    matches!(row.held, Held::List(_) | Held::Bitmap)
}

pub(super) fn explain(args: &Args) -> anyhow::Result<Vec<String>> {
    let (n, d, floor) = (args.universe, args.members, zone_floor(few(args)));
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
                "((t - 1) d + 1) q with q^t >= n and q points, q + 1 with infinity: {} * {}, t = {}{}",
                shape.groups,
                shape.order,
                shape.digits,
                if shape.infinity { ", the last group cut to what occurs" } else { "" },
            ),
            (Held::List(width), _) => format!("d numbers of {width} bits, and how many there are"),
            _ => "a bit for every number".to_owned(),
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
    let (rows, floor) = (rows(args)?, zone_floor(few(args)));
    let matrix = |row: &Zone| match row.held {
        Held::List(_) | Held::Bitmap => 0,
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
    show::print(&format!(
        "\nSets of so few of so many cannot be told apart in less than {floor:.1} bits. All of \
         these unite; none grows or ages."
    ))?;
    let advice = match rows.first().map(|row| &row.held) {
        Some(Held::List(_)) => {
            "\nTo hold the members and nothing else, a list of them is the smallest: take that. A \
             code is for\nsummaries that are united or added without looking inside, and for probes \
             without a branch."
        }
        Some(Held::Bitmap) => "\nA bit for every key is the smallest here: take that.",
        _ => return Ok(()),
    };
    show::print(advice)
}

fn is_cut(row: &Zone) -> bool {
    matches!(row.held, Held::Cut(_))
}

fn crossovers(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.universe <= 1 << 20,
        "--crossovers looks at every universe: at most 1,048,576 of them"
    );
    let [squares, cubes] = plan::crossovers(args.members, args.universe)?;
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

fn shape_json(row: &Zone) -> Value {
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
        _ => json!({}),
    }
}
