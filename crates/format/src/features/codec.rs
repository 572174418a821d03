//! Encodes rows of 32-bit floats to bytes, and decodes them.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::layout::{FeatureType, RowLayout};

/// Bytes of the scale before a row of 8-bit integers.
const SCALE_BYTES: usize = 4;
/// The largest 8-bit integer used: the range is symmetric, so that 0 and −x keep their meaning.
const MOST: f32 = 127.0;
/// The least float that rounds to infinity in 16 bits: halfway above the largest, 65,504.
const F16_OVERFLOW: f32 = 65_520.0;
/// Values that are converted at a time.
const PIECE: usize = 64;
/// Added to a float below 2^22, it leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0;

impl RowLayout {
    /// Encodes `values`, [`dim`](Self::dim) of them, to `row`, [`row_bytes`](Self::row_bytes) long.
    ///
    /// # Errors
    /// The column of the first value that this type cannot hold: one above 65,504 as a 16-bit
    /// float, a NaN or an infinity as an 8-bit integer.
    ///
    /// # Panics
    /// If either has another length.
    pub fn encode(&self, values: &[f32], row: &mut [u8]) -> Result<(), usize> {
        assert_eq!((values.len(), row.len()), (self.dim(), self.row_bytes()));
        match self.dtype() {
            FeatureType::F32 => row.copy_from_slice(bytemuck::cast_slice(values)),
            FeatureType::F16 => encode_f16(values, row)?,
            FeatureType::Int8 => encode_int8(values, row)?,
        }
        Ok(())
    }

    /// Decodes the bytes of `row` to `values`.
    ///
    /// Cost: a copy for 32-bit floats; eight values an instruction for 16-bit ones where the CPU has
    /// F16C; a conversion and a multiplication a value for 8-bit integers.
    ///
    /// # Panics
    /// If `row` is not [`row_bytes`](Self::row_bytes) long or `values` not [`dim`](Self::dim).
    #[inline]
    pub fn decode(&self, row: &[u8], values: &mut [f32]) {
        assert_eq!((values.len(), row.len()), (self.dim(), self.row_bytes()));
        match self.dtype() {
            FeatureType::F32 => bytemuck::cast_slice_mut(values).copy_from_slice(row),
            FeatureType::F16 => decode_f16(row, values),
            FeatureType::Int8 => decode_int8(row, values),
        }
    }
}

fn encode_f16(values: &[f32], row: &mut [u8]) -> Result<(), usize> {
    let too_large = |value: &f32| value.is_finite() && value.abs() >= F16_OVERFLOW;
    if let Some(column) = values.iter().position(too_large) {
        return Err(column);
    }
    let mut narrow = [f16::ZERO; PIECE];
    for (values, row) in values.chunks(PIECE).zip(row.chunks_mut(2 * PIECE)) {
        let narrow = &mut narrow[..values.len()];
        narrow.convert_from_f32_slice(values);
        row.copy_from_slice(bytemuck::cast_slice(narrow.reinterpret_cast()));
    }
    Ok(())
}

fn decode_f16(row: &[u8], values: &mut [f32]) {
    match bytemuck::try_cast_slice::<u8, u16>(row) {
        Ok(bits) => bits.reinterpret_cast::<f16>().convert_to_f32_slice(values),
        // A row in a buffer at an odd address.
        Err(_) => {
            for (value, &bytes) in values.iter_mut().zip(row.as_chunks().0) {
                *value = f16::from_le_bytes(bytes).to_f32();
            }
        }
    }
}

fn encode_int8(values: &[f32], row: &mut [u8]) -> Result<(), usize> {
    if let Some(column) = values.iter().position(|value| !value.is_finite()) {
        return Err(column);
    }
    let scale = values.iter().fold(0.0f32, |most, value| most.max(value.abs())) / MOST;
    let (head, body) = row.split_at_mut(SCALE_BYTES);
    head.copy_from_slice(&scale.to_le_bytes());
    // A scale of 0: all values are 0, or so small that nothing else holds them.
    let divisor = if scale == 0.0 { f32::INFINITY } else { scale };
    for (value, to) in values.iter().zip(body) {
        *to = (value / divisor + ROUND).to_bits() as u8;
    }
    Ok(())
}

fn decode_int8(row: &[u8], values: &mut [f32]) {
    let Some((&scale, body)) = row.split_first_chunk::<SCALE_BYTES>() else { return };
    let scale = f32::from_le_bytes(scale);
    for (value, &byte) in values.iter_mut().zip(body) {
        *value = f32::from(byte as i8) * scale;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(dtype: FeatureType, values: &[f32]) -> Vec<f32> {
        let layout = RowLayout::new(dtype, values.len()).unwrap();
        let (mut row, mut back) = (vec![0; layout.row_bytes()], vec![f32::NAN; values.len()]);
        layout.encode(values, &mut row).unwrap();
        layout.decode(&row, &mut back);
        // At an odd address too.
        let (mut shifted, mut again) = (vec![0; row.len() + 1], back.clone());
        shifted[1..].copy_from_slice(&row);
        layout.decode(&shifted[1..], &mut again);
        assert_eq!(back, again);
        back
    }

    proptest! {
        #[test]
        fn floats_of_32_bits_come_back_exactly(values in prop::collection::vec(any::<f32>(), 1..300)) {
            let back = round_trip(FeatureType::F32, &values.iter().map(|v| if v.is_nan() { 0.0 } else { *v }).collect::<Vec<_>>());
            for (value, back) in values.iter().zip(back) {
                prop_assert!(value.is_nan() || *value == back);
            }
        }

        #[test]
        fn floats_of_16_bits_err_by_2_to_the_minus_11(values in prop::collection::vec(-65_000f32..65_000.0, 1..300)) {
            for (value, back) in values.iter().zip(round_trip(FeatureType::F16, &values)) {
                // Below the least normal number the spacing is 2^-24.
                let bound = (value.abs() * 2f32.powi(-11)).max(2f32.powi(-25));
                prop_assert!((value - back).abs() <= bound, "{value} came back as {back}");
            }
        }

        #[test]
        fn integers_of_8_bits_err_by_half_a_scale(
            values in prop::collection::vec(-1f32..1.0, 1..300),
            exponent in -30..30i32,
        ) {
            let values: Vec<f32> = values.iter().map(|v| v * 2f32.powi(exponent)).collect();
            let most = values.iter().fold(0f32, |m, v| m.max(v.abs()));
            for (value, back) in values.iter().zip(round_trip(FeatureType::Int8, &values)) {
                // Of the scale, and the float's own rounding.
                let bound = most / 254.0 * (1.0 + 2f32.powi(-15));
                prop_assert!((value - back).abs() <= bound, "{value} came back as {back} of {most}");
            }
        }
    }

    #[test]
    fn what_a_type_cannot_hold_is_told_by_its_column() {
        let mut row = [0; 8];
        let fault = |dtype, values: &[f32], row: &mut [u8]| {
            let layout = RowLayout::new(dtype, values.len()).unwrap();
            layout.encode(values, &mut row[..layout.row_bytes()])
        };
        assert_eq!(fault(FeatureType::F16, &[1.0, 65_504.0, 70_000.0], &mut row), Err(2));
        assert_eq!(fault(FeatureType::F16, &[f32::INFINITY, f32::NAN], &mut row), Ok(()));
        assert_eq!(fault(FeatureType::Int8, &[0.0, f32::NAN], &mut row), Err(1));
        assert_eq!(fault(FeatureType::Int8, &[f32::NEG_INFINITY], &mut row), Err(0));
        assert_eq!(round_trip(FeatureType::Int8, &[0.0, -0.0]), [0.0, 0.0]);
        assert_eq!(round_trip(FeatureType::Int8, &[127.0, -127.0, 1.0]), [127.0, -127.0, 1.0]);
        assert_eq!(round_trip(FeatureType::Int8, &[1e-45]), [0.0]);
    }
}
