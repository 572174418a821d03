//! The names of a graph that is there, read in their order.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat::read_chunk;
use tiergraph_format::names::{ENDS_FILE, TEXT_FILE};

/// Names that are handed over at once.
const STEP: usize = 1 << 12;

/// Calls `visit` with the names of the graph in `dir`, some at a time, and the number of the first of them.
pub(super) fn read(
    dir: &GraphDir,
    mut visit: impl FnMut(u64, &[&[u8]]) -> Result<()>,
) -> Result<()> {
    let (ends, all) = (dir.entry(ENDS_FILE)?, dir.entry(TEXT_FILE)?);
    let (ends_path, text_path) = (dir.path().join(ENDS_FILE), dir.path().join(TEXT_FILE));
    // The text from byte `begin` on, as far as it was read.
    let (mut text, mut begin, mut next) = (Vec::<u8>::new(), 0u64, 0);
    let mut first = 0;
    for number in 0..ends.blocks {
        for ends in read_chunk::<u64>(&ends_path, ends, number)?.chunks(STEP) {
            let last = ends.last().copied().unwrap_or(begin);
            if last > all.bytes || !ends.is_sorted() || ends[0] < begin {
                return Err(damaged(dir));
            }
            while begin + (text.len() as u64) < last {
                text.extend(read_chunk::<u8>(&text_path, all, next)?);
                next += 1;
            }
            let mut at = 0;
            let of = |end: &u64| {
                let name = &text[at..(end - begin) as usize];
                at = (end - begin) as usize;
                name
            };
            let names: Vec<&[u8]> = ends.iter().map(of).collect();
            visit(first, &names)?;
            first += names.len() as u64;
            text.drain(..(last - begin) as usize);
            begin = last;
        }
    }
    Ok(())
}

/// The error of names that are not what a build writes.
pub(super) fn damaged(dir: &GraphDir) -> Error {
    Error::new(ErrorKind::Format, "read the names of vertices of")
        .object(dir.path().display())
        .expected("names one after the other, each once")
        .got("others")
        .hint("`tiergraph verify` lists all damage")
}
