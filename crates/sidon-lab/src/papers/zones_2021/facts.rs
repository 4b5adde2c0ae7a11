//! What 003 prints, and what is right.
//!
//! The right values were computed, or simulated over the numbers of draws named here, without Sidon.
//! Elements and flows are numbered from 0, flow I being 0; lists that the paper prints as pictures
//! are written out.

use crate::claim::{
    Claim,
    Tolerance::{Absolute, AtMost, Exact, Relative},
    Value::{self, Nothing, Number, Text},
};

/// Figures 3, 4, 6 and 8, and the columns of section 5: worked examples.
pub static FIGURES: [Claim; 20] = [
    Claim::new(
        "003.fig3.hamming",
        "fig 3",
        "entries of H G that are not zero, and columns that the fourth covers",
        Text("none, and three"),
        Value::list(&[0.0, 3.0]),
        Exact,
    ),
    Claim::new(
        "003.fig4.superposition",
        "fig 4",
        "two squares of order 5, superposed: 25 pairs, none twice",
        Value::list(&[
            0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0,
            0.0, 0.0, 1.0, 2.0, 4.0, 3.0, 0.0, 4.0, 1.0, 0.0, 2.0, 1.0, 3.0, 3.0, 1.0, 4.0, 2.0,
            0.0, 3.0, 1.0, 4.0, 2.0, 0.0, 4.0, 3.0, 0.0, 4.0, 1.0, 0.0, 2.0, 1.0, 3.0, 2.0,
        ]),
        Value::list(&[
            0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0,
            0.0, 0.0, 1.0, 2.0, 4.0, 3.0, 0.0, 4.0, 1.0, 0.0, 2.0, 1.0, 3.0, 3.0, 1.0, 4.0, 2.0,
            0.0, 3.0, 1.0, 4.0, 2.0, 0.0, 4.0, 3.0, 0.0, 4.0, 1.0, 0.0, 2.0, 1.0, 3.0, 2.0,
        ]),
        Exact,
    ),
    Claim::new(
        "003.fig4.parity_bits",
        "s4.A",
        "elements under value 0 of the first square",
        Value::list(&[0.0, 9.0, 13.0, 17.0, 21.0]),
        Value::list(&[0.0, 9.0, 13.0, 17.0, 21.0]),
        Exact,
    ),
    Claim::new(
        "003.fig6.shape",
        "fig 6",
        "cells and elements for order 5 and a zone of 3",
        Value::list(&[20.0, 25.0]),
        Value::list(&[20.0, 25.0]),
        Exact,
    ),
    Claim::new(
        "003.fig6.column.0",
        "fig 6",
        "cells of flow I",
        Nothing,
        Value::list(&[0.0, 5.0, 10.0, 15.0]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig6.column.7",
        "fig 6",
        "cells of flow VIII",
        Nothing,
        Value::list(&[1.0, 7.0, 13.0, 19.0]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig6.column.10",
        "fig 6",
        "cells of flow XI",
        Nothing,
        Value::list(&[2.0, 5.0, 12.0, 19.0]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig6.column.13",
        "fig 6",
        "cells of flow XIV",
        Nothing,
        Value::list(&[2.0, 8.0, 10.0, 17.0]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig6.column.19",
        "fig 6",
        "cells of flow XX",
        Nothing,
        Value::list(&[3.0, 9.0, 12.0, 15.0]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.pol.column.7",
        "s5.C",
        "bits of element 7 of 343, p = 7, t = 3",
        Value::list(&[0.0, 8.0, 16.0, 24.0, 32.0]),
        Value::list(&[0.0, 8.0, 16.0, 24.0, 32.0]),
        Exact,
    ),
    Claim::new(
        "003.pol.column.50",
        "s5.C",
        "bits of element 50 of 343, p = 7, t = 3",
        Value::list(&[1.0, 9.0, 19.0, 24.0, 31.0]),
        Value::list(&[1.0, 9.0, 19.0, 24.0, 31.0]),
        Exact,
    ),
    Claim::new(
        "003.fig8.stage1",
        "fig 8",
        "the 20 counters after one flow",
        Nothing,
        Value::list(&[
            5.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0,
            0.0, 0.0, 0.0,
        ]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig8.stage2",
        "fig 8",
        "the 20 counters after two flows",
        Nothing,
        Value::list(&[
            5.0, 3.0, 0.0, 0.0, 0.0, 5.0, 0.0, 3.0, 0.0, 0.0, 5.0, 0.0, 0.0, 3.0, 0.0, 5.0, 0.0,
            0.0, 0.0, 3.0,
        ]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig8.stage3",
        "fig 8",
        "the 20 counters after three flows",
        Nothing,
        Value::list(&[
            5.0, 3.0, 4.0, 0.0, 0.0, 5.0, 0.0, 3.0, 4.0, 0.0, 9.0, 0.0, 0.0, 3.0, 0.0, 5.0, 0.0,
            4.0, 0.0, 3.0,
        ]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig8.stage4",
        "fig 8",
        "the 20 counters after four flows",
        Nothing,
        Value::list(&[
            5.0, 3.0, 4.0, 2.0, 0.0, 5.0, 0.0, 3.0, 4.0, 2.0, 9.0, 0.0, 2.0, 3.0, 0.0, 7.0, 0.0,
            4.0, 0.0, 3.0,
        ]),
        Exact,
    )
    .unprinted("the paper draws it in a figure; rebuilt from its text"),
    Claim::new(
        "003.fig8.query.XI",
        "fig 8",
        "counters of flow XI after four flows",
        Value::list(&[4.0, 5.0, 2.0, 3.0]),
        Value::list(&[4.0, 5.0, 2.0, 3.0]),
        Exact,
    ),
    Claim::new(
        "003.fig8.query.I",
        "fig 8",
        "counters of flow I after four flows",
        Value::list(&[5.0, 5.0, 9.0, 7.0]),
        Value::list(&[5.0, 5.0, 9.0, 7.0]),
        Exact,
    ),
    Claim::new(
        "003.fig8.query.XX",
        "fig 8",
        "counters of flow XX after four flows",
        Value::list(&[2.0, 2.0, 2.0, 7.0]),
        Value::list(&[2.0, 2.0, 2.0, 7.0]),
        Exact,
    ),
    Claim::new(
        "003.fig8.flow_numbers",
        "s6",
        "numbers of flows I, VIII, XIV and XX",
        Value::list(&[1.0, 7.0, 14.0, 20.0]),
        Value::list(&[1.0, 8.0, 14.0, 20.0]),
        Exact,
    )
    .wrong("VIII is eight; with the seventh column flow XI would read 4, 5, 5, 0"),
    Claim::new(
        "003.fig8.flow_XI",
        "s6",
        "estimates of flow XI, which has no traffic, after each flow",
        Value::list(&[0.0, 0.0, 0.0, 2.0]),
        Value::list(&[0.0, 0.0, 0.0, 2.0]),
        Exact,
    ),
];

/// Theorems 1 and 3, residues and Latin squares.
pub static ZONES: [Claim; 12] = [
    Claim::new("003.thm1.zone_s5", "theorem 1", "zones of 2 to 6 groups, order 5: by covering every element", Value::list(&[1.0, 2.0, 3.0, 4.0, 5.0]), Value::list(&[1.0, 2.0, 3.0, 4.0, 5.0]), Exact),
    Claim::new("003.thm1.zone_s16", "theorem 1", "zones of 4, 8, 16 and 17 groups, order 16", Value::list(&[3.0, 7.0, 15.0]), Value::list(&[3.0, 7.0, 15.0, 16.0]), Exact),
    Claim::new("003.ols.mod16_arithmetic", "s4", "zone of four groups of order 16 if squares are made modulo 16", Number(3.0), Number(2.0), Exact)
    .unprinted("the squares must come from GF(16): modulo 16, an even multiple of the row is no Latin square"),
    Claim::new("003.ols.max_groups", "s4", "most groups for orders 4, 5, 7, 8, 9, 11, 13, 16", Nothing, Value::list(&[5.0, 6.0, 8.0, 9.0, 10.0, 12.0, 14.0, 17.0]), Exact)
    .unprinted("the paper gives no limit: at most s + 1 groups"),
    Claim::new("003.ols.not_prime_power", "s4", "groups by the product construction for orders 6 to 24 that are no prime powers", Nothing, Value::list(&[3.0, 3.0, 4.0, 3.0, 4.0, 3.0, 5.0, 4.0, 4.0]), Exact)
    .unprinted("the paper is silent on these; their squares are products of squares of prime powers"),
    Claim::new("003.thm3.zone_p7_t3", "theorem 3", "zones of 3, 5 and 7 points of GF(7), t = 3, and of all with infinity", Value::list(&[1.0, 2.0]), Value::list(&[1.0, 2.0, 3.0, 3.0]), Exact)
    .wrong("the strict inequality shuts out sound codes, among them the paper's own with all seven points"),
    Claim::new("003.thm3.exhaustive_n343_d2", "theorem 3", "zone of five points, by covering each of 343 elements", Text(">= 2"), Number(2.0), Exact),
    Claim::new("003.egh.exact_zone.d3", "s3.B", "zone of the primes that the product rule takes for 3 of 256", Number(3.0), Number(3.0), Exact),
    Claim::new("003.egh.exact_zone.d7", "s3.B", "zone of the primes that the product rule takes for 7 of 256", Number(7.0), Number(8.0), Exact)
    .unprinted("the rule is sufficient, not necessary: the zone is a number of bins, less one"),
    Claim::new("003.egh.exact_zone.d15", "s3.B", "zone of the primes that the product rule takes for 15 of 256", Number(15.0), Number(18.0), Exact)
    .unprinted("the rule is sufficient, not necessary: the zone is a number of bins, less one"),
    Claim::new("003.egh.bin_packing_rule", "s3.B", "cases of 30 in which the bins and brute force differ", Nothing, Number(0.0), Exact)
    .unprinted("the paper has the sufficient condition only"),
    Claim::new("003.fig12.d2_thresholds", "fig 12", "active flows that it takes to overestimate an active flow, and an idle one, with a zone of 2", Value::list(&[3.0, 2.0]), Value::list(&[4.0, 3.0]), Exact)
    .wrong("by its own theorem 5 active flows are exact up to three and idle ones up to two"),
];

/// Tables 6 to 8, figure 9 and the lengths of section 5.
pub static LENGTHS: [Claim; 44] = [
    Claim::new("003.cm.params", "s1", "rows and columns of a Count-Min sketch for an error of a hundredth of the total in all but a hundredth of flows", Text("ceil(ln(1/delta)), ceil(e/epsilon)"), Value::list(&[5.0, 272.0]), Exact),
    Claim::new("003.pol.length_n343_d2", "s5.C", "bits of polynomials for 2 of 343", Number(35.0), Number(35.0), Exact),
    Claim::new("003.pol.ols_length_n343", "s5.C", "bits of Latin squares for 2 of 343", Text("19(d+1)"), Number(57.0), Exact),
    Claim::new("003.pol.shorter_any_d", "s5.C", "largest zone that 14 d + 7 bits have for 343 elements", Text("14d+7 for any d >= 1"), Number(3.0), Exact)
    .wrong("2 d + 1 points must be distinct modulo 7"),
    Claim::new("003.table6.egh.d3", "tables 6, 8", "bits and probes of residues by the first primes for 3 of 256", Value::list(&[100.0, 9.0]), Value::list(&[100.0, 9.0]), Exact),
    Claim::new("003.table7.egh.d3", "table 7", "matrix of residues by the first primes for 3 of 256", Number(25600.0), Number(25600.0), Exact),
    Claim::new("003.table6.ols.d3", "tables 6, 8", "bits and probes of Latin squares for 3 of 256", Value::list(&[64.0, 4.0]), Value::list(&[64.0, 4.0]), Exact),
    Claim::new("003.table7.ols.d3", "table 7", "matrix of Latin squares for 3 of 256", Number(16384.0), Number(16384.0), Exact),
    Claim::new("003.table6.pol.d3", "tables 6, 8", "bits and probes of polynomials for 3 of 256", Value::list(&[49.0, 7.0]), Value::list(&[49.0, 7.0]), Exact),
    Claim::new("003.table7.pol.d3", "table 7", "matrix of polynomials for 3 of 256", Number(12544.0), Number(12544.0), Exact),
    Claim::new("003.pol.min.d3.t2", "s5", "least order and bits for 3 of 256 and t = 2: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[17.0, 68.0, 16.0, 64.0, 16.0, 64.0, 64.0, 4.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.min.d3.t3", "s5", "least order and bits for 3 of 256 and t = 3: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[7.0, 49.0, 7.0, 49.0, 7.0, 49.0, 48.0, 7.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.min.d3.t4", "s5", "least order and bits for 3 of 256 and t = 4: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[11.0, 110.0, 11.0, 110.0, 9.0, 90.0, 82.0, 10.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.table6.egh.d7", "tables 6, 8", "bits and probes of residues by the first primes for 7 of 256", Value::list(&[328.0, 15.0]), Value::list(&[328.0, 15.0]), Exact),
    Claim::new("003.table7.egh.d7", "table 7", "matrix of residues by the first primes for 7 of 256", Number(83968.0), Number(83968.0), Exact),
    Claim::new("003.table6.ols.d7", "tables 6, 8", "bits and probes of Latin squares for 7 of 256", Value::list(&[128.0, 8.0]), Value::list(&[128.0, 8.0]), Exact),
    Claim::new("003.table7.ols.d7", "table 7", "matrix of Latin squares for 7 of 256", Number(32768.0), Number(32768.0), Exact),
    Claim::new("003.table6.pol.d7", "tables 6, 8", "bits and probes of polynomials for 7 of 256", Value::list(&[105.0, 15.0]), Value::list(&[128.0, 8.0]), Exact)
    .wrong("15 points repeat modulo 7: that filter has a zone of 3; the least sound one is over GF(16)"),
    Claim::new("003.table7.pol.d7", "table 7", "product of the printed length of polynomials for 7 of 256 and the universe", Number(26880.0), Number(26880.0), Exact),
    Claim::new("003.pol.min.d7.t2", "s5", "least order and bits for 7 of 256 and t = 2: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[17.0, 136.0, 16.0, 128.0, 16.0, 128.0, 128.0, 8.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.min.d7.t3", "s5", "least order and bits for 7 of 256 and t = 3: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[17.0, 255.0, 16.0, 240.0, 16.0, 240.0, 225.0, 15.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.min.d7.t4", "s5", "least order and bits for 7 of 256 and t = 4: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[23.0, 506.0, 23.0, 506.0, 23.0, 506.0, 484.0, 22.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.table6.egh.d15", "tables 6, 8", "bits and probes of residues by the first primes for 15 of 256", Value::list(&[1060.0, 25.0]), Value::list(&[1060.0, 25.0]), Exact),
    Claim::new("003.table7.egh.d15", "table 7", "matrix of residues by the first primes for 15 of 256", Number(271360.0), Number(271360.0), Exact),
    Claim::new("003.table6.ols.d15", "tables 6, 8", "bits and probes of Latin squares for 15 of 256", Value::list(&[256.0, 16.0]), Value::list(&[256.0, 16.0]), Exact),
    Claim::new("003.table7.ols.d15", "table 7", "matrix of Latin squares for 15 of 256", Number(65536.0), Number(65536.0), Exact),
    Claim::new("003.table6.pol.d15", "tables 6, 8", "bits and probes of polynomials for 15 of 256", Value::list(&[217.0, 31.0]), Value::list(&[256.0, 16.0]), Exact)
    .wrong("31 points repeat modulo 7: that filter has a zone of 3; the least sound one is over GF(16)"),
    Claim::new("003.table7.pol.d15", "table 7", "product of the printed length of polynomials for 15 of 256 and the universe", Number(55552.0), Number(55552.0), Exact),
    Claim::new("003.pol.min.d15.t2", "s5", "least order and bits for 15 of 256 and t = 2: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[17.0, 272.0, 16.0, 256.0, 16.0, 256.0, 256.0, 16.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.min.d15.t3", "s5", "least order and bits for 15 of 256 and t = 3: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[31.0, 961.0, 31.0, 961.0, 31.0, 961.0, 931.0, 31.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.min.d15.t4", "s5", "least order and bits for 15 of 256 and t = 4: primes, all fields, with infinity; cut; points", Nothing, Value::list(&[47.0, 2162.0, 47.0, 2162.0, 47.0, 2162.0, 2116.0, 46.0]), Exact)
    .unprinted("the paper has no rule for universes that are no powers"),
    Claim::new("003.pol.trunc48", "s5", "bits for 3 of 256 if the last group is cut to what occurs", Nothing, Number(48.0), Exact)
    .unprinted("not in the paper, whose code takes 49"),
    Claim::new("003.egh.coprime.d2", "s3.B", "bits of coprime moduli for 2 of 256", Nothing, Number(40.0), Exact)
    .unprinted("not in the paper, whose primes take 58"),
    Claim::new("003.egh.coprime.d3", "s3.B", "bits of coprime moduli for 3 of 256", Nothing, Number(70.0), Exact)
    .unprinted("not in the paper, whose primes take 100"),
    Claim::new("003.egh.coprime.d7", "s3.B", "bits of coprime moduli for 7 of 256", Nothing, Number(181.0), Exact)
    .unprinted("not in the paper, whose primes take 328"),
    Claim::new("003.detect.d7", "s8.D", "percentage of /24 subnets with at most eight sources, in three traces", Value::list(&[98.47, 98.7, 98.75]), Value::list(&[98.47, 98.7, 98.75]), Exact),
    Claim::new("003.fig13.length", "s8.C", "bits of polynomials for 3 of 1331", Number(77.0), Number(77.0), Exact),
    Claim::new("003.fig9.ols_range.d2", "fig 9", "last universe in which Latin squares for 2 are shorter than residues", Text("n < 256"), Number(361.0), Exact)
    .unprinted("true at powers of two; the crossing itself depends on how the order is rounded"),
    Claim::new("003.fig9.ols_range.d3", "fig 9", "last universe in which Latin squares for 3 are shorter than residues", Text("n < 256"), Number(1024.0), Exact)
    .unprinted("true at powers of two; the crossing itself depends on how the order is rounded"),
    Claim::new("003.fig9.ols_range.d4", "fig 9", "last universe in which Latin squares for 4 are shorter than residues", Text("n < 1024"), Number(2209.0), Exact)
    .unprinted("true at powers of two; the crossing itself depends on how the order is rounded"),
    Claim::new("003.fig9.pol_range.d2", "fig 9", "bits for 2 of 2000: polynomials modulo a prime, over any field, residues", Text("POL < EGH at 2000"), Value::list(&[65.0, 65.0, 77.0]), Exact),
    Claim::new("003.fig9.pol_range.d3", "fig 9", "bits for 3 of 16000: polynomials modulo a prime, over any field, residues", Text("POL < EGH at 16000"), Value::list(&[203.0, 189.0, 197.0]), Exact)
    .unprinted("over a prime field the residues are shorter here"),
    Claim::new("003.fig9.pol_range.d4", "fig 9", "bits for 4 of 64000: polynomials modulo a prime, over any field, residues", Text("POL < EGH at 64000"), Value::list(&[369.0, 369.0, 381.0]), Exact),
    Claim::new("003.fig12.reduction_m15", "s8.C", "percentage by which the printed 5.77 is below the printed 10.29", Number(43.9), Number(43.9261418853), Absolute(0.05)),
];

/// Equations 3 and 4 and figure 11. The right values are exact, by inclusion and exclusion.
pub static RATES: [Claim; 13] = [
    Claim::new(
        "003.fig11.ols.c4",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 4 members",
        Number(0.000303112538859),
        Number(0.000294226183829),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.ols.c5",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 5 members",
        Number(0.00133759230576),
        Number(0.00130702069709),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.ols.c6",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 6 members",
        Number(0.00354646875979),
        Number(0.00348715466415),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.ols.c8",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 8 members",
        Number(0.0129808976612),
        Number(0.0129103467447),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.ols.c10",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 10 members",
        Number(0.0307126789213),
        Number(0.0308538637286),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.ols.c15",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 15 members",
        Number(0.112930229908),
        Number(0.115700627596),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.ols.c20",
        "eq 3, fig 11",
        "false positives of Latin squares for 3 of 256 with 20 members",
        Number(0.234452821134),
        Number(0.243342287668),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.pol.c4",
        "eq 4, fig 11",
        "false positives of polynomials for 3 of 343 with 4 members",
        Number(0.00437311427089),
        Number(0.00121483262427),
        Relative(1e-9),
    )
    .wrong("equation 4 takes the groups for independent: 3.6 times the true rate"),
    Claim::new(
        "003.fig11.pol.c5",
        "eq 4, fig 11",
        "false positives of polynomials for 3 of 343 with 5 members",
        Number(0.0129336020887),
        Number(0.00654140643835),
        Relative(1e-9),
    )
    .wrong("equation 4 takes the groups for independent: 2.0 times the true rate"),
    Claim::new(
        "003.fig11.pol.c6",
        "eq 4, fig 11",
        "false positives of polynomials for 3 of 343 with 6 members",
        Number(0.0291333899092),
        Number(0.0192365065485),
        Relative(1e-9),
    )
    .wrong("equation 4 takes the groups for independent: 1.5 times the true rate"),
    Claim::new(
        "003.fig11.pol.c8",
        "eq 4, fig 11",
        "false positives of polynomials for 3 of 343 with 8 members",
        Number(0.0897411972792),
        Number(0.0747435797104),
        Relative(1e-9),
    )
    .wrong("equation 4 takes the groups for independent: 1.2 times the true rate"),
    Claim::new(
        "003.fig11.pol.c10",
        "eq 4, fig 11",
        "false positives of polynomials for 3 of 343 with 10 members",
        Number(0.185238929704),
        Number(0.169626819076),
        Relative(1e-9),
    ),
    Claim::new(
        "003.fig11.pol.c15",
        "eq 4, fig 11",
        "false positives of polynomials for 3 of 343 with 15 members",
        Number(0.481890284069),
        Number(0.477523534837),
        Relative(1e-9),
    ),
];

/// Theorem 5.
pub static THEOREM_5: [Claim; 1] = [Claim::new(
    "003.thm5.random",
    "theorem 5",
    "wrong estimates: all flows with d active, active ones with d + 1",
    Number(0.0),
    Number(0.0),
    Exact,
)];

/// Figure 12: 25 flows, five of them active. The first three right values are exact expectations, the others
/// come from 90,000 draws.
pub static FIG_12: [Claim; 6] = [
    Claim::new(
        "003.fig12.fpfz.m20.active",
        "fig 12",
        "mean overestimate of an active flow among five, 20 counters by Latin squares",
        Number(0.51),
        Number(0.49396323403),
        Absolute(0.06),
    ),
    Claim::new(
        "003.fig12.fpfz.m20.idle",
        "fig 12",
        "the same for an idle flow",
        Number(1.88),
        Number(1.88031856323),
        Absolute(0.06),
    ),
    Claim::new(
        "003.fig12.fpfz.m15.idle",
        "fig 12",
        "the same for an idle flow and 15 counters",
        Number(5.77),
        Number(5.74355339716),
        Absolute(0.06),
    ),
    Claim::new(
        "003.fig12.random.m20.active",
        "fig 12",
        "an active flow among five, 4 of 20 counters at random",
        Number(3.18),
        Number(3.1956952381),
        Absolute(0.15),
    ),
    Claim::new(
        "003.fig12.random.m20.idle",
        "fig 12",
        "the same for an idle flow",
        Number(6.06),
        Number(6.00844722222),
        Absolute(0.15),
    ),
    Claim::new(
        "003.fig12.random.m15.idle",
        "fig 12",
        "the same for an idle flow and 3 of 15 counters",
        Number(10.29),
        Number(10.4210327778),
        Absolute(0.15),
    ),
];

/// Figure 13: 1331 flows; from 90,000 draws.
pub static FIG_13: [Claim; 5] = [
    Claim::new(
        "003.fig13.idle.x5",
        "fig 13",
        "percentage less error of an idle flow, 5 active of 1331",
        Number(43.5),
        Number(41.7851070653),
        Absolute(6.0),
    ),
    Claim::new(
        "003.fig13.idle.x6",
        "fig 13",
        "percentage less error of an idle flow, 6 active of 1331",
        Number(25.7),
        Number(26.9224441293),
        Absolute(6.0),
    ),
    Claim::new(
        "003.fig13.idle.x10",
        "fig 13",
        "percentage less error of an idle flow, 10 active of 1331",
        Number(8.6),
        Number(7.2322613776),
        Absolute(6.0),
    ),
    Claim::new(
        "003.fig13.active.x5",
        "fig 13",
        "percentage less error of an active flow, 5 active of 1331",
        Number(69.5),
        Number(66.2450147654),
        Absolute(6.0),
    ),
    Claim::new(
        "003.fig13.active.x6",
        "fig 13",
        "percentage less error of an active flow, 6 active of 1331",
        Number(43.8),
        Number(41.7851070653),
        Absolute(6.0),
    ),
];

/// Section 8.D: sets of sources over the /24 subnets, in the proportions of table 5 (CHI16). The
/// paper measures no memory: the right values are expectations over the classes of the table, a
/// number of sources being as likely as another of its class.
pub static ADAPTIVE: [Claim; 4] = [
    Claim::new(
        "003.adaptive.wrong",
        "s8.D",
        "wrong answers about all hosts of all subnets, in three structures",
        Nothing,
        Number(0.0),
        Exact,
    )
    .unprinted("the paper's filter of zone 3 can err in one subnet of 18"),
    Claim::new(
        "003.adaptive.list",
        "s8.D",
        "bytes a subnet: a list, then a bitmap",
        Nothing,
        Number(8.2732),
        AtMost(32.0),
    )
    .unprinted("a bitmap takes 32"),
    Claim::new(
        "003.adaptive.zones",
        "s8.D",
        "bytes a subnet: codes of zone 3 and 7, then a bitmap",
        Nothing,
        Number(10.722),
        AtMost(32.0),
    )
    .unprinted("the paper's codes, promoted by listing their members"),
    Claim::new(
        "003.adaptive.pooled",
        "s8.D",
        "bytes a subnet: a word each, and a pool of bitmaps",
        Nothing,
        Number(8.7648),
        AtMost(32.0),
    )
    .unprinted("in memory that is fixed at the start"),
];
