//! Feature rows: one row of numbers a vertex, in pages of 4 KiB.
//!
//! A page is what is read and what is checksummed; a row has a checksum of its own, for readers that
//! read it without the rest of its page. A row lies on one page wherever that wastes less than a quarter
//! of it ([`RowLayout`]), so that gathering a row is one read. Rows are 32-bit floats,
//! 16-bit floats, or 8-bit integers with a scale of their own ([`FeatureType`]); readers get 32-bit
//! floats ([`RowLayout::decode`]).
//!
//! | file | holds |
//! |---|---|
//! | `features/NAME.rows` | the rows; striped like blocks |
//! | `features/NAME.crc` | u32 a page: its CRC-32C |
//! | `features/NAME.row_crc` | u32 a row: its CRC-32C, without the padding behind it |
//! | `features/NAME.ids` | u32 a vertex: its row, where rows are not in the vertices' order |

mod addition;
mod codec;
mod layout;
mod names;
mod row_crc;
mod writer;

pub use crate::pages::{PAGE_BYTES, check_page};
pub(crate) use addition::make_folder;
pub use addition::{Addition, Destination, Growing, NewFiles};
pub use layout::{FeatureType, FeaturesEntry, RowLayout};
pub use names::{ArrayRole, FOLDERS, FeatureFiles, check_name};
pub(crate) use row_crc::{Mismatches, RowCheck};
pub use row_crc::{RowCrcWriter, RowMismatch};
pub use writer::{FeatureWriter, WrittenFeatures};
