//! Every instruction set gives the results of the portable definition.

use super::*;
use proptest::prelude::*;

/// The result of a kernel, which is the same with every instruction set that this processor has.
pub(crate) fn with_every_isa<K>(kernel: K) -> K::Output
where
    K: Kernel<Output: PartialEq + std::fmt::Debug> + Copy,
{
    let expected = kernel.run(Portable);
    #[cfg(target_arch = "x86_64")]
    {
        assert_eq!(expected, x86::Sse2::ALWAYS.apart(kernel), "SSE2");
        if let Some(isa) = x86::Avx2::detect() {
            assert_eq!(expected, isa.apart(kernel), "AVX2");
        }
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    {
        assert_eq!(expected, neon::Neon::ALWAYS.apart(kernel), "NEON");
        if let Some(isa) = neon::NeonAes::detect() {
            assert_eq!(expected, isa.apart(kernel), "NEON and AES");
        }
    }
    expected
}

/// The masks of lanes of 1, 2 and 4 bytes: equal outside the bits of a word, and equal to `marked`
/// after they are set.
#[derive(Clone, Copy)]
struct Lanes<'a, const N: usize> {
    bucket: &'a [u8; N],
    value: u32,
    marked: u32,
    ignored: u32,
}

impl<const N: usize> Kernel for Lanes<'_, N> {
    type Output = [[u64; 3]; 2];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> [[u64; 3]; 2] {
        let Lanes { bucket, value, marked, ignored } = self;
        let matches = [
            isa.matches::<1, N>(bucket, value, ignored),
            isa.matches::<2, N>(bucket, value, ignored),
            isa.matches::<4, N>(bucket, value, ignored),
        ];
        let marks = [
            isa.marks::<1, N>(bucket, marked, ignored),
            isa.marks::<2, N>(bucket, marked, ignored),
            isa.marks::<4, N>(bucket, marked, ignored),
        ];
        [matches, marks]
    }
}

fn all_widths<const N: usize>(bucket: [u8; N], value: u32) {
    for ignored in [0, 0x01, 0x0103, 0x8000_0001, u32::MAX] {
        let equal = |bytes: usize| -> Vec<bool> {
            let seen = |lane: &[u8]| -> Vec<u8> {
                lane.iter().zip(ignored.to_le_bytes()).map(|(byte, off)| byte & !off).collect()
            };
            let wanted = seen(&value.to_le_bytes()[..bytes]);
            bucket.chunks_exact(bytes).map(|lane| seen(lane) == wanted).collect()
        };
        let mask = |bits: &[bool]| (0..).zip(bits).map(|(i, &bit)| u64::from(bit) << i).sum();
        let matches = [1, 2, 4].map(|bytes| mask(&equal(bytes)));
        let marks = [1, 2, 4].map(|bytes| {
            let bits = equal(bytes).into_iter().flat_map(|bit| std::iter::repeat_n(bit, bytes));
            mask(&bits.collect::<Vec<_>>())
        });
        let lanes = Lanes { bucket: &bucket, value, marked: value | ignored, ignored };
        assert_eq!(with_every_isa(lanes), [matches, marks]);
        if ignored != 0 {
            // No lane lacks a bit that is set in all.
            let lacks = Lanes { marked: value & !ignored, ..lanes };
            assert_eq!(with_every_isa(lacks), [matches, [0; 3]]);
        }
    }
}

#[test]
fn a_match_in_any_single_lane_is_that_lane() {
    fn check<const N: usize>() {
        for byte in 0..N {
            let mut bucket = [0u8; N];
            bucket[byte] = 0x80;
            for value in [0, 0x80, 0x8000, 0x80_0000, 0x8000_0000] {
                all_widths(bucket, value);
            }
        }
    }
    check::<16>();
    check::<32>();
    check::<64>();
}

/// [`Isa::eight_lines`].
#[derive(Clone, Copy)]
struct EightLines<'a>([&'a [u8; LINE]; 8], [u16; 8]);

impl Kernel for EightLines<'_> {
    type Output = ([bool; 8], u8);

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Self::Output {
        isa.eight_lines(self.0, &self.1)
    }
}

#[test]
fn a_line_holds_a_value_in_any_lane_but_the_last() {
    for lane in 0..LINE / 2 {
        for which in 0..8 {
            let mut lines = [[0u8; LINE]; 8];
            lines[which][2 * lane..][..2].copy_from_slice(&0x8001u16.to_le_bytes());
            let lines = lines.each_ref();
            // In the last it is a number that adds up with others.
            let last = lane == LINE / 2 - 1;
            for value in [0x8001, 0x8000, 0x7fff, 0x7ffe] {
                let held = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| i == which && !last && value == 0x8001);
                let beyond = u8::from(last && value >= 0x7fff) << which;
                let answer = with_every_isa(EightLines(lines, [value; 8]));
                assert_eq!(answer, (held, beyond), "{lane} {which} {value:x}");
            }
        }
    }
}

#[test]
fn a_value_and_the_last_lane_add_up_to_more_than_a_lane_holds_or_not() {
    for (value, last, beyond) in [
        (1, 0xffff, 0xff),
        (0xffff, 1, 0xff),
        (0xffff, 0xffff, 0xff),
        (0xffff, 0, 0),
        (1, 0xfffe, 0),
        (0xfffe, 1, 0),
    ] {
        let mut line = [0; LINE];
        line[LINE - 2..].copy_from_slice(&u16::to_le_bytes(last));
        let answer = with_every_isa(EightLines([&line; 8], [value; 8]));
        assert_eq!(answer, ([false; 8], beyond), "{value:x} {last:x}");
    }
}

/// [`Isa::any_nibble_zero`] and [`Isa::nibble_ones`].
#[derive(Clone, Copy)]
struct Nibbles<'a>(&'a [u8; LINE], u64, u32);

impl Kernel for Nibbles<'_> {
    type Output = (bool, [u64; LINE / 8]);

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Self::Output {
        let Nibbles(line, word, cells) = self;
        (isa.any_nibble_zero(line, word, cells), isa.nibble_ones(word, cells))
    }
}

/// [`Isa::all_admitted`].
#[derive(Clone, Copy)]
struct Sifted<'a>(&'a [u8; LINE], u64, &'a Sieve);

impl Kernel for Sifted<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> bool {
        isa.all_admitted(self.0, self.1, self.2)
    }
}

/// [`Isa::eight`].
#[derive(Clone, Copy)]
struct OfEight<'a>(&'a [u8], &'a Eight, u32, u32);

impl Kernel for OfEight<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> u64 {
        isa.eight(self.0, self.1, self.2, self.3)
    }
}

/// The operations on blocks: a round, exclusive or, and both halves of a sum.
#[derive(Clone, Copy)]
struct Blocks([u64; 2], [u64; 2]);

impl Kernel for Blocks {
    type Output = [u64; 4];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> [u64; 4] {
        let Blocks(block, key) = self;
        let round = isa.aes_round(isa.block(block), isa.block(key));
        let other = isa.xor(isa.block([block[1], block[0]]), isa.block(key));
        let low = isa.add(isa.block(block), isa.block(key));
        let high = isa.add(isa.block([0, block[1]]), isa.block([0, key[1]]));
        // A round takes both halves of its block to the lower half of the result.
        let high = isa.aes_round(high, isa.block([0, 0]));
        [isa.low_half(round), isa.low_half(other), isa.low_half(low), isa.low_half(high)]
    }
}

proptest! {
    #[test]
    fn matches_agree_on_any_bucket(bytes in prop::array::uniform32(0u8..4), value in 0u32..0x0404_0404) {
        // Few distinct bytes make matches of every width likely.
        let mut long = [0; 64];
        long[..32].copy_from_slice(&bytes);
        long[32..].copy_from_slice(&bytes.map(|byte| byte ^ 1));
        let mut short = [0; 16];
        short.copy_from_slice(&bytes[..16]);
        let value = value & 0x0303_0303;
        all_widths(long, value);
        all_widths(bytes, value);
        all_widths(short, value);
        let lane = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
        all_widths(bytes, lane);
    }

    #[test]
    fn eight_lines_agree_on_any_values(
        cells in prop::collection::vec(0u16..400, 8 * 32),
        values in prop::array::uniform8(0u16..400),
        shift in prop::array::uniform8(0u32..9),
    ) {
        // Small numbers, so that some lines hold theirs; and moved up, so that some add up to too much.
        let mut lines = [[0u8; LINE]; 8];
        let mut values = values;
        let (mut held, mut beyond) = ([false; 8], 0u8);
        for i in 0..8 {
            let cells = &cells[i * 32..][..32];
            let cells: Vec<u16> = cells.iter().map(|cell| cell << shift[i]).collect();
            values[i] <<= shift[i];
            for (lane, cell) in lines[i].chunks_exact_mut(2).zip(&cells) {
                lane.copy_from_slice(&cell.to_le_bytes());
            }
            held[i] = cells[..31].contains(&values[i]);
            let carries = u32::from(values[i]) + u32::from(cells[31]) > 0xffff;
            beyond |= u8::from(!held[i] && carries) << i;
        }
        let lines = lines.each_ref();
        prop_assert_eq!(with_every_isa(EightLines(lines, values)), (held, beyond));
    }

    #[test]
    fn nibbles_agree_on_any_word(word: u64, cells in 0u32..=NIBBLES_MAX, fill in prop::array::uniform32(0u8..=1)) {
        // Every cell is zero or not, independently of the others.
        let mut line = [0u8; LINE];
        for (byte, fill) in line.iter_mut().zip(fill.into_iter().chain(fill)) {
            *byte = 0x10 * fill + 3 * (1 - fill);
        }
        let by_hand = |line: &[u8; LINE]| {
            let mut cells = (0..cells).map(|i| (word << (7 * i)) >> 57);
            cells.any(|cell| (line[cell as usize / 2] >> (cell % 2 * 4)) & 15 == 0)
        };
        let zero = by_hand(&line);
        let mut ones = [0; LINE / 8];
        for i in 0..cells {
            let cell = (word << (7 * i)) >> 57;
            ones[(cell / 16) as usize] |= 1u64 << (cell % 16 * 4);
        }
        prop_assert_eq!(with_every_isa(Nibbles(&line, word, cells)), (zero, ones));
        for cell in 0..128 {
            let mut line = [0xff; LINE];
            line[cell / 2] = if cell % 2 == 0 { 0xf0 } else { 0x0f };
            prop_assert_eq!(with_every_isa(Nibbles(&line, word, cells)), (by_hand(&line), ones));
        }
    }

    #[test]
    fn a_round_of_aes_is_what_its_four_steps_are(block: [u64; 2], key: [u64; 2]) {
        let twins = with_every_isa(Blocks(block, key));
        let sum = |i: usize| block[i].wrapping_add(key[i]);
        let high = aes_by_steps([0, sum(1)], [0, 0])[0];
        prop_assert_eq!(twins, [aes_by_steps(block, key)[0], block[1] ^ key[0], sum(0), high]);
        prop_assert_eq!(Portable.aes_round(block, key), aes_by_steps(block, key));
    }

    #[test]
    fn sieves_agree_on_any_word(
        word: u64,
        cells in 0u32..=SIEVED_MAX,
        values in prop::array::uniform32(0u8..40),
        excluded: u32,
        factors: [u64; 8],
        marks in prop::array::uniform8(0u32..60),
    ) {
        let mut line = [0u8; LINE];
        line[..32].copy_from_slice(&values);
        line[32..].copy_from_slice(&values.map(|value| value.wrapping_mul(7)));
        // Few bits, so that all cells may pass; and many, so that one may stop the key.
        let excluded = excluded >> 1;
        for excluded in [excluded & excluded.rotate_left(7) & excluded.rotate_left(12), excluded, 0] {
            let sieve = Sieve { cells, factors, marks, excluded };
            let admitted = (0..cells as usize).all(|i| {
                let named = word.wrapping_mul(factors[i]);
                let index = u32::from(line[(named >> 58) as usize]) + marks[(named << 6 >> 61) as usize];
                index >= 31 || (excluded >> index) & 1 == 0
            });
            let answers = with_every_isa(Sifted(&line, word, &sieve));
            prop_assert_eq!(answers, admitted);
        }
    }

    #[test]
    fn eights_agree_on_any_cells(width in 5u32..=Eight::WIDTH_MAX, cells in prop::array::uniform8(0u32..5), set in 0u32..4) {
        let eight = Eight::new(width);
        // A few values, small and large, between ones: the bits beside a cell must not matter.
        let ceiling = u32::MAX >> (32 - width);
        let cells = cells.map(|cell| if cell < 3 { cell } else { ceiling - (cell - 3) });
        let mut bytes = vec![0xff; (width as usize / 2 + 16).max(width as usize)];
        for (i, cell) in cells.into_iter().enumerate() {
            for j in 0..width as usize {
                let bit = i * width as usize + j;
                bytes[bit / 8] &= !(u8::from(cell >> j & 1 == 0) << (bit % 8));
            }
        }
        for value in cells {
            let by_hand = cells.iter().enumerate().map(|(i, cell)| u64::from(cell | set == value | set) << i).sum::<u64>();
            prop_assert_eq!(with_every_isa(OfEight(&bytes, &eight, value | set, set)), by_hand);
        }
    }
}

/// The product in the field of AES, bit by bit.
fn times(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0u8, |sum, bit| {
        let doubled = (sum << 1) ^ if sum >> 7 == 1 { 0x1b } else { 0 };
        doubled ^ if (b >> bit) & 1 == 1 { a } else { 0 }
    })
}

/// FIPS 197, sections 5.1.1 to 5.1.4, word by word.
fn aes_by_steps(block: [u64; 2], key: [u64; 2]) -> [u64; 2] {
    let bytes: Vec<u8> = block.iter().flat_map(|half| half.to_le_bytes()).collect();
    let substituted: Vec<u8> = bytes
        .iter()
        .map(|&byte| {
            let inverse = (0..=255).find(|&other| times(byte, other) == 1).unwrap_or(0);
            let bit = |i: u32| (inverse >> (i % 8)) & 1;
            (0..8).fold(0x63, |image, i| {
                image ^ (bit(i) ^ bit(i + 4) ^ bit(i + 5) ^ bit(i + 6) ^ bit(i + 7)) << i
            })
        })
        .collect();
    let shifted = |row: usize, column: usize| substituted[(column + row) % 4 * 4 + row];
    let mut mixed = [0u8; 16];
    for (i, byte) in mixed.iter_mut().enumerate() {
        let (row, column) = (i % 4, i / 4);
        *byte = times(2, shifted(row, column))
            ^ times(3, shifted((row + 1) % 4, column))
            ^ shifted((row + 2) % 4, column)
            ^ shifted((row + 3) % 4, column);
    }
    let (low, high) = mixed.split_at(8);
    let half = |bytes: &[u8], key| u64::from_le_bytes(bytes.try_into().unwrap()) ^ key;
    [half(low, key[0]), half(high, key[1])]
}

/// The first round of the example in FIPS 197, appendix B.
#[test]
fn the_round_is_the_standards() {
    let halves = |hex: u128| {
        let bytes = hex.to_be_bytes();
        let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        [half(0), half(8)]
    };
    let start = halves(0x193de3be_a0f4e22b_9ac68d2a_e9f84808);
    let key = halves(0xa0fafe17_88542cb1_23a33939_2a6c7605);
    let end = halves(0xa49c7ff2_689f352b_6b5bea43_026a5049);
    assert_eq!(Portable.aes_round(start, key), end);
    assert_eq!(aes_by_steps(start, key), end);
}

#[test]
fn a_kernel_is_run_and_its_answer_returned() {
    struct Sum<'a>(&'a [u8; 32]);
    impl Kernel for Sum<'_> {
        type Output = u32;
        fn run<I: Isa>(self, isa: I) -> u32 {
            isa.matches::<1, 32>(self.0, 7, 0).count_ones()
        }
    }
    assert_eq!(dispatch(Sum(&[7; 32])), 32);
    prefetch(&[1, 2, 3], usize::MAX);
}
