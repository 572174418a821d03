//! Whether this CPU's gathers are fast: on some, microcode guards them against Gather Data Sampling, and others
//! load lane by lane.

use std::array::from_fn;
use std::hint::black_box;
use std::time::Instant;

use tiergraph_format::tiles::LANES;

use crate::lanes::{Avx512, Gather};
use crate::single::Single;

/// Values that are gathered from: as many as fit the first cache.
const VALUES: usize = 1 << 12;
/// Steps of 32 lanes that are timed together: some microseconds.
const STEPS: usize = 256;
/// Timings of either way, the least of which counts.
const TIMINGS: usize = 5;

/// Whether sums by gathers take less time than by loads one by one.
///
/// # Safety
/// The CPU must have AVX-512 F, BW and VL.
pub(crate) unsafe fn are_fast() -> bool {
    let x: Vec<f32> = (0..VALUES).map(|i| i as f32).collect();
    let column = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) >> 20;
    let steps: Vec<[u32; LANES]> =
        (0..STEPS).map(|k| from_fn(|lane| column(k * LANES + lane))).collect();
    let time = |sum: &dyn Fn() -> f32| {
        let begin = Instant::now();
        black_box(sum());
        begin.elapsed()
    };
    let least = |sum: &dyn Fn() -> f32| (0..TIMINGS).map(|_| time(sum)).min();
    // SAFETY: the caller's promise; columns are 12 bits wide.
    least(&|| unsafe { gathered(&x, &steps) }) < least(&|| loaded(&x, &steps))
}

/// # Safety
/// As [`are_fast`]; columns are below `x.len()`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn gathered(x: &[f32], steps: &[[u32; LANES]]) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = Avx512::zeros();
        for step in steps {
            Avx512::load(step).gather_add(x, LANES, &mut sums);
        }
        Avx512::floats(sums).iter().sum()
    }
}

/// The same by a load of each column and of its value, for eight lanes at a time.
fn loaded(x: &[f32], steps: &[[u32; LANES]]) -> f32 {
    let mut all = 0.0;
    for lane in (0..LANES).step_by(8) {
        let mut sums = [Single::new(0.0); 8];
        for step in steps {
            for (sum, &column) in sums.iter_mut().zip(&step[lane..lane + 8]) {
                sum.add(&x[column as usize % VALUES]);
            }
        }
        all += sums.map(Single::get).iter().sum::<f32>();
    }
    all
}
