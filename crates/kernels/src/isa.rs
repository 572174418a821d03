//! The instruction sets that the inner loops are compiled for.

use std::fmt;

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
}

impl Isa {
    /// The instruction sets that this CPU has, the fastest last; [`Isa::Portable`] is always the first.
    pub fn available() -> Vec<Self> {
        let all = [
            Self::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512,
        ];
        all.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The fastest instruction set that this CPU has.
    pub fn detect() -> Self {
        Self::available().last().copied().unwrap_or(Self::Portable)
    }

    /// Whether this CPU has the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
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
        })
    }
}
