//! What 004 prints, and what is right.
//!
//! The right values were computed, or simulated, without Sidon. KB are 1024 bytes. Yes is 1, no 0.

use crate::claim::{
    Claim,
    Tolerance::{Absolute, Exact, Relative},
    Value::{self, Nothing, Number, Text},
};

/// Sections II and III: sequences, by enumeration.
pub static SEQUENCES: [Claim; 15] = [
Claim::new("004.ex1.sums3", "example 1", "all sums of three of {1, 4, 8, 13}", Value::list(&[3.0, 6.0, 10.0, 15.0, 9.0, 13.0, 18.0, 17.0, 22.0, 27.0, 12.0, 16.0, 21.0, 20.0, 25.0, 30.0, 24.0, 29.0, 34.0, 39.0]), Value::list(&[3.0, 6.0, 10.0, 15.0, 9.0, 13.0, 18.0, 17.0, 22.0, 27.0, 12.0, 16.0, 21.0, 20.0, 25.0, 30.0, 24.0, 29.0, 34.0, 39.0]), Exact),
Claim::new("004.ex2.sums2", "example 2", "all sums of two of them", Value::list(&[2.0, 5.0, 9.0, 14.0, 8.0, 12.0, 17.0, 16.0, 21.0, 26.0]), Value::list(&[2.0, 5.0, 9.0, 14.0, 8.0, 12.0, 17.0, 16.0, 21.0, 26.0]), Exact),
Claim::new("004.ex1.not_B4", "example 1", "whether sums of three, and of four, are distinct", Text("4+4+4+4 = 1+1+1+13"), Value::list(&[1.0, 0.0]), Exact),
Claim::new("004.ex5.tilde", "example 5", "whether {3, 4} is a tilde-B_2 sequence", Number(1.0), Number(1.0), Exact),
Claim::new("004.bh.count48", "s8.D", "B_3 sequences of four increments from 1 to 15 at the most", Number(48.0), Number(48.0), Exact),
Claim::new("004.bh.max_size", "s8.D", "longest B_h sequence up to 15, for h = 1, 2, 3, 4, 12, 13, 14", Text("15, 5, 4, -, 3, -, -"), Value::list(&[15.0, 5.0, 4.0, 3.0, 3.0, 3.0, 2.0]), Exact),
Claim::new("004.bh.example.1_2_4_8_13.h2", "table II", "whether {1, 2, 4, 8, 13} is a B_2 sequence", Number(1.0), Number(1.0), Exact),
Claim::new("004.bh.example.1_2_5_14.h3", "table II", "whether {1, 2, 5, 14} is a B_3 sequence", Number(1.0), Number(1.0), Exact),
Claim::new("004.bh.example.1_2_15.h12", "table II", "whether {1, 2, 15} is a B_12 sequence", Number(1.0), Number(1.0), Exact),
Claim::new("004.bh.example.1_2_15.h13", "table II", "whether it is a B_13 sequence", Nothing, Number(1.0), Exact).unprinted("only h = 12 is claimed"),
Claim::new("004.bh.example.1_4_13_15.h3", "table II", "whether {1, 4, 13, 15} is a B_3 sequence", Number(1.0), Number(1.0), Exact),
Claim::new("004.vi.gaps", "s4, table I", "numbers that no increments of {8, 12, 14, 15} add up to", Text("a table of 225 bits"), Value::list(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 10.0, 11.0, 13.0, 17.0, 18.0, 19.0, 21.0, 25.0, 33.0]), Exact),
Claim::new("004.bh.table_bits.h3", "s4, s8.B", "bits of the decoding table for up to three keys", Number(135.0), Number(93.0), Exact),
Claim::new("004.bh.table_bits.h6", "s4, s8.B", "bits of the decoding table for up to six keys", Number(540.0), Number(456.0), Exact),
Claim::new("004.lower_bound.35", "s7, eq 10", "multisets of up to three of four increments, and the bits to tell them", Text("35, ceil(log2 35)"), Value::list(&[35.0, 6.0]), Exact),
];

/// Figures 1 and 2: cells worked through.
pub static EXAMPLES: [Claim; 5] = [
Claim::new("004.fig1.query", "fig 1(c)", "which of three counters admit the increment asked for", Value::list(&[0.0, 0.0, 1.0]), Value::list(&[0.0, 0.0, 1.0]), Exact),
Claim::new("004.ex3.insert", "example 3", "keys and sum of entries 1, 3, 5 and 7 after two insertions", Value::list(&[1.0, 8.0, 1.0, 4.0, 1.0, 13.0, 1.0, 4.0]), Value::list(&[1.0, 8.0, 1.0, 4.0, 1.0, 13.0, 1.0, 4.0]), Exact),
Claim::new("004.ex4.basic", "example 4", "which of four entries admit the key, up to three keys examined", Value::list(&[0.0, 1.0, 0.0, 1.0]), Value::list(&[0.0, 1.0, 0.0, 1.0]), Exact),
Claim::new("004.ex4.decompositions", "example 4", "the increments behind three keys that sum to 25, and to 30", Value::list(&[4.0, 8.0, 13.0, 4.0, 13.0, 13.0]), Value::list(&[4.0, 8.0, 13.0, 4.0, 13.0, 13.0]), Exact),
Claim::new("004.ex7.improved", "example 7", "whether four keys that sum to 13 admit 8, all examined", Number(0.0), Number(0.0), Exact),
];

/// Theorems 1 and 2 and equation 9, without sampling.
pub static RATES: [Claim; 20] = [
Claim::new("004.fD.4", "example 6", "cases of four keys that rule an increment out, and all cases", Value::list(&[282.0, 324.0]), Value::list(&[282.0, 324.0]), Exact),
Claim::new("004.fD.curve", "fig 4", "detection function for 0 to 15 keys", Nothing, Value::list(&[1.0, 1.0, 1.0, 1.0, 0.87037, 0.658436, 0.393004, 0.248743, 0.149215, 0.085315, 0.046749, 0.024676, 0.012603, 0.006253, 0.003024, 0.00143]), Absolute(1e-6)).unprinted("the curve is a picture; four keys are the only value printed"),
Claim::new("004.thm2.coefficients", "lemma 1, theorem 2", "whether the coefficients of equation 4 are those of enumeration", Number(1.0), Number(1.0), Exact),
Claim::new("004.fig5.bh_improved_best_k.30", "s8.A", "improved B_h rate at 30 bits a key and its own best hashes", Number(0.0097), Number(0.00900656953927), Relative(1e-6)).wrong("printed at the hashes that suit the basic scheme; six are best"),
Claim::new("004.fig5.bh_improved_best_k.50", "s8.A", "the same at 50 bits a key", Number(0.00048), Number(0.000389555801244), Relative(1e-6)).wrong("printed at the hashes that suit the basic scheme; eleven are best"),
Claim::new("004.eq9.equals_enumeration", "eq 9", "equation 9 against the walk through all values", Number(0.00976334440405), Number(0.00976334440405), Relative(1e-9)),
Claim::new("004.bh.best_of_48", "s8.D", "best of the B_3 sequences at 30 bits a key", Value::list(&[1.0, 4.0, 13.0, 15.0]), Value::list(&[1.0, 3.0, 12.0, 15.0, 1.0, 4.0, 13.0, 15.0]), Exact),
Claim::new("004.vi.best_D", "s8.A", "best set of four increments up to 15", Value::list(&[8.0, 12.0, 14.0, 15.0]), Value::list(&[8.0, 12.0, 14.0, 15.0]), Exact),
Claim::new("004.vi.bits_for_cbf50", "s8.A", "bits a key at which {8, 12, 14, 15} errs as a counting filter at 50", Number(32.0), Number(32.7), Absolute(0.1)),
Claim::new("004.fig6.L2", "s8.C, fig 6", "rate of [2, 3] at 30 bits a key", Number(0.01388), Number(0.0138991157977), Relative(1e-6)),
Claim::new("004.fig6.L4", "s8.C, fig 6", "rate of [4, 7] at 30 bits a key", Number(0.00825), Number(0.00824839686366), Relative(1e-6)),
Claim::new("004.fig6.L8", "s8.C, fig 6", "rate of [8, 15] at 30 bits a key", Number(0.00841), Number(0.00837553397755), Relative(1e-6)),
Claim::new("004.fig6.L16", "s8.C, fig 6", "rate of [16, 31] at 30 bits a key", Number(0.01105), Number(0.011020851457), Relative(1e-6)),
Claim::new("004.table2.h1_l15", "table II", "B_1 of 15 increments: rate and best hashes", Value::list(&[0.0463, 2.0]), Value::list(&[0.0462953931509, 2.0]), Relative(1e-6)),
Claim::new("004.table2.h2_l5", "table II", "B_2 of 5 increments: rate and best hashes", Value::list(&[0.01963, 4.0]), Value::list(&[0.0196256432288, 4.0]), Relative(1e-6)),
Claim::new("004.table2.h3_l4", "table II", "B_3 of 4 increments: rate and best hashes", Value::list(&[0.01521, 5.0]), Value::list(&[0.015272219011, 5.0]), Relative(1e-6)).wrong("equation 1 gives 0.01527; what is printed is the simulation of figure 5"),
Claim::new("004.table2.h12_l3", "table II", "B_12 of 3 increments: rate and best hashes", Value::list(&[0.02902, 5.0]), Value::list(&[0.0272824634123, 5.0]), Relative(1e-6)).wrong("equation 1 gives 0.02728; what is printed belongs to h = 4"),
Claim::new("004.thm3.p0", "theorem 3", "chance that a counter excludes a stranger, bounded from below", Text("> 0.5"), Number(0.505743231636), Relative(1e-9)),
Claim::new("004.thm3.pk_sign", "s3.D", "share of keys with five hashes where 5.2 are best", Number(-0.2), Number(0.8), Relative(1e-12)).wrong("the printed share of the lower number is negative: it must be ceil(k) - k"),
Claim::new("004.hash_bits", "s4", "hash bits a key, five hashes and 3840 counters of eight bits", Text("k(ceil(log2 m)+1)"), Number(70.0), Exact),
];

/// Table I: 2000 keys, one false positive in a thousand.
pub static MEMORY: [Claim; 22] = [
Claim::new("004.table1.vi_D4.main", "table I, s8.B", "KB of counters of [4, 7]", Number(10.97), Number(10.9734), Absolute(0.005)),
Claim::new("004.table1.vi_general.main", "table I, s8.B", "KB of 9500 counters of {8, 12, 14, 15}", Number(9.28), Number(9.2773), Absolute(0.005)),
Claim::new("004.table1.bh.table", "table I, s8.B", "KB of the decoding table, as bounded", Number(0.02), Number(0.0165), Absolute(0.005)),
Claim::new("004.table1.bh_improved.table", "table I, s8.B", "KB of the improved decoding table, as bounded", Number(0.07), Number(0.0659), Absolute(0.005)),
Claim::new("004.table1.vi_general.table", "table I, s8.B", "KB of the table of {8, 12, 14, 15}, as bounded", Number(0.03), Number(0.0275), Absolute(0.005)),
Claim::new("004.table1.vi_general.total", "table I, s8.B", "KB of both", Number(9.31), Number(9.3048), Absolute(0.005)),
Claim::new("004.table1.ml_D4.first", "table I, s8.B", "KB of the first of four layers, [4, 7]", Number(6.27), Number(6.2705), Absolute(0.005)),
Claim::new("004.table1.ml_D4.rest", "table I, s8.B", "KB of the three others", Number(0.33), Number(0.3325), Absolute(0.005)),
Claim::new("004.table1.ml_D4.total", "table I, s8.B", "KB of all four", Number(6.6), Number(6.603), Absolute(0.005)),
Claim::new("004.table1.ml_general.first", "table I, s8.B", "KB of the first layer, {8, 12, 14, 15}", Number(5.8), Number(5.7983), Absolute(0.005)),
Claim::new("004.table1.saving.vi_D4", "s8.B", "per cent that [4, 7] saves of a counting filter", Number(22.2), Number(22.1985815603), Absolute(0.5)),
Claim::new("004.table1.saving.vi_general", "s8.B", "per cent that {8, 12, 14, 15} saves of it", Number(34.0), Number(33.9716312057), Absolute(0.5)),
Claim::new("004.table1.saving.ml_vs_vi", "s8.B", "per cent that layers save of [4, 7]", Number(40.0), Number(39.8359161349), Absolute(0.5)),
Claim::new("004.table1.saving.ml_vs_cbf", "s8.B", "per cent that layers save of a counting filter", Number(53.0), Number(53.1914893617), Absolute(0.5)),
Claim::new("004.table1.vi_D4.min_m_k5", "s8.B", "least counters of [4, 7] with five hashes", Number(12842.0), Number(12842.0), Exact),
Claim::new("004.table1.vi_D4.min_m", "s8.B", "least counters of [4, 7]", Number(12842.0), Number(12331.0), Exact).wrong("printed for five hashes; with seven, 12331 counters do"),
Claim::new("004.table1.vi_general.min_m", "s8.B", "least counters of {8, 12, 14, 15}", Number(9500.0), Number(9388.0), Exact),
Claim::new("004.table1.bh.main", "table I", "KB of the least B_h table, basic", Number(12.07), Number(12.0659), Absolute(0.005)),
Claim::new("004.table1.bh_improved.main", "table I", "KB of the least B_h table, up to six keys examined", Number(11.31), Number(10.7549), Absolute(0.005)).wrong("hashes are not given; nine need least, 10.75 KB"),
Claim::new("004.table1.cbf.main", "table I", "KB of the least counting filter", Number(14.1), Number(14.041), Absolute(0.1)),
Claim::new("004.table1.ml_D4.layers", "s8.B", "counters that spill into layers 2, 3 and 4", Value::list(&[802.0, 100.0, 6.0]), Value::list(&[425.3, 53.19, 4.91]), Relative(1e-3)).wrong("layer sizes are printed and no rule for them; these many spill at five hashes, and 962 into the second layer at seven"),
Claim::new("004.table1.ml_D4.capacity", "s5, s8.B", "the largest value that layers of 4, 3, 3, 3 bits hold", Nothing, Number(36.0), Exact).unprinted("what layers hold is not said: it is little, and about 30 % of such filters overflow"),
];

/// Equation 8, theorem 3 and section VIII.D: how often counters leave their range.
pub static OVERFLOW: [Claim; 9] = [
Claim::new("004.eq8", "eq 8", "bound for counters of four bits, a counter", Number(1.37e-15), Number(1.36772682477e-15), Relative(1e-6)),
Claim::new("004.thm3.overflow8", "theorem 3", "bound for [4, 7] in eight bits, a counter of the plain filter", Text("below Eq (8)"), Number(2.11820766453e-35), Relative(1e-6)),
Claim::new("004.s8C.overflow7", "s8.C", "bound for [4, 7] in seven bits", Text("below Eq (8)"), Number(6.31096004311e-16), Relative(1e-6)),
Claim::new("004.overflow.4_6", "s8.D", "share of cells of 4 and 6 bits that leave their range", Number(0.00234), Number(0.00230197142792), Relative(2e-2)),
Claim::new("004.overflow.fpr.4_6", "s8.D", "rate of such cells", Number(0.00475), Number(0.00473665533198), Relative(2e-2)),
Claim::new("004.overflow.3_5", "s8.D", "share of cells of 3 and 5 bits that leave their range", Number(0.05726), Number(0.0569864420296), Relative(2e-2)),
Claim::new("004.overflow.fpr.3_5", "s8.D", "rate of such cells", Number(0.00262), Number(0.00258864211129), Relative(2e-2)),
Claim::new("004.overflow.signed", "s8.D", "share of cells of 4 and 6 bits whose centred sum leaves its range", Number(0.00049), Number(0.000495635557358), Relative(3e-2)),
Claim::new("004.overflow.signed_fpr", "s8.D", "rate of such cells", Number(0.00473), Number(0.0047098413971), Relative(2e-2)),
];

/// Figure 5: five schemes at 30 and 50 bits a key, by formula and simulated.
pub static FIGURE_5: [Claim; 10] = [
Claim::new("004.fig5.cbf.30", "s8.A, fig 5", "counting filter's rate at 30 bits a key", Number(0.02803), Number(0.0272824631321), Relative(1e-6)),
Claim::new("004.fig5.bh.30", "s8.A, fig 5", "B_h rate", Number(0.01521), Number(0.015272219011), Relative(1e-6)),
Claim::new("004.fig5.bh_improved.30", "s8.A, fig 5", "improved B_h rate", Number(0.0097), Number(0.00976334440405), Relative(1e-6)),
Claim::new("004.fig5.vi_D4.30", "s8.A, fig 5", "rate of [4, 7]", Number(0.00825), Number(0.00824839686366), Relative(1e-6)),
Claim::new("004.fig5.vi_general.30", "s8.A, fig 5", "rate of {8, 12, 14, 15}", Number(0.00383), Number(0.00398221941008), Relative(1e-6)),
Claim::new("004.fig5.cbf.50", "s8.A, fig 5", "counting filter's rate at 50 bits a key", Number(0.00258), Number(0.00247199564037), Relative(1e-6)),
Claim::new("004.fig5.bh.50", "s8.A, fig 5", "B_h rate", Number(0.00092), Number(0.000920992832088), Relative(1e-6)),
Claim::new("004.fig5.bh_improved.50", "s8.A, fig 5", "improved B_h rate", Number(0.00048), Number(0.000469273225024), Relative(1e-6)),
Claim::new("004.fig5.vi_D4.50", "s8.A, fig 5", "rate of [4, 7]", Number(0.00031), Number(0.000334085467066), Relative(1e-6)),
Claim::new("004.fig5.vi_general.50", "s8.A, fig 5", "rate of {8, 12, 14, 15}", Number(0.00011), Number(0.000100039370122), Relative(1e-6)),
];

/// Section VIII.D: the same cells, filled. From 300 filters each.
pub static PINNED: [Claim; 2] = [
Claim::new("004.overflow.sim.4_6", "s8.D", "share of cells of 4 and 6 bits that leave their range, simulated", Number(0.00234), Number(0.00233832465278), Absolute(3.0e-4)),
Claim::new("004.overflow.sim.3_5", "s8.D", "share of cells of 3 and 5 bits that leave their range, simulated", Number(0.05726), Number(0.0571015625), Absolute(1.1e-3)),
];

/// The rates of [`FIGURE_5`], simulated: mean, half of its 95 % interval, and one standard deviation
/// from filter to filter, each asked for 100,000 strangers.
pub const SIMULATED: [[f64; 3]; 10] = [
    [0.0273309470523, 8.60725970049e-05, 0.0011],
    [0.0152668142365, 3.56690408019e-05, 0.00055],
    [0.00976405147945, 2.50371676838e-05, 0.00041],
    [0.00824676850994, 2.4332140272e-05, 0.00039],
    [0.00397595327716, 9.02158969387e-06, 0.00022],
    [0.0024776865116, 1.0042958072e-05, 0.00019],
    [0.000922640198988, 2.71856482879e-06, 0.0001],
    [0.000469282216968, 1.4992195126e-06, 7e-05],
    [0.000334162281629, 1.26727902815e-06, 5.9e-05],
    [0.000100128072577, 2.97536181791e-07, 3.2e-05],
];
/// Half the 95 % intervals of [`PINNED`].
pub const PINNED_INTERVAL: [f64; 2] = [0.000100212331952, 0.000347809964168];
/// The filters they come from.
pub const FILTERS: u64 = 300;
