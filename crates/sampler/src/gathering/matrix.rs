//! A batch's feature rows, in a matrix with memory of its own.

use tiergraph_core::Result;
use tiergraph_format::features::FeatureType;
use tiergraph_graph::Features;
use tiergraph_mem::AlignedBuf;

/// The type in which a batch's features are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// As 32-bit floats.
    #[default]
    Floats,
    /// In the type in which they are stored.
    Stored,
}

/// Feature rows of one type and width, one after the other without gaps.
#[derive(Debug)]
pub struct Matrix {
    /// The rows' bytes, and zeros to the end of the last page.
    pub bytes: AlignedBuf,
    /// The number of rows.
    pub rows: usize,
    /// The number of values in a row.
    pub dim: usize,
    /// The type of a value.
    pub dtype: FeatureType,
}

impl Matrix {
    /// Room for `rows` rows, in the type in which they are stored.
    ///
    /// # Errors
    /// When the system has no such amount of memory to give.
    pub fn stored(features: &Features, rows: usize) -> Result<Self> {
        let bytes = AlignedBuf::zeroed(rows * features.row_bytes())?;
        Ok(Self { bytes, rows, dim: features.dim(), dtype: features.dtype() })
    }

    /// The rows as 32-bit floats; at no cost if they are that already.
    ///
    /// # Errors
    /// When the system has no memory for the result.
    pub fn into_floats(self, features: &Features) -> Result<Self> {
        if self.dtype == FeatureType::F32 {
            return Ok(self);
        }
        let (rows, dim, row_bytes) = (self.rows, self.dim, features.row_bytes());
        let mut bytes = AlignedBuf::zeroed(rows * dim * size_of::<f32>())?;
        let floats: &mut [f32] = bytemuck::cast_slice_mut(&mut bytes[..rows * dim * 4]);
        let stored = self.bytes[..rows * row_bytes].chunks_exact(row_bytes);
        for (row, values) in stored.zip(floats.chunks_exact_mut(dim)) {
            features.decode(row, values);
        }
        Ok(Self { bytes, rows, dim, dtype: FeatureType::F32 })
    }

    /// The values; `None` if they are not 32-bit floats.
    pub fn floats(&self) -> Option<&[f32]> {
        let bytes = self.rows * self.dim * size_of::<f32>();
        (self.dtype == FeatureType::F32 && bytes > 0)
            .then(|| bytemuck::cast_slice(&self.bytes[..bytes]))
    }

    /// The values, mutable; `None` if they are not 32-bit floats.
    pub fn floats_mut(&mut self) -> Option<&mut [f32]> {
        let bytes = self.rows * self.dim * size_of::<f32>();
        (self.dtype == FeatureType::F32 && bytes > 0)
            .then(|| bytemuck::cast_slice_mut(&mut self.bytes[..bytes]))
    }

    /// The most bytes that delivering `rows` rows takes while it goes on.
    pub fn bytes_of(features: &Features, rows: usize, delivery: Delivery) -> u64 {
        let stored = (rows * features.row_bytes()) as u64;
        match (delivery, features.dtype()) {
            (Delivery::Stored, _) | (_, FeatureType::F32) => stored,
            (Delivery::Floats, _) => stored + (rows * features.dim() * size_of::<f32>()) as u64,
        }
    }
}
