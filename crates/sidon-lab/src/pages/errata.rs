//! Where the papers are wrong, or loose, with the derivation or a counterexample.
//!
//! One entry lists all claims that err for one reason. Every claim whose printed number is wrong is
//! here, and no other.

use crate::{
    claim::{Value, short},
    row::Row,
};

/// A mistake of a paper: its claims, its name and the reason.
#[derive(Debug)]
pub struct Erratum {
    /// The claims that are wrong by it.
    pub ids: &'static [&'static str],
    /// Where and what.
    pub title: &'static str,
    /// The derivation or the counterexample.
    pub why: &'static str,
}

/// What cannot be as printed, in the order of the claims.
pub const WRONG: [Erratum; 17] = [
    Erratum {
        ids: &["000.sbf.member_dk.limit"],
        title: "section 3.3: an exponent that lacks the number of cells",
        why: "Each of the k (n - n_i) writes of the other values hits a given cell with chance 1/m, \
              so it is spared with chance about e^(-k (n - n_i) / m). Without the division the \
              power is zero for any real filter, and every member would be unknown.",
    },
    Erratum {
        ids: &["001.dbf.sign"],
        title: "section 3.1: a lost minus sign",
        why: "A cell is spared by k n writes with chance e^(-k n / m); as printed, 1 - e^(k n / m) \
              is -1.014 at ten cells a flow and seven hashes, and no chance at all.",
    },
    Erratum {
        ids: &["002.cmp.r14_ratio"],
        title: "section 4: over a hundred times fewer false positives",
        why: "At 14 bits of remainder both filters have 64/3 bits a key: 24 / 2^14 = 0.001465 \
              for d-left, 0.6185^(16/3) = 0.0771 for counters of four bits. Their ratio is 52.6. A \
              hundred is passed at 16 bits.",
    },
    Erratum {
        ids: &["002.counter.five_share.true"],
        title: "section 5.1: five keys that share a fingerprint",
        why: "The first of five keys may have any of the B R values; only the other four must meet \
              it. The union bound is C(m, 5) / (B R)^4, which is 2^25 times what is printed.",
    },
    Erratum {
        ids: &["002.sim.fpr_range"],
        title: "section 5.1: the range of rates seen",
        why: "A rate from 10,000 lookups is a multiple of 0.0001 that spreads by 0.00038; over \
              10,000 trials its extremes lie near 0.0003 and 0.0031. The printed range is that of \
              100,000 lookups a trial.",
    },
    Erratum {
        ids: &["002.fluid.load6_5.elements", "002.sim.overflow6_5.m53428"],
        title: "section 5.2: 53,428 keys",
        why: "6.5 keys in each of 8192 buckets are 53,248: two digits changed places. The printed \
              number of trials with an overflow fits 53,248 keys; with 53,428 it is more than twice \
              as many.",
    },
    Erratum {
        ids: &["002.fluid.overload_per_table"],
        title: "section 5.1: overfull buckets of a table",
        why: "1.7e-27 is the share of buckets that would hold nine. A table has 8192 of them, so \
              1.4e-23 are expected.",
    },
    Erratum {
        ids: &["002.fluid.load6_5.expected_overflows"],
        title: "section 5.2: expected overflows",
        why: "The share of full buckets times the insertions is not the number of overflows: a key \
              is refused when its bucket is full in every subtable, which is the product over the \
              subtables of their own shares. At the load of distinct fingerprints that is 0.0257 a \
              trial, and 0.0254 was observed.",
    },
    Erratum {
        ids: &["003.fig8.flow_numbers"],
        title: "figure 8: flow VIII",
        why: "The text lists its flows as 1, 7, 14 and 20. VIII is eight: with the seventh column \
              flow XI would read 4, 5, 5, 0, and not the 4, 5, 2, 3 of the caption.",
    },
    Erratum {
        ids: &["003.thm3.zone_p7_t3"],
        title: "theorem 3: a strict inequality",
        why: "Two polynomials of three digits agree in at most two points, so (t - 1) d + 1 points \
              are enough, and a field of q elements has q of them, with infinity q + 1. The strict \
              form shuts out seven points of GF(7), which the paper itself uses for 3 of 343.",
    },
    Erratum {
        ids: &["003.fig12.d2_thresholds"],
        title: "section 8.C: when 15 counters begin to overestimate",
        why: "By theorem 5 a zone of 2 keeps idle flows exact beside two active ones, and active \
              flows exact among three. An error takes three and four active flows, not two and \
              three.",
    },
    Erratum {
        ids: &["003.pol.shorter_any_d"],
        title: "section 5.C: 14 d + 7 bits for any d",
        why: "The 2 d + 1 points must differ modulo 7. There are seven, so d is at most 3.",
    },
    Erratum {
        ids: &["003.table6.pol.d7"],
        title: "tables 6 to 8: polynomials for 7 of 256 in 105 bits",
        why: "Fifteen points repeat modulo 7, and a repeated point adds bits and tells nothing \
              apart. The four elements 7, 79, 80 and 92 make 0 pass, so the zone is 3. The least \
              sound polynomials take 128 bits, over GF(16) with two digits. The product in table 7 is \
              right for the printed length.",
    },
    Erratum {
        ids: &["003.table6.pol.d15"],
        title: "tables 6 to 8: polynomials for 15 of 256 in 217 bits",
        why: "Thirty-one points repeat modulo 7. The four elements 7, 73, 90 and 96 make 0 pass. \
              The least sound polynomials take 256 bits, as many as a bitmap. The product in table 7 is \
              right for the printed length.",
    },
    Erratum {
        ids: &["003.fig11.pol.c4", "003.fig11.pol.c5", "003.fig11.pol.c6", "003.fig11.pol.c8"],
        title: "equation 4: groups taken for independent",
        why: "Just beyond the zone a non-member passes only if its groups are shared out among the \
              members, two at the most to each; inclusion and exclusion count that exactly. Taken \
              for independent, the groups give 3.6 times the true rate with four members, and 1.2 \
              times with eight.",
    },
    Erratum {
        ids: &["004.table2.h3_l4", "004.table2.h12_l3"],
        title: "table 2: two values that equation 1 does not give",
        why: "For h = 3 and four increments equation 1 gives 0.01527; 0.01521 is what figure 5 \
              quotes for a simulation. For h = 12 and three increments it gives 0.02728; 0.02902 is \
              its value at h = 4.",
    },
    Erratum {
        ids: &["004.thm3.pk_sign"],
        title: "theorem 3: how two numbers of hashes are mixed",
        why: "To have k hashes on average, the lower number has the share ceil(k) - k. The printed \
              difference is the other way round, and negative: -0.2 for 5.2 hashes.",
    },
];

/// Printed numbers that are rounded too far, or depend on a choice that the paper does not state.
pub const LOOSE: [Erratum; 5] = [
    Erratum {
        ids: &["001.dbf.base"],
        title: "section 3.1: 0.6 to a power",
        why: "The base is 2^(-ln 2) = 0.6185. Rounded to one digit and raised to the tenth power \
              it gives 0.0060 for 0.0082.",
    },
    Erratum {
        ids: &["004.fig5.bh_improved_best_k.30", "004.fig5.bh_improved_best_k.50"],
        title: "figure 5: hashes of the improved scheme",
        why: "The printed rates belong to the number of hashes that suits the basic scheme. The \
              improved one excludes more and is best with more: six at 30 bits a key, eleven at 50.",
    },
    Erratum {
        ids: &["004.table1.vi_D4.min_m"],
        title: "table 1: counters for increments 4 to 7",
        why: "12,842 counters are needed with five hashes. With seven 12,331 do.",
    },
    Erratum {
        ids: &["004.table1.bh_improved.main"],
        title: "table 1: memory of the improved scheme",
        why: "The number of hashes is not given. Over all of them nine need least, 10.75 KB, where \
              11.31 is printed.",
    },
    Erratum {
        ids: &["004.table1.ml_D4.layers"],
        title: "table 1: sizes of layers",
        why: "802, 100 and 6 counters are printed and no rule for them. At five hashes 425, 53 and \
              5 counters spill; at seven 962 spill into the second layer, more than it has.",
    },
];

/// The section of a page: what of it touches these rows.
pub fn section(rows: &[Row]) -> String {
    let mut page = "## Errata\n\n".to_owned();
    page += &list(&WRONG, rows);
    page += "\n### Rounded or underspecified\n\nThese numbers are rounded too far, or depend on a \
             choice that the paper does not state. They are not wrong.\n\n";
    page += &list(&LOOSE, rows);
    page
}

fn list(errata: &[Erratum], rows: &[Row]) -> String {
    let (mut page, mut number) = (String::new(), 0);
    for Erratum { ids, title, why } in errata {
        let touched: Vec<_> = rows.iter().filter(|row| ids.contains(&row.claim.id)).collect();
        if touched.is_empty() {
            continue;
        }
        number += 1;
        let paper = &ids[0][..3];
        page.push_str(&format!("{number}. **{paper}, {title}.** {why}\n"));
        for row in touched {
            let claim = row.claim;
            page.push_str(&format!(
                "   - {}: printed {}, right {}, ours {}\n",
                claim.id,
                full(&claim.paper),
                full(&claim.expected),
                full(&row.measured)
            ));
        }
    }
    if number == 0 {
        page.push_str("None among these claims.\n");
    }
    page
}

/// A value with all its numbers.
fn full(value: &Value) -> String {
    match value {
        Value::Numbers(numbers) => {
            let all: Vec<_> = numbers.iter().map(|&number| short(number)).collect();
            all.join(", ")
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Said, papers};
    use std::collections::BTreeSet;

    #[test]
    fn the_errata_are_the_claims_that_are_wrong_rounded_or_underspecified() {
        let claims = papers::ALL.iter().flat_map(|paper| paper.experiments).flat_map(|e| e.claims);
        let (mut wrong, mut loose) = (BTreeSet::new(), BTreeSet::new());
        for claim in claims {
            match claim.said {
                Said::Wrong(_) => wrong.insert(claim.id),
                Said::Rounded(_) | Said::Underspecified(_) => loose.insert(claim.id),
                Said::Right | Said::Nothing(_) => true,
            };
        }
        for (errata, claims) in [(&WRONG[..], wrong), (&LOOSE[..], loose)] {
            let listed: Vec<_> = errata.iter().flat_map(|erratum| erratum.ids).copied().collect();
            assert_eq!(listed.len(), claims.len());
            assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), claims);
        }
    }
}
