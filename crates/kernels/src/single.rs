//! A float that the compiler leaves alone.

/// A float in a register of its own. Left to itself the compiler packs sums of different lanes into
/// vectors, and then shuffles every loaded value into place.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Single(std::arch::x86_64::__m128);

#[cfg(target_arch = "x86_64")]
impl Single {
    #[inline(always)]
    pub(crate) fn new(value: f32) -> Self {
        // SAFETY: SSE is part of x86-64.
        Self(unsafe { std::arch::x86_64::_mm_set_ss(value) })
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, value: &f32) {
        use std::arch::x86_64::{_mm_add_ss, _mm_load_ss};
        // SAFETY: SSE is part of x86-64; a reference may be read.
        self.0 = unsafe { _mm_add_ss(self.0, _mm_load_ss(value)) };
    }

    #[inline(always)]
    pub(crate) fn get(self) -> f32 {
        // SAFETY: SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_cvtss_f32(self.0) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub(crate) struct Single(f32);

#[cfg(not(target_arch = "x86_64"))]
impl Single {
    #[inline(always)]
    pub(crate) fn new(value: f32) -> Self {
        Self(value)
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, value: &f32) {
        self.0 += value;
    }

    #[inline(always)]
    pub(crate) fn get(self) -> f32 {
        self.0
    }
}
