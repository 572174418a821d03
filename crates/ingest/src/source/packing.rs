//! The ways in which a file is packed, told by its first bytes, and their decoders.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Bytes that are read of a packed file at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of the largest window that is unpacked: `zstd` writes larger ones with `--long` alone, `xz` never.
const MOST_WINDOW_BYTES: u64 = 128 << 20;
/// Bytes that a decoder holds beside its window.
const DECODER_BYTES: u64 = 1 << 20;
/// Bytes that a decoder of bzip2 holds: blocks of 900 kB, at 4 bytes a byte.
const BZIP2_BYTES: u64 = 4 << 20;
/// First bytes that say how large a window is.
pub(super) const HEADER_BYTES: usize = 64;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Not at all.
    None,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

/// Packings, the first bytes of their files, the ends of these files' names, and the programs that unpack.
const KNOWN: [(Packing, &[u8], &[&str], &str); 4] = [
    (Packing::Gzip, b"\x1f\x8b", &[".gz", ".bgz"], "gunzip --keep"),
    (Packing::Zstd, b"\x28\xb5\x2f\xfd", &[".zst", ".zstd"], "zstd --decompress"),
    (Packing::Xz, b"\xfd7zXZ\0", &[".xz"], "xz --decompress --keep"),
    (Packing::Bzip2, b"BZh", &[".bz2"], "bzip2 --decompress --keep"),
];

impl Packing {
    /// The packing of a file that starts so.
    pub(crate) fn of(head: &[u8]) -> Self {
        let found = KNOWN.iter().find(|(_, magic, ..)| head.starts_with(magic));
        found.map_or(Self::None, |known| known.0)
    }

    /// What is done to such a file, for messages.
    pub(crate) fn op(self) -> &'static str {
        match self {
            Self::None => "read",
            Self::Gzip => "unzip",
            _ => "unpack",
        }
    }

    /// Bytes that unpacking a file holds that starts with `header`.
    pub(crate) fn held_bytes(self, header: &[u8]) -> u64 {
        match self {
            Self::None | Self::Gzip => 0,
            Self::Bzip2 => BZIP2_BYTES,
            // What is decoded lies in a ring of a power of two.
            Self::Zstd => {
                2 * zstd_window(header).unwrap_or(MOST_WINDOW_BYTES).min(MOST_WINDOW_BYTES)
                    + DECODER_BYTES
            }
            Self::Xz => {
                xz_window(header).unwrap_or(MOST_WINDOW_BYTES).min(MOST_WINDOW_BYTES)
                    + DECODER_BYTES
            }
        }
    }

    /// What `packed`, which starts with `header`, has when it is unpacked.
    pub(crate) fn unpack<'a>(
        self,
        packed: impl Read + Send + 'a,
        header: &[u8],
    ) -> Box<dyn Read + Send + 'a> {
        let buffered = |packed| BufReader::with_capacity(BUFFER_BYTES, packed);
        match self {
            Self::None => Box::new(packed),
            Self::Gzip => Box::new(Whole(MultiGzDecoder::new(buffered(packed)))),
            Self::Bzip2 => Box::new(Whole(MultiBzDecoder::new(buffered(packed)))),
            Self::Xz => {
                let most = (self.held_bytes(header) >> 10) as u32;
                Box::new(Whole(XzReader::new_mem_limit(buffered(packed), true, most)))
            }
            Self::Zstd => Box::new(Whole(Zstd::new(buffered(packed)))),
        }
    }
}

/// What is unpacked, with one error for files that are not whole.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => invalid("it ends too early"),
            _ => error,
        })
    }
}

/// A file's name without the end that says how it is packed, and the program that unpacks such files.
pub(crate) fn unpacked_name(name: &str) -> (&str, Option<&'static str>) {
    let ends = KNOWN.iter().flat_map(|(.., ends, by)| ends.iter().map(move |end| (end, *by)));
    ends.into_iter()
        .find_map(|(end, by)| name.strip_suffix(end).map(|name| (name, Some(by))))
        .unwrap_or((name, None))
}

/// The window of the first frame (RFC 8878, 3.1.1.1); `None` where the header says none.
fn zstd_window(header: &[u8]) -> Option<u64> {
    let descriptor = *header.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    if !is_single {
        let window = *header.get(5)?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let width = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let size = header.get(5 + dictionary..)?.get(..width)?;
    let value = size.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some(if width == 2 { value + 256 } else { value })
}

/// The dictionary of the first block (the .xz file format, 3.1 and 5.3.1); `None` where another filter
/// comes first.
fn xz_window(header: &[u8]) -> Option<u64> {
    let flags = *header.get(13)?;
    let mut at = 14;
    // Sizes of the block, seven bits a byte.
    for _ in 0..(flags >> 6).count_ones() {
        at += header.get(at..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
    }
    let [0x21, 1, bits, ..] = *header.get(at..)? else { return None };
    match bits {
        0..40 => Some(u64::from(2 | bits & 1) << (bits / 2 + 11)),
        _ => None,
    }
}

/// A decoder of Zstandard frames, one after the other.
struct Zstd<R> {
    packed: R,
    frame: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(packed: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MOST_WINDOW_BYTES);
        Self { packed, frame, is_in_frame: false }
    }

    /// Goes to the next frame; false at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.packed.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.frame.reset(&mut self.packed) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = &mut (&mut self.packed).take(length.into());
                    if io::copy(skipped, &mut io::sink())? < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(_) => return Err(invalid("a frame that is damaged or cut off")),
            }
        }
    }

    /// Fails where the frame that has ended is not what its checksum says.
    fn check(&self) -> io::Result<()> {
        let said = self.frame.get_checksum_from_data();
        if said.is_some() && said != self.frame.get_calculated_checksum() {
            return Err(invalid("the checksum of a frame is wrong"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_in_frame && self.frame.can_collect() > 0 {
                return self.frame.read(to);
            }
            if self.is_in_frame && !self.frame.is_finished() {
                let blocks = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.frame.decode_blocks(&mut self.packed, blocks);
                decoded.map_err(|_| invalid("a frame that is damaged or cut off"))?;
                continue;
            }
            if self.is_in_frame {
                self.check()?;
            }
            self.is_in_frame = self.next_frame()?;
            if !self.is_in_frame {
                return Ok(0);
            }
        }
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_the_end_that_says_how_they_are_packed() {
        assert_eq!(unpacked_name("a.csv.gz"), ("a.csv", Some("gunzip --keep")));
        assert_eq!(unpacked_name("a.wel.zst").0, "a.wel");
        assert_eq!(unpacked_name("a.csv"), ("a.csv", None));
    }

    #[test]
    fn windows_are_read_from_headers() {
        // A window of 8 MiB; a single segment of 300 bytes.
        assert_eq!(zstd_window(&[0x28, 0xb5, 0x2f, 0xfd, 0x04, 13 << 3]), Some(8 << 20));
        assert_eq!(zstd_window(&[0x28, 0xb5, 0x2f, 0xfd, 0x60, 44, 0]), Some(300));
        let mut xz = [0; 24];
        xz[12..18].copy_from_slice(&[2, 0, 0x21, 1, 22, 0]);
        assert_eq!(xz_window(&xz), Some(8 << 20));
        // With both sizes before the filter.
        xz[12..22].copy_from_slice(&[2, 0xc0, 0x85, 1, 0x86, 2, 0x21, 1, 28, 0]);
        assert_eq!(xz_window(&xz), Some(64 << 20));
        assert_eq!(xz_window(&[0; 20]), None);
    }
}
