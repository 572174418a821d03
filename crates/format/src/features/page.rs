//! A page's checksum, which is kept beside the file and not in it, so that rows fill whole pages.

use tiergraph_core::{Error, ErrorKind, Result};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// Checks page `number` of `file` against the checksums of all its pages.
///
/// # Errors
/// [`ErrorKind::Format`] that names the file, the page and its offset.
pub fn check_page(page: &[u8], crcs: &[u32], file: &str, number: u64) -> Result<()> {
    let computed = crc32c::crc32c(page);
    let stored = usize::try_from(number).ok().and_then(|number| crcs.get(number));
    if page.len() == PAGE_BYTES && stored == Some(&computed) {
        return Ok(());
    }
    let offset = number.saturating_mul(PAGE_BYTES as u64);
    let bad = Error::new(ErrorKind::Format, format!("use page {number} (offset {offset}) of"))
        .object(file)
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it");
    Err(match stored {
        _ if page.len() != PAGE_BYTES => {
            bad.expected(format!("{PAGE_BYTES} bytes")).got(format!("{} bytes", page.len()))
        }
        Some(stored) => {
            bad.expected(format!("CRC-32C {stored:08x}")).got(format!("{computed:08x}"))
        }
        None => bad.expected(format!("one of {} pages", crcs.len())),
    })
}
