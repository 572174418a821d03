//! Kernels that compare what is in device memory with its CRC-32C: blocks, and rows of features.
//!
//! A CRC is linear, so that pieces are checksummed side by side; the arithmetic of polynomials modulo
//! Castagnoli's is here, and in `crc32c.cuh`.

mod blocks;
mod rows;

pub use blocks::Checksum;
pub use rows::{DamagedRow, DamagedRows, RowChecksum};

use super::Source;

const CRC32C: &str = include_str!("crc32c.cuh");

/// Castagnoli's polynomial, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// x^0.
const ONE: u32 = 1 << 31;
/// The least exponent above 0 whose power of x is x^0.
const ORDER: i64 = (1 << 31) - 1;

pub(super) fn sources() -> [Source; 2] {
    [blocks::source(), rows::source()]
}

/// a × x modulo the polynomial.
fn times_x(a: u32) -> u32 {
    (a >> 1) ^ ((a & 1) * POLYNOMIAL)
}

/// a × b modulo the polynomial; bit 31 is the coefficient of x^0.
fn multiply(mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for _ in 0..32 {
        product ^= (a >> 31) * b;
        a <<= 1;
        b = times_x(b);
    }
    product
}

/// x^`exponent` modulo the polynomial. An exponent below 0 takes bits away that are behind a piece.
fn power(exponent: i64) -> u32 {
    let mut exponent = exponent.rem_euclid(ORDER);
    let (mut square, mut power) = (ONE >> 1, ONE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    power
}

/// The products of each byte of a CRC and `power`, 256 for each of a word's bytes, the lowest first.
fn byte_products(power: u32) -> Vec<u32> {
    (0..4)
        .flat_map(|byte| (0..256).map(move |value| multiply(value << (8 * byte), power)))
        .collect()
}

/// What the initial and the final value contribute to the CRC of `bytes` bytes.
fn inverted(bytes: usize) -> u32 {
    multiply(!0, power(8 * bytes as i64)) ^ !0
}

/// The product of `crc` and the power of x that `products` are of.
#[cfg(test)]
fn multiplied(products: &[u32], crc: u32) -> u32 {
    crc.to_le_bytes()
        .iter()
        .zip(products.chunks(256))
        .fold(0, |sum, (&byte, of)| sum ^ of[byte as usize])
}
