//! One list of ascending neighbours, in bytes.
//!
//! ```text
//! varint  n             neighbours in this list (or in this piece of a longer one)
//! [pieces only] varint total, varint before    the whole list's length; the neighbour before
//! [n > 64]      u8 b, then for each chunk of 64 but the first:
//!               b bytes the neighbour before the chunk, u16 where its groups begin
//! groups        u8 width, then 16 gaps (fewer in the last) of that many bits
//! ```
//! A gap is the difference to the neighbour before (to 0, or to `before`, at the start), so equal
//! neighbours are allowed. Group positions count from the first group.

use super::group::{GROUP, Gaps, bytes_of, pack, pack_16, unpack, unpack_16};
use crate::le::u16_at;

/// The number of neighbours in a chunk; a reader can enter a list at the start of any chunk.
pub const CHUNK: usize = 64;

/// A list's chunks, packed once and then cut wherever pages end.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// The groups of all chunks.
    bytes: Vec<u8>,
    /// Where each chunk ends in `bytes`.
    ends: Vec<usize>,
    /// The last neighbour of each chunk.
    last: Vec<u64>,
    len: usize,
}

impl Chunks {
    /// Packs the `mask` bits of `words`; whether they ascend.
    pub(super) fn pack<W: Copy + Into<u64>>(&mut self, words: &[W], mask: u64) -> bool {
        self.bytes.clear();
        self.ends.clear();
        self.last.clear();
        self.len = words.len();
        let (mut before, mut ascending) = (0, true);
        for chunk in words.chunks(CHUNK) {
            ascending &= pack_groups(chunk, mask, &mut before, &mut self.bytes);
            self.ends.push(self.bytes.len());
            self.last.push(before);
        }
        ascending
    }

    /// Bytes that the chunks take in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.ends.len() * 2 * size_of::<u64>()
    }

    /// How many chunks there are.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Neighbours in the first `chunks` chunks.
    pub(super) fn neighbors_before(&self, chunks: usize) -> usize {
        (chunks * CHUNK).min(self.len)
    }

    fn end(&self, chunks: usize) -> usize {
        chunks.checked_sub(1).map_or(0, |i| self.ends[i])
    }

    fn last_before(&self, chunk: usize) -> u64 {
        chunk.checked_sub(1).map_or(0, |i| self.last[i])
    }

    /// The bytes of chunks `from..to` as a list of its own, of the whole list if that is all.
    pub(super) fn encoded_bytes(&self, from: usize, to: usize, piece: bool) -> usize {
        let n = self.neighbors_before(to) - self.neighbors_before(from);
        let mut bytes = varint_bytes(n as u64) + self.end(to) - self.end(from);
        if piece {
            bytes += varint_bytes(self.len as u64) + varint_bytes(self.last_before(from));
        }
        if to - from > 1 {
            bytes += 1 + (to - from - 1) * (self.base_bytes(to) + 2);
        }
        bytes
    }

    fn base_bytes(&self, to: usize) -> usize {
        (64 - self.last_before(to - 1).leading_zeros() as usize).div_ceil(8).max(1)
    }

    /// Appends chunks `from..to` as a list of its own.
    pub(super) fn encode(&self, from: usize, to: usize, piece: bool, out: &mut Vec<u8>) {
        let n = self.neighbors_before(to) - self.neighbors_before(from);
        put_varint(n as u64, out);
        if piece {
            put_varint(self.len as u64, out);
            put_varint(self.last_before(from), out);
        }
        if to - from > 1 {
            let base_bytes = self.base_bytes(to);
            out.push(base_bytes as u8);
            for chunk in from + 1..to {
                out.extend_from_slice(&self.last_before(chunk).to_le_bytes()[..base_bytes]);
                let begin = (self.end(chunk) - self.end(from)) as u16;
                out.extend_from_slice(&begin.to_le_bytes());
            }
        }
        out.extend_from_slice(&self.bytes[self.end(from)..self.end(to)]);
    }
}

/// Appends a list of at most [`CHUNK`] neighbours, the `mask` bits of `words`; whether they ascend.
pub(super) fn pack_short<W: Copy + Into<u64>>(words: &[W], mask: u64, out: &mut Vec<u8>) -> bool {
    put_varint(words.len() as u64, out);
    pack_groups(words, mask, &mut 0, out)
}

/// Appends the groups of one chunk; `before` is the neighbour before, and then the last one.
#[inline]
fn pack_groups<W: Copy + Into<u64>>(
    words: &[W],
    mask: u64,
    before: &mut u64,
    out: &mut Vec<u8>,
) -> bool {
    let mut last = *before;
    let mut descends = false;
    let mut gap = |word: W| {
        let neighbor = word.into() & mask;
        let gap = neighbor.wrapping_sub(last);
        descends |= neighbor < last;
        last = neighbor;
        gap
    };
    let (full, tail) = words.as_chunks::<GROUP>();
    for group in full {
        let mut gaps = [0u64; GROUP];
        for (slot, &word) in gaps.iter_mut().zip(group) {
            *slot = gap(word);
        }
        pack_16(&gaps, out);
    }
    if !tail.is_empty() {
        let mut gaps = [0u64; GROUP];
        for (slot, &word) in gaps.iter_mut().zip(tail) {
            *slot = gap(word);
        }
        pack(&gaps[..tail.len()], out);
    }
    *before = last;
    !descends
}

/// A list as it lies on a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    /// Neighbours in this list or piece.
    pub(super) len: usize,
    /// Neighbours in the whole list.
    pub(super) total: u64,
    before: u64,
    base_bytes: usize,
    table: &'a [u8],
    groups: &'a [u8],
    /// From the first group to the end of the page: what full-width loads may touch.
    padded: &'a [u8],
}

impl<'a> List<'a> {
    /// The list that begins `bytes` and has `end` bytes; `None` if it does not fit in them.
    #[inline(always)]
    pub(super) fn parse(bytes: &'a [u8], end: usize, piece: bool) -> Option<Self> {
        let mut rest = bytes.get(..end)?;
        if rest.is_empty() {
            return Some(Self::default());
        }
        let len = usize::try_from(take_varint(&mut rest)?).ok()?;
        // A group takes a byte at least, so more than this cannot be here.
        if len.div_ceil(GROUP) > rest.len() {
            return None;
        }
        let (mut total, mut before) = (len as u64, 0);
        if piece {
            (total, before) = (take_varint(&mut rest)?, take_varint(&mut rest)?);
        }
        let (mut base_bytes, mut table) = (1, &rest[..0]);
        if len > CHUNK {
            base_bytes = usize::from(*rest.split_off_first()?);
            if !(1..=8).contains(&base_bytes) {
                return None;
            }
            table = rest.split_off(..(len.div_ceil(CHUNK) - 1) * (base_bytes + 2))?;
        }
        let padded = &bytes[end - rest.len()..];
        Some(Self { len, total, before, base_bytes, table, groups: rest, padded })
    }

    /// Appends every neighbour; `None` if the groups do not fit the list.
    #[inline]
    pub(super) fn decode(&self, out: &mut Vec<u64>) -> Option<()> {
        let start = out.len();
        out.resize(start + self.len, 0);
        let decoded = decode_groups(self.groups, self.padded, self.before, &mut out[start..]);
        if decoded.is_none() {
            out.truncate(start);
        }
        decoded
    }

    /// Calls `visit` on each neighbour in ascending order until it gives false; `None` if the groups
    /// do not fit the list.
    #[inline(always)]
    pub(super) fn walk(&self, mut visit: impl FnMut(u64) -> bool) -> Option<()> {
        if self.len == 0 {
            return Some(());
        }
        // Most walks that end early do so in the first group, whose gaps come one by one.
        let width = usize::from(*self.groups.first()?);
        let n = self.len.min(GROUP);
        let end = 1 + bytes_of(n, width);
        if end > self.groups.len() {
            return None;
        }
        let gaps = Gaps::new(&self.padded[1..], width.min(64));
        let mut base = self.before;
        for i in 0..n {
            base = base.wrapping_add(gaps.get(i));
            if !visit(base) {
                return Some(());
            }
        }
        if n < self.len { self.walk_on(end, base, &mut visit) } else { Some(()) }
    }

    /// The walk after the first group, which ends at `at` with neighbour `base`. Not inlined, so
    /// that it takes no registers from what comes before.
    #[inline(never)]
    fn walk_on(
        &self,
        mut at: usize,
        mut base: u64,
        visit: &mut impl FnMut(u64) -> bool,
    ) -> Option<()> {
        let mut left = self.len - GROUP;
        let mut group = [0; GROUP];
        while left > 0 {
            let width = usize::from(*self.groups.get(at)?);
            let (bytes, n) = (&self.padded[at + 1..], left.min(GROUP));
            at += 1 + bytes_of(n, width);
            if at > self.groups.len() {
                return None;
            }
            base = match n {
                GROUP => unpack_16(bytes, width.min(64), base, &mut group),
                _ => unpack(bytes, width.min(64), base, &mut group[..n]),
            };
            if !group[..n].iter().all(|&neighbor| visit(neighbor)) {
                return Some(());
            }
            left -= n;
        }
        Some(())
    }

    /// The `k`-th neighbour, by unpacking at most one chunk.
    pub(super) fn kth(&self, k: usize) -> Option<u64> {
        if k >= self.len {
            return None;
        }
        let (mut begin, mut base) = (0, self.before);
        let chunk = k / CHUNK;
        if chunk > 0 {
            let entry = self.table.get((chunk - 1) * (self.base_bytes + 2)..)?;
            let mut bytes = [0; 8];
            bytes[..self.base_bytes].copy_from_slice(entry.get(..self.base_bytes)?);
            base = u64::from_le_bytes(bytes);
            begin = usize::from(u16_at(entry, self.base_bytes));
        }
        let mut out = [0; CHUNK];
        let n = (self.len - chunk * CHUNK).min(CHUNK).min((k % CHUNK / GROUP + 1) * GROUP);
        let (groups, padded) = (self.groups.get(begin..)?, self.padded.get(begin..)?);
        decode_groups(groups, padded, base, &mut out[..n])?;
        Some(out[k % CHUNK])
    }
}

impl Default for List<'_> {
    fn default() -> Self {
        Self { len: 0, total: 0, before: 0, base_bytes: 1, table: &[], groups: &[], padded: &[] }
    }
}

/// Unpacks groups into `out`. `padded` is `groups` and what follows it on the page.
#[inline]
fn decode_groups(groups: &[u8], padded: &[u8], mut base: u64, out: &mut [u64]) -> Option<()> {
    let end = groups.len();
    let mut at = 0;
    let (full, tail) = out.as_chunks_mut::<GROUP>();
    for group in full {
        let width = usize::from(*padded.get(at)?);
        at += 1;
        base = unpack_16(padded.get(at..)?, width.min(64), base, group);
        at += bytes_of(GROUP, width);
    }
    if !tail.is_empty() {
        let width = usize::from(*padded.get(at)?);
        at += 1;
        unpack(padded.get(at..)?, width.min(64), base, tail);
        at += bytes_of(tail.len(), width);
    }
    (at <= end).then_some(())
}

fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
