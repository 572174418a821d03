//! What ties checksums to one file of one build: blocks and pages that were swapped do not match.
//!
//! A stored checksum of a block or of a page of rows is its CRC-32C exclusive-or the *salt* of its
//! file. Blocks and pages of another file, or of another build of equal shape, are then damaged like
//! any others: no reader has to know what else they could be.

use tiergraph_core::crc32c;

/// The salt of one file of one build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Salt(u32);

impl Salt {
    /// The salt of files of no build, and of graphs of format version 1: it changes no checksum.
    pub const NONE: Self = Self(0);

    /// The salt of `file` (its name in the manifest) of the build `build_id`: the CRC-32C of
    /// `build_id/file`.
    ///
    /// ```
    /// use tiergraph_format::salt::Salt;
    /// let of = |build, file| Salt::of(build, file);
    /// assert_eq!(of("00c0ffee", "out.rows"), of("00c0ffee", "out.rows"));
    /// assert_ne!(of("00c0ffee", "out.rows"), of("00c0ffee", "in.rows"));
    /// assert_ne!(of("00c0ffee", "out.rows"), of("00c0fff0", "out.rows"));
    /// ```
    pub fn of(build_id: &str, file: &str) -> Self {
        let crc = crc32c::crc32c(build_id.as_bytes());
        Self(crc32c::crc32c_append(crc32c::crc32c_append(crc, b"/"), file.as_bytes()))
    }

    /// The checksum that is stored for bytes whose CRC-32C is `crc`.
    pub fn on(self, crc: u32) -> u32 {
        crc ^ self.0
    }
}
