//! A stream of bits, most significant first, and the instantaneous codes that BVGraph uses.
//!
//! Codes as in P. Boldi and S. Vigna, "The WebGraph framework II: codes for the world-wide web"
//! (2004): unary, Elias' γ and δ, and ζ with shrinking parameter k.

use std::path::Path;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::source::chunks::{ChunkSpec, Chunks};

/// An instantaneous code of natural numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Unary,
    Gamma,
    Delta,
    Zeta(u32),
}

/// A reader of codes from a file, chunk by chunk.
pub(super) struct BitReader {
    spec: ChunkSpec,
    chunks: Chunks,
    chunk: Vec<u8>,
    at: usize,
    /// The next bits, from the most significant one; zeros after them.
    window: u64,
    /// The number of bits of `window` that are from the file.
    valid: u32,
    /// Bytes taken into `window` so far.
    bytes: u64,
    ended: bool,
}

impl BitReader {
    /// Opens a file, at its first bit.
    pub fn open(path: &Path) -> Result<Self> {
        let spec = ChunkSpec::records(path, 1, 0, u64::MAX);
        let chunks = spec.start()?;
        let chunk = Vec::new();
        Ok(Self { spec, chunks, chunk, at: 0, window: 0, valid: 0, bytes: 0, ended: false })
    }

    /// Reads the next number in `code`.
    #[inline]
    pub fn read(&mut self, code: Code) -> Result<u64> {
        match code {
            Code::Unary => self.unary(),
            Code::Gamma => self.gamma(),
            Code::Delta => {
                let bits = self.gamma()?;
                self.binary_with_leading_one(bits)
            }
            Code::Zeta(k) => self.zeta(k),
        }
    }

    fn gamma(&mut self) -> Result<u64> {
        let bits = self.unary()?;
        self.binary_with_leading_one(bits)
    }

    fn binary_with_leading_one(&mut self, bits: u64) -> Result<u64> {
        if bits > 63 {
            return Err(self.fault("codes of at most 64 bits", format!("{bits} bits")));
        }
        Ok(((1 << bits) | self.bits(bits as u32)?) - 1)
    }

    fn zeta(&mut self, k: u32) -> Result<u64> {
        let h = self.unary()? * u64::from(k);
        if h + u64::from(k) > 63 {
            return Err(self.fault("codes of at most 64 bits", format!("{h} bits")));
        }
        let left = 1 << h;
        let m = self.bits(h as u32 + k - 1)?;
        if m < left {
            return Ok(m + left - 1);
        }
        Ok((m << 1) + self.bits(1)? - 1)
    }

    /// Reads zeros up to the next one; returns their number.
    fn unary(&mut self) -> Result<u64> {
        let mut zeros = 0;
        loop {
            self.refill()?;
            let found = self.window.leading_zeros().min(self.valid);
            zeros += u64::from(found);
            if found < self.valid {
                self.skip(found + 1);
                return Ok(zeros);
            }
            self.skip(found);
            if self.ended {
                return Err(self.fault("more bits", "the end of the file".into()));
            }
        }
    }

    /// Reads the next `count` ≤ 63 bits as a number.
    fn bits(&mut self, count: u32) -> Result<u64> {
        // A refilled window holds 57 bits at least.
        if count > 56 {
            let high = self.bits(count - 32)?;
            return Ok(high << 32 | self.bits(32)?);
        }
        self.refill()?;
        if count > self.valid {
            return Err(self.fault("more bits", "the end of the file".into()));
        }
        let value = self.window.checked_shr(64 - count).unwrap_or(0);
        self.skip(count);
        Ok(value)
    }

    fn skip(&mut self, count: u32) {
        self.window = self.window.checked_shl(count).unwrap_or(0);
        self.valid -= count;
    }

    #[inline]
    fn refill(&mut self) -> Result<()> {
        if self.valid > 56 {
            return Ok(());
        }
        if let Some(bytes) = self.chunk.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let take = (64 - self.valid) / 8;
            let word = u64::from_be_bytes(*bytes) >> (64 - 8 * take) << (64 - 8 * take);
            self.window |= word >> self.valid;
            self.valid += 8 * take;
            self.at += take as usize;
            self.bytes += u64::from(take);
            return Ok(());
        }
        self.refill_at_the_end_of_a_chunk()
    }

    #[cold]
    fn refill_at_the_end_of_a_chunk(&mut self) -> Result<()> {
        while self.valid <= 56 && !self.ended {
            match self.chunk.get(self.at) {
                Some(&byte) => {
                    self.window |= u64::from(byte) << (56 - self.valid);
                    self.valid += 8;
                    self.at += 1;
                    self.bytes += 1;
                }
                None => {
                    self.ended = !self.chunks.next(&mut self.chunk)?;
                    self.at = 0;
                }
            }
        }
        Ok(())
    }

    /// The error of something unexpected at the current place in the file.
    pub fn fault(&self, expected: &str, got: String) -> Error {
        let bit = self.bytes * 8 - u64::from(self.valid);
        Error::new(ErrorKind::Input, format!("decode bit {bit} of"))
            .object(self.spec.path().display())
            .expected(expected)
            .got(got)
    }
}
