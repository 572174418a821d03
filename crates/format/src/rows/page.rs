//! A page: 4 KiB that can be read and understood alone.
//!
//! ```text
//!  0  u32  CRC-32C of the page number's eight bytes and then bytes 4..4096, salted
//!  4  u8   magic 0x52 (`R`)
//!  5  u8   flags: 1 = the first list began on an earlier page, 2 = the last goes on on the next
//!  6  u16  vertices on this page
//!  8  u64  the first vertex
//! 16  u64  arcs in the file before this page
//! 24  u64  how many neighbours of the first vertex are on earlier pages
//! 32  u16  × vertices: where each list ends, counted from the end of this table
//!     ...  the lists, then zeros; the last 8 bytes of the page are always zero
//! ```
//! The zero bytes at the end let a decoder load eight bytes from anywhere in a list.

use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use super::list::List;
use crate::le::{u16_at, u32_at, u64_at};
use crate::salt::Salt;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const PAD_BYTES: usize = 8;
/// What a page has for its table and lists.
pub(super) const ROOM: usize = PAGE_BYTES - HEADER_BYTES - PAD_BYTES;
pub(super) const MAGIC: u8 = b'R';
pub(super) const BEGAN_EARLIER: u8 = 1;
pub(super) const GOES_ON: u8 = 2;

/// A parsed page of a rows file. Parsing does not look at the checksum: see [`check_page`].
#[derive(Debug, Clone, Copy)]
pub struct RowsPage<'a> {
    page: &'a [u8],
    flags: u8,
    vertices: usize,
    first_vertex: u64,
}

/// The part of a vertex's neighbours that is on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// How many neighbours come before this page's: 0 unless the list spans pages.
    pub first: u64,
    /// Neighbours on this page.
    pub len: u64,
    /// Neighbours on all pages: the vertex's degree.
    pub degree: u64,
}

/// The checksum of page `number` of a file with this salt.
pub(super) fn checksum(page: &[u8], number: u64, salt: Salt) -> u32 {
    salt.on(crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &page[4..]))
}

/// Checks the checksum of page `number` of `file`. `salt` is the file's: pages of other files and
/// builds do not match.
///
/// # Errors
/// [`ErrorKind::Format`] that names the file, the page and its offset.
pub fn check_page(page: &[u8], file: &str, number: u64, salt: Salt) -> Result<()> {
    if page.len() != PAGE_BYTES {
        let got = format!("{} bytes", page.len());
        return Err(bad_page(file, number).expected("4096 bytes").got(got));
    }
    let (stored, computed) = (u32_at(page, 0), checksum(page, number, salt));
    if stored != computed {
        return Err(page_error(file, number, stored, computed));
    }
    Ok(())
}

/// The error of page `number` of `file` whose checksum is `computed`, and should be `stored`.
pub fn page_error(file: &str, number: u64, stored: u32, computed: u32) -> Error {
    let expected = format!("CRC-32C {stored:08x}");
    bad_page(file, number).expected(expected).got(format!("{computed:08x}"))
}

/// The error of a list with ids that are not those of vertices: its page is damaged, and its checksum was
/// not compared.
pub fn damaged_list(vertex: u32) -> Error {
    Error::new(ErrorKind::Format, "use the neighbours of vertex")
        .object(vertex)
        .expected("ids of vertices")
        .got("others: their page is damaged")
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}

fn bad_page(file: &str, number: u64) -> Error {
    let offset = number.saturating_mul(PAGE_BYTES as u64);
    Error::new(ErrorKind::Format, format!("use page {number} (offset {offset}) of"))
        .object(file)
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}

impl<'a> RowsPage<'a> {
    /// Parses a page: checks its header and its table's size, O(1). Lists are checked as they are read.
    pub fn parse(page: &'a [u8]) -> Result<Self> {
        let bad = |expected: &str, got: String| {
            Error::new(ErrorKind::Format, "read a page of rows").expected(expected).got(got)
        };
        if page.len() != PAGE_BYTES {
            return Err(bad("4096 bytes", format!("{} bytes", page.len())));
        }
        if page[4] != MAGIC {
            return Err(bad("magic `R`", format!("{:#04x}", page[4])));
        }
        let vertices = usize::from(u16_at(page, 6));
        let room = (PAGE_BYTES - HEADER_BYTES - PAD_BYTES) / 2;
        if vertices > room {
            return Err(bad(&format!("at most {room} vertices"), format!("{vertices}")));
        }
        let first_vertex = u64_at(page, 8);
        if first_vertex.checked_add(vertices as u64).is_none() {
            return Err(bad("vertex ids below 2^64", format!("{first_vertex}")));
        }
        Ok(Self { page, flags: page[5], vertices, first_vertex })
    }

    /// The vertices that have a place on this page, among them some without neighbours.
    pub fn vertices(&self) -> std::ops::Range<u64> {
        self.first_vertex..self.first_vertex + self.vertices as u64
    }

    /// The number of arcs in the file before this page.
    pub fn first_arc(&self) -> u64 {
        u64_at(self.page, 16)
    }

    /// Whether the last vertex's list goes on on the next page.
    pub fn goes_on(&self) -> bool {
        self.flags & GOES_ON != 0
    }

    /// The part of `vertex`'s neighbours on this page; of length 0 if `vertex` has no place on it.
    pub fn piece(&self, vertex: u64) -> Result<Piece> {
        let list = self.list(vertex)?;
        let earlier = vertex == self.first_vertex && self.flags & BEGAN_EARLIER != 0;
        let first = if earlier { u64_at(self.page, 24) } else { 0 };
        Ok(Piece { first, len: list.len as u64, degree: list.total })
    }

    /// The degree of `vertex`, as any page that has some of its neighbours tells it; 0 on other pages.
    pub fn degree(&self, vertex: u64) -> Result<u64> {
        Ok(self.list(vertex)?.total)
    }

    /// Appends the neighbours of `vertex` that are on this page, in ascending order.
    #[inline]
    pub fn neighbors(&self, vertex: u64, out: &mut Vec<u64>) -> Result<()> {
        self.list(vertex)?.decode(out).ok_or_else(|| self.bad(vertex))
    }

    /// Calls `visit` on the neighbours of `vertex` that are on this page, in ascending order, until
    /// it gives false. Only what is visited is unpacked.
    #[inline(always)]
    pub fn walk(&self, vertex: u64, visit: impl FnMut(u64) -> bool) -> Result<()> {
        self.list(vertex)?.walk(visit).ok_or_else(|| self.bad(vertex))
    }

    /// The `k`-th neighbour of `vertex` (counted from 0 over all pages), unpacking 64 at most.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if that neighbour is not on this page.
    pub fn kth(&self, vertex: u64, k: u64) -> Result<u64> {
        let (list, piece) = (self.list(vertex)?, self.piece(vertex)?);
        let here = k.checked_sub(piece.first).filter(|k| *k < piece.len);
        let Some(k) = here else {
            return Err(Error::new(ErrorKind::Input, "take a neighbour of vertex")
                .object(vertex)
                .expected(format!("one of {} from {}", piece.len, piece.first))
                .got(k));
        };
        list.kth(k as usize).ok_or_else(|| self.bad(vertex))
    }

    // A list is large to hand over, and most callers need little of it.
    #[inline(always)]
    fn list(&self, vertex: u64) -> Result<List<'a>> {
        let at = vertex.wrapping_sub(self.first_vertex);
        if at >= self.vertices as u64 {
            return Ok(List::default());
        }
        let at = at as usize;
        let body = HEADER_BYTES + 2 * self.vertices;
        let end = |i: usize| usize::from(u16_at(self.page, HEADER_BYTES + 2 * i));
        let begin = at.checked_sub(1).map_or(0, end);
        let piece = (at == 0 && self.flags & BEGAN_EARLIER != 0)
            || (at + 1 == self.vertices && self.flags & GOES_ON != 0);
        let end = end(at);
        let parsed = || {
            let len = end.checked_sub(begin)?;
            List::parse(self.page.get(body + begin..)?, len, piece)
        };
        parsed().ok_or_else(|| self.bad(vertex))
    }

    #[cold]
    fn bad(&self, vertex: u64) -> Error {
        Error::new(ErrorKind::Format, "read the neighbours of vertex")
            .object(vertex)
            .expected("a list inside its page")
            .got("one that runs past its end")
    }
}
