//! Loops of any kind, compiled for the widest instructions that the CPU has.
//!
//! What is inlined is compiled once for each instruction set: shifts by a variable count take one instruction
//! with BMI2 and three without, and loops over arrays use wider vectors. The result is the same.

use crate::Isa;

/// A loop that [`widest`] runs: a closure if it is small, or a type whose `run` is `#[inline(always)]`, as is
/// what it calls. A large closure that is called for each instruction set is inlined in none, and then compiled
/// once, without any.
pub trait Work {
    /// The type of the result.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

impl<R, F: FnOnce() -> R> Work for F {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        self()
    }
}

/// Runs `work`, compiled with all that it inlines for the instruction set that [`Isa::detect`] finds.
///
/// ```
/// let shifted = || (0..100u64).map(|i| i << (i % 5)).sum::<u64>();
/// assert_eq!(tiergraph_kernels::widest(shifted), shifted());
/// ```
#[inline]
pub fn widest<W: Work>(work: W) -> W::Output {
    match Isa::detect() {
        Isa::Portable => work.run(),
        // SAFETY: `detect` found the features on this CPU.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Gather => unsafe { avx512(work) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi2")]
fn avx512<W: Work>(work: W) -> W::Output {
    work.run()
}
