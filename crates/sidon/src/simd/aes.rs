//! A round of AES in plain Rust, by one table: the S-box times a column of the matrix, rotated by
//! bytes.
//!
//! The tables are computed from the field. The S-box takes byte `b` to an affine function of its
//! inverse modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 5.1.1).

/// Twice `byte` in the field.
const fn double(byte: u8) -> u8 {
    (byte << 1) ^ if byte & 0x80 != 0 { 0x1b } else { 0 }
}

/// The S-box. The powers of 3 are all elements of the field except zero. The loop multiplies by 3
/// and divides by 3 at once, which gives every element with its inverse.
const fn substitution() -> [u8; 256] {
    let mut table = [0; 256];
    table[0] = 0x63;
    let (mut power, mut inverse) = (1u8, 1u8);
    loop {
        power ^= double(power);
        // Division by 3 is multiplication by 0xf6: the sum of these shifts.
        inverse ^= inverse << 1;
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        inverse ^= if inverse & 0x80 != 0 { 0x09 } else { 0 };
        let turned = inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4);
        table[power as usize] = inverse ^ turned ^ 0x63;
        if power == 1 {
            return table;
        }
    }
}

/// MixColumns of a column whose first byte is SubBytes of the index and whose others are zero.
static COLUMNS: [u32; 256] = columns();

const fn columns() -> [u32; 256] {
    let (bytes, mut columns, mut i) = (substitution(), [0; 256], 0);
    while i < 256 {
        let byte = bytes[i];
        columns[i] = u32::from_le_bytes([double(byte), byte, byte, double(byte) ^ byte]);
        i += 1;
    }
    columns
}

/// SubBytes, ShiftRows, MixColumns, AddRoundKey: 16 bytes as two little-endian words.
#[inline]
pub(super) fn round(block: [u64; 2], key: [u64; 2]) -> [u64; 2] {
    let byte = |i: usize| (block[i / 8] >> (i % 8 * 8)) as u8;
    let column = |c: usize| {
        (0..4).fold(0, |mixed, row| {
            let from = byte((c + row) % 4 * 4 + row);
            mixed ^ COLUMNS[usize::from(from)].rotate_left(8 * row as u32)
        })
    };
    let half = |low: usize| u64::from(column(low)) | u64::from(column(low + 1)) << 32;
    [half(0) ^ key[0], half(2) ^ key[1]]
}
