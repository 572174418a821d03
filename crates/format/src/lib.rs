//! The on-disk graph: manifest, blocks, codecs, index, checksums. Bytes only, no I/O engine.
//!
//! `docs/format.md` describes every file byte for byte. All integers are little-endian, and so
//! must the machine be: id arrays are read in place.
#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("tiergraph reads little-endian files in place and needs a little-endian machine");

pub mod block;
pub mod directory;
pub mod drive;
pub mod edges;
pub mod features;
pub mod flat;
pub mod hetero;
mod journal;
mod le;
mod leftovers;
pub mod manifest;
pub mod names;
pub mod pages;
mod place;
pub mod raw;
pub mod rows;
pub mod salt;
mod seal;
pub mod sink;
pub mod tiles;
pub mod verify;
