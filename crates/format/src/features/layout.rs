//! The layout of a file of feature rows: where each row lies, and how its values are stored.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

use crate::pages::PAGE_BYTES;

/// The most values of a row.
const MOST_VALUES: usize = 1 << 24;
/// Every row begins at a multiple of this.
const ALIGN: usize = 4;

/// The type in which the values of feature rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureType {
    /// 32-bit floats.
    #[default]
    F32,
    /// 16-bit floats: relative error up to 2^-11.
    F16,
    /// 8-bit integers after a 32-bit scale that the row's values share: error up to half of it, which
    /// is 1/254 of the row's largest value.
    Int8,
}

impl FeatureType {
    fn row_bytes(self, dim: usize) -> usize {
        match self {
            Self::F32 => 4 * dim,
            Self::F16 => 2 * dim,
            Self::Int8 => 4 + dim,
        }
    }
}

impl fmt::Display for FeatureType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
        })
    }
}

impl FromStr for FeatureType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Self::F32, Self::F16, Self::Int8]
            .into_iter()
            .find(|dtype| dtype.to_string() == name)
            .ok_or_else(|| {
                Error::new(ErrorKind::Input, "store features as")
                    .object(name)
                    .expected("`f32`, `f16` or `int8`")
            })
    }
}

/// What the manifest says about a file of feature rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeaturesEntry {
    /// Where each row lies.
    #[serde(flatten)]
    pub layout: RowLayout,
    /// The number of rows.
    pub rows: u64,
}

/// The layout of a file of feature rows: the type and number of a row's values, and where each row lies.
///
/// ```
/// use tiergraph_format::features::{FeatureType, RowLayout};
/// let layout = RowLayout::new(FeatureType::F32, 100)?;
/// assert_eq!((layout.row_bytes(), layout.stride()), (400, 408)); // ten rows a page
/// assert_eq!((layout.offset(10), layout.pages(11)), (4096, 1..2));
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLayout {
    dtype: FeatureType,
    dim: u32,
    stride: u32,
    /// Rows that begin on each page; 0 where they follow each other whatever page they are on.
    rows_per_page: u32,
}

impl RowLayout {
    /// The layout of rows of `dim` values.
    ///
    /// As many rows as fit a page, evenly spread over it; or each from a page's start on, if it is
    /// larger than a page. Where either would waste a quarter of the file or more, rows are packed
    /// tightly and cross pages.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a `dim` of 0, or above 2^24.
    pub fn new(dtype: FeatureType, dim: usize) -> Result<Self> {
        if dim == 0 || dim > MOST_VALUES {
            return Err(Error::new(ErrorKind::Input, "store feature rows of")
                .object(format!("{dim} values"))
                .expected(format!("1 to {MOST_VALUES}")));
        }
        let bytes = dtype.row_bytes(dim).next_multiple_of(ALIGN);
        let fit = PAGE_BYTES / bytes;
        let whole = bytes.next_multiple_of(PAGE_BYTES);
        let (stride, rows_per_page) = if fit > 0 && 4 * (PAGE_BYTES - fit * bytes) < PAGE_BYTES {
            (PAGE_BYTES / fit / ALIGN * ALIGN, fit)
        } else if fit == 0 && 4 * (whole - bytes) < whole {
            (whole, 0)
        } else {
            (bytes, 0)
        };
        let (dim, stride) = (dim as u32, stride as u32);
        Ok(Self { dtype, dim, stride, rows_per_page: rows_per_page as u32 })
    }

    /// The type in which values are stored.
    pub fn dtype(&self) -> FeatureType {
        self.dtype
    }

    /// The number of values in a row.
    pub fn dim(&self) -> usize {
        self.dim as usize
    }

    /// Bytes of a row, without the padding between it and the next.
    pub fn row_bytes(&self) -> usize {
        self.dtype.row_bytes(self.dim())
    }

    /// Bytes from a row's start to the next one's on the same page.
    pub fn stride(&self) -> usize {
        self.stride as usize
    }

    /// The number of rows that begin on each page; 0 if rows lie a stride apart throughout the file.
    pub fn rows_per_page(&self) -> usize {
        self.rows_per_page as usize
    }

    /// The byte of the file at which row `row` begins.
    #[inline]
    pub fn offset(&self, row: u64) -> u64 {
        let (stride, each) = (u64::from(self.stride), u64::from(self.rows_per_page));
        if each * stride == PAGE_BYTES as u64 || each == 0 {
            return row * stride;
        }
        row / each * PAGE_BYTES as u64 + row % each * stride
    }

    /// The numbers of the pages that hold the bytes of row `row`.
    #[inline]
    pub fn pages(&self, row: u64) -> Range<u64> {
        let (begin, page) = (self.offset(row), PAGE_BYTES as u64);
        begin / page..(begin + self.row_bytes() as u64).div_ceil(page)
    }

    /// Bytes of a file of `rows` rows, rounded up to whole pages.
    pub fn file_bytes(&self, rows: u64) -> u64 {
        rows.checked_sub(1).map_or(0, |last| self.pages(last).end * PAGE_BYTES as u64)
    }

    /// What is wrong with a layout that a manifest describes, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let (stride, each) = (self.stride(), self.rows_per_page());
        let fits = stride >= self.row_bytes()
            && stride.is_multiple_of(ALIGN)
            && each.checked_mul(stride).is_some_and(|bytes| bytes <= PAGE_BYTES);
        let sound = self.dim > 0 && self.dim() <= MOST_VALUES && fits;
        (!sound).then(|| {
            format!("rows of {} {} at a stride of {stride}, {each} a page", self.dim, self.dtype)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_rule() {
        use FeatureType::{F16, F32, Int8};
        for (dtype, dim, stride, rows_per_page) in [
            (F32, 1, 4, 1024),
            (F32, 128, 512, 8),
            (F32, 100, 408, 10),
            (F32, 1024, 4096, 1),
            (F32, 700, 2800, 0),   // one a page would waste 32 %
            (F32, 768, 3072, 0),   // exactly a quarter
            (F32, 769, 4096, 1),   // just below
            (F32, 1433, 5732, 0),  // cora: two pages would waste 30 %
            (F32, 1600, 8192, 0),  // 22 %
            (F32, 3703, 16384, 0), // citeseer
            (F16, 3, 8, 512),
            (F16, 128, 256, 16),
            (Int8, 1, 8, 512),
            (Int8, 128, 132, 31),
        ] {
            let layout = RowLayout::new(dtype, dim).unwrap();
            let got = (layout.stride(), layout.rows_per_page());
            assert_eq!(got, (stride, rows_per_page), "{dtype} {dim}");
            assert_eq!(layout.fault(), None);
        }
        assert!(RowLayout::new(F32, 0).is_err());
        assert!(RowLayout::new(Int8, (1 << 24) + 1).is_err());
    }

    #[test]
    fn rows_are_disjoint_and_cross_pages_only_where_that_saves_a_quarter() {
        for dtype in [FeatureType::F32, FeatureType::F16, FeatureType::Int8] {
            for dim in 1..3000 {
                let layout = RowLayout::new(dtype, dim).unwrap();
                let bytes = layout.row_bytes() as u64;
                let mut end = 0;
                for row in 0..100 {
                    assert!(layout.offset(row) >= end, "{dtype} {dim} row {row}");
                    end = layout.offset(row) + bytes;
                    let pages = layout.pages(row);
                    let least = bytes.div_ceil(PAGE_BYTES as u64);
                    let tight = layout.stride() < layout.row_bytes() + ALIGN;
                    assert!(tight || pages.end - pages.start == least, "{dtype} {dim} row {row}");
                }
                assert!(layout.file_bytes(100) >= end);
                let used = 100 * layout.row_bytes().next_multiple_of(ALIGN) as u64;
                // The last pages may be nearly empty.
                let whole = layout.file_bytes(100).saturating_sub(2 * PAGE_BYTES as u64);
                assert!(4 * used >= 3 * whole, "{dtype} {dim}: {used} of {whole}");
            }
        }
    }
}
