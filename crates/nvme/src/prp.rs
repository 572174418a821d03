//! Physical region pages: how a command names the memory that it moves data to or from (Base 4.1.1).
//!
//! `prp1` is where the data begins, at any dword of a page; every further page is named whole. One more
//! page is in `prp2`; of more pages `prp2` is the bus address of a list, whose last entry, where the list
//! reaches the end of its page and is not complete, is the bus address of the next list.

use crate::SharedMemory;
use crate::completion::Status;
use crate::dma::PAGE_BYTES;

/// Bytes of an entry of a list.
const ENTRY_BYTES: u64 = 8;
/// Entries of a page of a list.
pub const LIST_ENTRIES: u64 = PAGE_BYTES / ENTRY_BYTES;
/// The most bytes from a page's start on that are described with a list of one page.
pub const MOST_BYTES: u64 = (LIST_ENTRIES + 1) * PAGE_BYTES;

/// A page of shared memory for a command's list.
#[derive(Debug, Clone)]
pub struct List {
    /// The page.
    pub memory: SharedMemory,
    /// Its bus address.
    pub bus: u64,
}

/// The two fields of a command that name its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prps {
    /// The first byte.
    pub prp1: u64,
    /// The second page, or a list of pages from the second on; 0 where the first page is the only one.
    pub prp2: u64,
}

/// The fields for `len` bytes of memory that begin at `bus`, one page behind the other. More than
/// two pages are written to `list`.
///
/// `None` if there are no bytes, `bus` is at no dword, a list is wanted and not there, or does not hold
/// them.
pub fn describe(bus: u64, len: u64, list: Option<&List>) -> Option<Prps> {
    if len == 0 || !bus.is_multiple_of(4) {
        return None;
    }
    let second = (bus / PAGE_BYTES + 1) * PAGE_BYTES;
    let end = bus + len;
    if end <= second {
        return Some(Prps { prp1: bus, prp2: 0 });
    }
    if end <= second + PAGE_BYTES {
        return Some(Prps { prp1: bus, prp2: second });
    }
    let (list, entries) = (list?, (end - second).div_ceil(PAGE_BYTES));
    if entries > LIST_ENTRIES {
        return None;
    }
    for entry in 0..entries {
        list.memory.store64((entry * ENTRY_BYTES) as usize, second + entry * PAGE_BYTES);
    }
    Some(Prps { prp1: bus, prp2: list.bus })
}

/// Memory that a command names: bytes side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The bus address of the first byte.
    pub bus: u64,
    /// How many bytes.
    pub len: usize,
}

/// Adds the memory that a command names for `len` bytes to `pieces`, pages side by side as one piece.
/// `entry` reads the entry of a list at a bus address, and gives `None` where no memory is.
///
/// # Errors
/// The status that a drive gives to the command.
pub fn walk(
    prps: Prps,
    len: usize,
    mut entry: impl FnMut(u64) -> Option<u64>,
    pieces: &mut Vec<Piece>,
) -> Result<(), Status> {
    let Prps { prp1, prp2 } = prps;
    if !prp1.is_multiple_of(4) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    let first = (PAGE_BYTES - prp1 % PAGE_BYTES).min(len as u64) as usize;
    add(pieces, prp1, first);
    let mut left = len - first;
    if left == 0 {
        return Ok(());
    }
    if left <= PAGE_BYTES as usize {
        return add_page(pieces, prp2, &mut left);
    }
    let mut at = prp2;
    if !at.is_multiple_of(ENTRY_BYTES) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    while left > 0 {
        let value = entry(at).ok_or(Status::DATA_TRANSFER_ERROR)?;
        let is_last_of_page = (at + ENTRY_BYTES).is_multiple_of(PAGE_BYTES);
        if is_last_of_page && left > PAGE_BYTES as usize {
            if !value.is_multiple_of(PAGE_BYTES) {
                return Err(Status::INVALID_PRP_OFFSET);
            }
            at = value;
            continue;
        }
        add_page(pieces, value, &mut left)?;
        at += ENTRY_BYTES;
    }
    Ok(())
}

fn add_page(pieces: &mut Vec<Piece>, page: u64, left: &mut usize) -> Result<(), Status> {
    if !page.is_multiple_of(PAGE_BYTES) {
        return Err(Status::INVALID_PRP_OFFSET);
    }
    let len = (*left).min(PAGE_BYTES as usize);
    add(pieces, page, len);
    *left -= len;
    Ok(())
}

fn add(pieces: &mut Vec<Piece>, bus: u64, len: usize) {
    match pieces.last_mut() {
        Some(last) if last.bus.checked_add(last.len as u64) == Some(bus) => last.len += len,
        _ => pieces.push(Piece { bus, len }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn walked(
        prp1: u64,
        prp2: u64,
        len: usize,
        lists: &HashMap<u64, u64>,
    ) -> Result<Vec<Piece>, Status> {
        let mut pieces = Vec::new();
        let prps = Prps { prp1, prp2 };
        walk(prps, len, |at| lists.get(&at).copied(), &mut pieces).map(|()| pieces)
    }

    proptest! {
        #[test]
        fn what_is_described_is_walked(page in 1_u64..1 << 40, offset in 0_u64..1024, len in 1_u64..MOST_BYTES) {
            let bus = page * PAGE_BYTES + 4 * offset;
            let list = List { memory: SharedMemory::zeroed(4096).unwrap(), bus: 0x1000 };
            match describe(bus, len, Some(&list)) {
                Some(prps) => {
                    let entry = |at: u64| Some(list.memory.load64((at - list.bus) as usize));
                    let mut pieces = Vec::new();
                    walk(prps, len as usize, entry, &mut pieces).unwrap();
                    prop_assert_eq!(pieces, [Piece { bus, len: len as usize }]);
                }
                None => prop_assert!(4 * offset + len > MOST_BYTES),
            }
        }
    }

    #[test]
    fn lists_go_on_behind_their_pages_end() {
        // A list that has room for two entries of its page: a data page, and the next list.
        let lists = HashMap::from([
            (0x5000 - 16, 0xa000),
            (0x5000 - 8, 0x9000),
            (0x9000, 0xc000),
            (0x9008, 0xb000),
        ]);
        let page = |bus, len| Piece { bus, len };
        let four = walked(0x1000, 0x5000 - 16, 4 * 4096, &lists).unwrap();
        assert_eq!(four, [0x1000, 0xa000, 0xc000, 0xb000].map(|bus| page(bus, 4096)));
        // The last page of the data is in the last entry, which is no list then.
        let three = walked(0x1000, 0x5000 - 16, 3 * 4096 - 5, &lists).unwrap();
        assert_eq!(three, [page(0x1000, 4096), page(0xa000, 4096), page(0x9000, 4091)]);
    }

    #[test]
    fn what_no_drive_takes_has_a_drives_status() {
        let lists = HashMap::from([(0x5000, 0xa004), (0x6000 - 8, 0x9008)]);
        let refused = |prp1, prp2, len| walked(prp1, prp2, len, &lists).unwrap_err();
        assert_eq!(refused(0x1002, 0, 16), Status::INVALID_PRP_OFFSET);
        assert_eq!(refused(0x1000, 0x2004, 8192), Status::INVALID_PRP_OFFSET);
        assert_eq!(refused(0x1000, 0x5004, 3 * 4096), Status::INVALID_PRP_OFFSET);
        assert_eq!(refused(0x1000, 0x5000, 3 * 4096), Status::INVALID_PRP_OFFSET);
        assert_eq!(refused(0x1000, 0x6000 - 8, 3 * 4096), Status::INVALID_PRP_OFFSET);
        assert_eq!(refused(0x1000, 0x7000, 3 * 4096), Status::DATA_TRANSFER_ERROR);
    }

    #[test]
    fn memory_that_one_list_does_not_hold_is_not_described() {
        assert_eq!(describe(0x1000, 0, None), None);
        assert_eq!(describe(0x1002, 8, None), None);
        assert_eq!(describe(0x1ffc, 8, None), Some(Prps { prp1: 0x1ffc, prp2: 0x2000 }));
        assert_eq!(describe(0x1000, 3 * 4096, None), None);
    }
}
