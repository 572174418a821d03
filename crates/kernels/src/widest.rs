//! Loops of any kind, compiled for the widest instructions that the CPU has.
//!
//! What `body` inlines is compiled once for each instruction set: shifts by a variable count take
//! one instruction with BMI2 and three without, and loops over arrays use wider vectors. The result
//! is the same.

use crate::Isa;

/// Runs `body`, compiled with all that it inlines for the instruction set that [`Isa::detect`] finds.
///
/// ```
/// let shifted = || (0..100u64).map(|i| i << (i % 5)).sum::<u64>();
/// assert_eq!(tiergraph_kernels::widest(shifted), shifted());
/// ```
#[inline]
pub fn widest<R>(body: impl FnOnce() -> R) -> R {
    match Isa::detect() {
        Isa::Portable => body(),
        // SAFETY: `detect` found the features on this CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(body) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Gather => unsafe { avx512(body) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
fn avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}
