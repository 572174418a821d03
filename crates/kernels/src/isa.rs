//! The instruction sets that the inner loops are compiled for.

use std::fmt;
use std::sync::OnceLock;

/// An instruction set that the inner loops are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// Instructions that every CPU of the architecture has.
    Portable,
    /// AVX2 and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same, and gathers: for CPUs whose gathers take less time than loads one by one.
    #[cfg(target_arch = "x86_64")]
    Avx512Gather,
}

impl Isa {
    /// The instruction sets that this CPU has, the fastest last if its gathers are fast; [`Isa::Portable`] is
    /// always the first.
    pub fn available() -> Vec<Self> {
        let all = [
            Self::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gather,
        ];
        all.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The fastest instruction set that this CPU has; whether its gathers are fast is measured, once, in some
    /// microseconds. Sums are the same to the last bit.
    pub fn detect() -> Self {
        static FASTEST: OnceLock<Isa> = OnceLock::new();
        *FASTEST.get_or_init(|| {
            let is_slow = |isa: &Self| match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: what is available has them.
                Self::Avx512Gather => !unsafe { crate::gathers::are_fast() },
                _ => false,
            };
            let fast = Self::available().into_iter().rfind(|isa| !is_slow(isa));
            fast.unwrap_or(Self::Portable)
        })
    }

    /// Whether this CPU has the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx512Gather => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi2")
            }
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gather => "avx512, gathers",
        })
    }
}
