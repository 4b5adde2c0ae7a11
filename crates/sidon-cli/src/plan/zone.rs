//! `sidon plan zone`: few numbers of a universe, without a false positive.

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
    /// Write JSON: {"rows": [{"code", "bits", "probes", "zone", "matrix_bits", "shape"}]}, a row of
    /// polynomials that can be cut with "cut": {"bits", "zone", "shape"}; with --crossovers {"rows":
    /// [{"code", "from", "to"}]}
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.crossovers {
        return crossovers(args);
    }
    let rows = plan::zones(Few { universe: args.universe, members: args.members })?;
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
                "probes": row.probes,
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
    let lines = rows.iter().map(|row| {
        vec![
            if is_cut(row) { "pol, cut".to_owned() } else { row.held.name().to_owned() },
            show::whole(row.bits),
            show::whole(row.probes),
            show::whole(row.zone),
            show::whole(matrix(row)),
            super::shape_text(&shape_json(row)),
        ]
    });
    show::print(&show::table(&["code", "bits", "probes", "zone", "matrix bits", "shape"], lines))?;
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
