//! The 64-byte header and the checksum of every block of a multi-block file.
//!
//! A block is `block_bytes` long (1 MiB unless chosen otherwise, always a multiple of 4 KiB) and
//! lies at `number × block_bytes`. The CRC-32C at the end of its header covers every other byte of
//! the block, so a flipped bit anywhere in it is found. Layouts (`tiles`, `raw`) give the payload
//! its meaning; this module does not look inside.

use tiergraph_core::{Error, ErrorKind, Result, crc32c};

use crate::le::{put, u16_at, u32_at, u64_at};
use crate::salt::Salt;

/// Bytes of a block's header; the payload follows it.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a block unless chosen otherwise: 1 MiB.
pub const DEFAULT_BLOCK_BYTES: u32 = 1 << 20;
/// Bytes that every block size is a multiple of: the unit of direct I/O.
pub const BLOCK_ALIGN: u32 = 4096;

const MAGIC: u32 = u32::from_le_bytes(*b"TGBK");
const CHECKSUM_AT: usize = 60;

/// How a block's payload is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Layout {
    /// Two-dimensional tiles (codec `packed`).
    Tiles = 1,
    /// Plain neighbour ids (codec `raw`).
    Raw = 2,
}

/// The header of a block. Bytes 36 to 59 are reserved and zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How the payload is laid out.
    pub layout: Layout,
    /// Bits whose meaning the layout defines.
    pub flags: u16,
    /// The block's place in its file, so that a block written to a wrong place is found.
    pub number: u64,
    /// The first vertex (row) with arcs in this block.
    pub first_vertex: u64,
    /// Arcs stored in this block.
    pub arcs: u32,
    /// Bytes of the payload, which follows the header; the rest of the block is zero.
    pub payload_bytes: u32,
    /// Entries of the layout's own table: listed vertices (`raw`), segments (`tiles`).
    pub items: u32,
}

impl Header {
    /// Writes the header, but not the checksum, to the first 64 bytes of `block`.
    ///
    /// # Panics
    /// If `block` is shorter than a header.
    pub fn write(&self, block: &mut [u8]) {
        block[..HEADER_BYTES].fill(0);
        put(block, 0, MAGIC.to_le_bytes());
        put(block, 4, (self.layout as u16).to_le_bytes());
        put(block, 6, self.flags.to_le_bytes());
        put(block, 8, self.number.to_le_bytes());
        put(block, 16, self.first_vertex.to_le_bytes());
        put(block, 24, self.arcs.to_le_bytes());
        put(block, 28, self.payload_bytes.to_le_bytes());
        put(block, 32, self.items.to_le_bytes());
    }

    /// Parses a block's header without comparing the checksum; the error says what is wrong with it.
    pub fn read(block: &[u8]) -> Result<Self> {
        let bad = |expected: &str, got: String| {
            Error::new(ErrorKind::Format, "read the block header").expected(expected).got(got)
        };
        if block.len() < HEADER_BYTES {
            return Err(bad("at least 64 bytes", format!("{} bytes", block.len())));
        }
        if u32_at(block, 0) != MAGIC {
            return Err(bad("a block that begins with `TGBK`", format!("{:02x?}", &block[..4])));
        }
        let layout = match u16_at(block, 4) {
            1 => Layout::Tiles,
            2 => Layout::Raw,
            other => return Err(bad("layout 1 (tiles) or 2 (raw)", format!("layout {other}"))),
        };
        let payload_bytes = u32_at(block, 28);
        let room = block.len() - HEADER_BYTES;
        if payload_bytes as usize > room {
            let expected = format!("at most {room} bytes of payload");
            return Err(bad(&expected, format!("{payload_bytes} bytes")));
        }
        Ok(Self {
            layout,
            flags: u16_at(block, 6),
            number: u64_at(block, 8),
            first_vertex: u64_at(block, 16),
            arcs: u32_at(block, 24),
            payload_bytes,
            items: u32_at(block, 32),
        })
    }
}

/// Writes the checksum, salted with `salt`, of a block whose header and payload are in place.
///
/// # Panics
/// If `block` is shorter than a header.
pub fn seal(block: &mut [u8], salt: Salt) {
    let crc = salt.on(checksum(block));
    put(block, CHECKSUM_AT, crc.to_le_bytes());
}

/// Compares the checksum of block `number` of `file`, and returns its header. `block` has all of the
/// block's bytes; `salt` is the file's: blocks of other files and builds do not match.
///
/// # Errors
/// [`ErrorKind::Format`] that names the file, the block and its offset.
pub fn check(block: &[u8], file: &str, number: u64, salt: Salt) -> Result<Header> {
    let at = || {
        let offset = number.saturating_mul(block.len() as u64);
        Error::new(ErrorKind::Format, format!("use block {number} (offset {offset}) of"))
            .object(file)
            .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
    };
    if block.len() < HEADER_BYTES {
        return Err(at().expected("at least 64 bytes").got(format!("{} bytes", block.len())));
    }
    let (stored, computed) = (u32_at(block, CHECKSUM_AT), salt.on(checksum(block)));
    if stored != computed {
        let expected = format!("CRC-32C {stored:08x}");
        return Err(at().expected(expected).got(format!("{computed:08x}")));
    }
    let header = Header::read(block).map_err(|e| at().source(e))?;
    if header.number != number {
        return Err(at().expected("its number").got(format!("block {}", header.number)));
    }
    Ok(header)
}

fn checksum(block: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&block[..CHECKSUM_AT]);
    crc32c::crc32c_append(crc, &block[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salt() -> Salt {
        Salt::of("b", "out.blocks")
    }

    fn sealed() -> Vec<u8> {
        let mut block = vec![0u8; 4096];
        block[64..164].fill(7);
        let header = Header {
            layout: Layout::Tiles,
            flags: 3,
            number: 5,
            first_vertex: 1 << 40,
            arcs: 100,
            payload_bytes: 100,
            items: 2,
        };
        header.write(&mut block);
        seal(&mut block, salt());
        assert_eq!(check(&block, "g.tg/tiles.blocks", 5, salt()).unwrap(), header);
        block
    }

    #[test]
    fn a_block_of_another_file_or_build_does_not_match() {
        let block = sealed();
        let others = [("b", "in.blocks"), ("a", "out.blocks"), ("b", "out.block"), ("", "")];
        for salt in
            others.map(|(build, file)| Salt::of(build, file)).into_iter().chain([Salt::NONE])
        {
            assert!(check(&block, "f", 5, salt).is_err(), "{salt:?}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut block = sealed();
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&block, "f", 5, salt()).is_err(), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn errors_name_file_block_and_offset() {
        let mut block = sealed();
        let e = check(&block, "g.tg/tiles.blocks", 6, salt()).unwrap_err();
        assert_eq!(
            e.to_string(),
            "cannot use block 6 (offset 24576) of `g.tg/tiles.blocks`: expected its number, got \
             block 5\n\nhint: `tiergraph verify` lists all damage; rebuild the graph to repair it"
        );
        block[70] ^= 1;
        let e = check(&block, "g.tg/tiles.blocks", 5, salt()).unwrap_err().to_string();
        assert!(e.starts_with(
            "cannot use block 5 (offset 20480) of `g.tg/tiles.blocks`: expected CRC-32C "
        ));
    }

    #[test]
    fn an_unknown_layout_is_refused() {
        let mut block = sealed();
        block[4] = 9;
        seal(&mut block, salt());
        let e = check(&block, "f", 5, salt()).unwrap_err().to_string();
        assert!(e.contains("expected layout 1 (tiles) or 2 (raw), got layout 9"), "{e}");
    }
}
