//! 32 lanes of `u32`: two AVX-512 registers, four of AVX2, or an array.
//!
//! Every method runs inside a function that enables the features of its type; see `walk`.

use tiergraph_format::tiles::LANES;

/// The operations that decoding needs.
///
/// # Safety
/// The CPU must have the features of the implementing type. `unpack` reads up to
/// [`tiergraph_format::tiles::SLACK`] bytes from `at`, which must be inside `bytes`, and `width` is
/// at most 16.
pub(crate) trait Lanes: Copy {
    unsafe fn splat(value: u32) -> Self;
    /// Fields of `width` bits, lane by lane, starting on byte `at`.
    unsafe fn unpack(bytes: &[u8], at: usize, width: usize) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// Lane i becomes the sum of lanes 0 to i.
    unsafe fn prefix_sum(self) -> Self;
    unsafe fn store(self, to: &mut [u32; LANES]);
}

/// Lanes by which values can be gathered, and a float of each lane.
///
/// # Safety
/// The CPU must have the features of the implementing type.
pub(crate) trait Gather: Lanes {
    /// A float of each lane.
    type Floats: Copy;

    unsafe fn load(lanes: &[u32; LANES]) -> Self;
    unsafe fn zeros() -> Self::Floats;
    /// Adds `x[self[i]]` to the float of each lane i below `active`. Those lanes' numbers are below `x.len()`.
    unsafe fn gather_add(self, x: &[f32], active: usize, to: &mut Self::Floats);
    unsafe fn floats(of: Self::Floats) -> [f32; LANES];
}

/// Portable lanes.
#[derive(Clone, Copy)]
pub(crate) struct Portable([u32; LANES]);

impl Lanes for Portable {
    #[inline]
    unsafe fn splat(value: u32) -> Self {
        Self([value; LANES])
    }

    #[inline]
    unsafe fn unpack(bytes: &[u8], at: usize, width: usize) -> Self {
        let mask = (1u64 << width) - 1;
        let mut out = [0; LANES];
        // Four lanes are at most 64 bits and start on a half byte.
        for (four, lanes) in out.chunks_exact_mut(4).enumerate() {
            let bit = four * 4 * width;
            let start = at + bit / 8;
            let window: &[u8; 9] = bytes[start..].first_chunk().unwrap_or(&[0; 9]);
            let low = u64::from_le_bytes(*window.first_chunk().unwrap_or(&[0; 8]));
            let word = u128::from(low) | u128::from(window[8]) << 64;
            let mut word = word >> (bit % 8);
            for lane in lanes {
                *lane = (word as u64 & mask) as u32;
                word >>= width;
            }
        }
        Self(out)
    }

    #[inline]
    unsafe fn add(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a = a.wrapping_add(b));
        self
    }

    #[inline]
    unsafe fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= b);
        self
    }

    #[inline]
    unsafe fn prefix_sum(mut self) -> Self {
        for i in 1..LANES {
            self.0[i] = self.0[i].wrapping_add(self.0[i - 1]);
        }
        self
    }

    #[inline]
    unsafe fn store(self, to: &mut [u32; LANES]) {
        *to = self.0;
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Gather, LANES, Lanes};

    /// Where 16 fields of a width are: the two 16-bit words that hold each, and the bit in them.
    struct Wide {
        words: [[u16; 32]; 17],
        shifts: [[u32; 16]; 17],
    }

    static WIDE: Wide = {
        let mut t = Wide { words: [[0; 32]; 17], shifts: [[0; 16]; 17] };
        let mut width = 0;
        while width <= 16 {
            let mut lane = 0;
            while lane < 16 {
                let bit = lane * width;
                t.words[width][2 * lane] = (bit / 16) as u16;
                t.words[width][2 * lane + 1] = (bit / 16 + 1) as u16;
                t.shifts[width][lane] = (bit % 16) as u32;
                lane += 1;
            }
            width += 1;
        }
        t
    };

    /// Two registers of 16 lanes (AVX-512 F and BW).
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512([__m512i; 2]);

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    unsafe fn unpack16(bytes: &[u8], at: usize, width: usize) -> __m512i {
        debug_assert!(at + 64 <= bytes.len() && width <= 16);
        // SAFETY: the caller has 64 bytes from `at`; the tables have 17 rows of 64 bytes.
        unsafe {
            let raw = _mm512_loadu_si512(bytes.as_ptr().add(at).cast());
            let words = _mm512_loadu_si512(WIDE.words.get_unchecked(width).as_ptr().cast());
            let shifts = _mm512_loadu_si512(WIDE.shifts.get_unchecked(width).as_ptr().cast());
            let fields = _mm512_srlv_epi32(_mm512_permutexvar_epi16(words, raw), shifts);
            _mm512_and_si512(fields, _mm512_set1_epi32(((1u32 << width) - 1) as i32))
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn prefix_sum16(v: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        let v = _mm512_add_epi32(v, _mm512_alignr_epi32::<15>(v, zero));
        let v = _mm512_add_epi32(v, _mm512_alignr_epi32::<14>(v, zero));
        let v = _mm512_add_epi32(v, _mm512_alignr_epi32::<12>(v, zero));
        _mm512_add_epi32(v, _mm512_alignr_epi32::<8>(v, zero))
    }

    // Lanes are spelled out: `array::map` is compiled without the features, and calls its closure.
    impl Lanes for Avx512 {
        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn splat(value: u32) -> Self {
            Self([_mm512_set1_epi32(value as i32); 2])
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn unpack(bytes: &[u8], at: usize, width: usize) -> Self {
            // SAFETY: the upper 16 lanes begin `2 * width`, at most 32, bytes later.
            unsafe { Self([unpack16(bytes, at, width), unpack16(bytes, at + 2 * width, width)]) }
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn add(self, other: Self) -> Self {
            let ([a, b], [c, d]) = (self.0, other.0);
            Self([_mm512_add_epi32(a, c), _mm512_add_epi32(b, d)])
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn and(self, other: Self) -> Self {
            let ([a, b], [c, d]) = (self.0, other.0);
            Self([_mm512_and_si512(a, c), _mm512_and_si512(b, d)])
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn prefix_sum(self) -> Self {
            let [low, high] = [prefix_sum16(self.0[0]), prefix_sum16(self.0[1])];
            let last = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), low);
            Self([low, _mm512_add_epi32(high, last)])
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn store(self, to: &mut [u32; LANES]) {
            // SAFETY: two times 16 words into 32.
            unsafe {
                _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0[0]);
                _mm512_storeu_si512(to.as_mut_ptr().add(16).cast(), self.0[1]);
            }
        }
    }

    impl Gather for Avx512 {
        type Floats = [__m512; 2];

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn load(lanes: &[u32; LANES]) -> Self {
            let at = lanes.as_ptr();
            // SAFETY: 32 words are two times 16.
            unsafe { Self([_mm512_loadu_si512(at.cast()), _mm512_loadu_si512(at.add(16).cast())]) }
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn zeros() -> Self::Floats {
            [_mm512_setzero_ps(); 2]
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn gather_add(self, x: &[f32], active: usize, to: &mut Self::Floats) {
            let (at, [low, high], zeros) = (x.as_ptr(), self.0, _mm512_setzero_ps());
            // SAFETY: the caller's promise; only active lanes are read.
            unsafe {
                if active == LANES {
                    to[0] = _mm512_add_ps(to[0], _mm512_i32gather_ps::<4>(low, at));
                    to[1] = _mm512_add_ps(to[1], _mm512_i32gather_ps::<4>(high, at));
                    return;
                }
                let lanes = (1u32 << active) - 1;
                let some = _mm512_mask_i32gather_ps::<4>(zeros, lanes as u16, low, at);
                to[0] = _mm512_add_ps(to[0], some);
                if active > LANES / 2 {
                    let some = _mm512_mask_i32gather_ps::<4>(zeros, (lanes >> 16) as u16, high, at);
                    to[1] = _mm512_add_ps(to[1], some);
                }
            }
        }

        #[target_feature(enable = "avx512f,avx512bw")]
        #[inline]
        unsafe fn floats(of: Self::Floats) -> [f32; LANES] {
            let mut floats = [0.0; LANES];
            // SAFETY: two times 16 floats into 32.
            unsafe {
                _mm512_storeu_ps(floats.as_mut_ptr(), of[0]);
                _mm512_storeu_ps(floats.as_mut_ptr().add(16), of[1]);
            }
            floats
        }
    }

    /// Where 8 fields of a width are: the bytes that hold each and the bit in them, the upper four
    /// counted from their own first byte.
    struct Narrow {
        bytes: [[u8; 32]; 17],
        shifts: [[u32; 8]; 17],
    }

    static NARROW: Narrow = {
        let mut t = Narrow { bytes: [[0; 32]; 17], shifts: [[0; 8]; 17] };
        let mut width = 0;
        while width <= 16 {
            let mut lane = 0;
            while lane < 8 {
                // Lane 4 starts 4 × width bits in, perhaps in the middle of a byte.
                let bit = if lane < 4 { lane * width } else { lane * width - (4 * width / 8) * 8 };
                let mut byte = 0;
                while byte < 4 {
                    t.bytes[width][4 * lane + byte] = (bit / 8 + byte) as u8;
                    byte += 1;
                }
                t.shifts[width][lane] = (bit % 8) as u32;
                lane += 1;
            }
            width += 1;
        }
        t
    };

    /// Four registers of 8 lanes (AVX2).
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2([__m256i; 4]);

    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn unpack8(bytes: &[u8], at: usize, width: usize) -> __m256i {
        debug_assert!(at + 24 <= bytes.len() && width <= 16);
        // SAFETY: the caller has 24 bytes from `at`; the tables have 17 rows of 32 bytes.
        unsafe {
            let low = _mm_loadu_si128(bytes.as_ptr().add(at).cast());
            let high = _mm_loadu_si128(bytes.as_ptr().add(at + width / 2).cast());
            let raw = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
            let order = _mm256_loadu_si256(NARROW.bytes.get_unchecked(width).as_ptr().cast());
            let shifts = _mm256_loadu_si256(NARROW.shifts.get_unchecked(width).as_ptr().cast());
            let fields = _mm256_srlv_epi32(_mm256_shuffle_epi8(raw, order), shifts);
            _mm256_and_si256(fields, _mm256_set1_epi32(((1u32 << width) - 1) as i32))
        }
    }

    /// Prefix sums that go on from the last lane of `before`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn prefix_sum8(v: __m256i, before: __m256i) -> __m256i {
        let v = _mm256_add_epi32(v, _mm256_slli_si256::<4>(v));
        let v = _mm256_add_epi32(v, _mm256_slli_si256::<8>(v));
        let low = _mm256_permute2x128_si256::<0x08>(v, v);
        let v = _mm256_add_epi32(v, _mm256_shuffle_epi32::<0xFF>(low));
        _mm256_add_epi32(v, _mm256_permutevar8x32_epi32(before, _mm256_set1_epi32(7)))
    }

    impl Lanes for Avx2 {
        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn splat(value: u32) -> Self {
            Self([_mm256_set1_epi32(value as i32); 4])
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn unpack(bytes: &[u8], at: usize, width: usize) -> Self {
            // SAFETY: eight lanes begin `width`, at most 16, bytes after the eight before them.
            unsafe {
                Self([
                    unpack8(bytes, at, width),
                    unpack8(bytes, at + width, width),
                    unpack8(bytes, at + 2 * width, width),
                    unpack8(bytes, at + 3 * width, width),
                ])
            }
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn add(self, other: Self) -> Self {
            let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
            Self([
                _mm256_add_epi32(a, e),
                _mm256_add_epi32(b, f),
                _mm256_add_epi32(c, g),
                _mm256_add_epi32(d, h),
            ])
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn and(self, other: Self) -> Self {
            let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
            Self([
                _mm256_and_si256(a, e),
                _mm256_and_si256(b, f),
                _mm256_and_si256(c, g),
                _mm256_and_si256(d, h),
            ])
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn prefix_sum(self) -> Self {
            let [a, b, c, d] = self.0;
            let a = prefix_sum8(a, _mm256_setzero_si256());
            let b = prefix_sum8(b, a);
            let c = prefix_sum8(c, b);
            Self([a, b, c, prefix_sum8(d, c)])
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        unsafe fn store(self, to: &mut [u32; LANES]) {
            for (lanes, v) in to.chunks_exact_mut(8).zip(self.0) {
                // SAFETY: 8 words into 8.
                unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), v) }
            }
        }
    }
}
