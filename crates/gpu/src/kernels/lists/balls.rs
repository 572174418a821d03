//! Launches of `balls.cu`.

use tiergraph_core::Result;

use super::{DeviceLists, LANES, Source, THREADS, resident_grid, source_of, warp_blocks};
use crate::shared::shared;
use crate::{Device, DeviceBuf, DevicePtr, Kernel, Stream};

shared! {
    struct BallsArguments as "Balls" {
        now: DevicePtr<u32>,
        next: DevicePtr<u32>,
        changed: DevicePtr<u32>,
        fresh: DevicePtr<u32>,
        sizes: DevicePtr<f64>,
        sums: DevicePtr<f64>,
        count: DevicePtr<u32>,
        powers: DevicePtr<f64>,
        alpha: f64,
        registers: u32,
        round: u32,
    }
}

/// The compiled kernels that unite counters, and what they work on.
#[derive(Debug)]
pub struct BallKernels {
    short: Kernel,
    long: Kernel,
    sum: Kernel,
    now: DeviceBuf<u32>,
    next: DeviceBuf<u32>,
    changed: DeviceBuf<u32>,
    fresh: DeviceBuf<u32>,
    sizes: DeviceBuf<f64>,
    sums: DeviceBuf<f64>,
    count: DeviceBuf<u32>,
    powers: DeviceBuf<f64>,
    alpha: f64,
    registers: u32,
}

/// The state of a run that unites counters: for each vertex a counter, whether it rose in the last round (a bit), the
/// size of its ball, and the sum so far.
#[derive(Debug, Clone, Copy)]
pub struct BallState<'a> {
    /// A byte a register, four in a word.
    pub counters: &'a [u32],
    /// A bit for each vertex.
    pub changed: &'a [u32],
    /// A size for each vertex.
    pub sizes: &'a [f64],
    /// A sum for each vertex.
    pub sums: &'a [f64],
}

pub(super) fn source() -> Source {
    source_of("balls", include_str!("balls.cu")).sharing::<BallsArguments>()
}

impl BallKernels {
    /// Vertices with more neighbours than this are [`round`](Self::round)'s `many`.
    pub const SHORT: u32 = 512;

    /// Compiles the kernels, and has `state` on the device. A counter has so many registers; estimates are made
    /// of the `powers` of one half and `alpha`.
    ///
    /// # Errors
    /// No compiler, the compiler's log, any error of the driver.
    ///
    /// # Panics
    /// If the parts of the state are not of as many vertices.
    pub fn new(
        device: &Device,
        stream: &Stream,
        state: BallState<'_>,
        registers: usize,
        powers: &[f64; 65],
        alpha: f64,
    ) -> Result<Self> {
        let n = state.sizes.len();
        assert_eq!(state.counters.len(), n * (registers / 4), "a counter a vertex");
        assert!(state.sums.len() == n && state.changed.len() >= n.div_ceil(32), "as many vertices");
        let module = source().compile(device)?;
        Ok(Self {
            short: module.kernel("unite_short")?,
            long: module.kernel("unite_long")?,
            sum: module.kernel("sum_sizes")?,
            now: stream.uploaded(state.counters)?,
            next: DeviceBuf::new(device, state.counters.len())?,
            changed: stream.uploaded(state.changed)?,
            fresh: DeviceBuf::new(device, state.changed.len())?,
            sizes: stream.uploaded(state.sizes)?,
            sums: stream.uploaded(state.sums)?,
            count: DeviceBuf::new(device, 1)?,
            powers: stream.uploaded(powers)?,
            alpha,
            registers: registers as u32,
        })
    }

    /// Unites each counter with its neighbours' of the round before, and notes what is new as `round` hops away; returns how
    /// many counters rose. `many` are all vertices of more than [`SHORT`](Self::SHORT) neighbours.
    ///
    /// # Errors
    /// Any error of the driver.
    ///
    /// # Panics
    /// If there are more or fewer counters than lists.
    pub fn round(
        &mut self,
        stream: &Stream,
        lists: &DeviceLists,
        many: &DeviceBuf<u32>,
        round: u32,
    ) -> Result<u32> {
        assert_eq!(self.sizes.len(), lists.vertices(), "a counter a list");
        stream.fill_bytes(&mut self.fresh, 0)?;
        stream.fill_bytes(&mut self.count, 0)?;
        let balls = self.arguments(round);
        let (lists, count) = (lists.arguments(), many.len() as u32);
        let warps = warp_blocks(lists.vertices);
        // SAFETY: `Lists` and `Balls` of the source; `many` are vertices, and neighbours are.
        unsafe {
            if count > 0 {
                let grid = resident_grid(&self.long, count)?;
                self.long.launch(stream, grid, &[&lists, &balls, &many.ptr(), &count])?;
            }
            self.short.launch(stream, resident_grid(&self.short, warps)?, &[&lists, &balls])?;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        std::mem::swap(&mut self.changed, &mut self.fresh);
        Ok(stream.download(&self.count, 1)?[0])
    }

    /// The sum of the sizes of all balls.
    ///
    /// # Errors
    /// No memory, any error of the driver.
    pub fn pairs(&self, stream: &Stream) -> Result<f64> {
        let n = self.sizes.len() as u32;
        let grid = resident_grid(&self.sum, n.div_ceil(THREADS))?;
        let warps = grid.blocks * (THREADS / LANES as u32);
        let parts = DeviceBuf::<f64>::new(stream.device(), warps as usize)?;
        // SAFETY: as above, and a part a warp.
        unsafe { self.sum.launch(stream, grid, &[&self.sizes.ptr(), &n, &parts.ptr()])? };
        Ok(stream.download(&parts, warps as usize)?.iter().sum())
    }

    /// The sizes of balls.
    pub fn sizes(&self) -> &DeviceBuf<f64> {
        &self.sizes
    }

    /// The sums.
    pub fn sums(&self) -> &DeviceBuf<f64> {
        &self.sums
    }

    /// The counters.
    pub fn counters(&self) -> &DeviceBuf<u32> {
        &self.now
    }

    /// The bits of those that rose in the last round.
    pub fn changed(&self) -> &DeviceBuf<u32> {
        &self.changed
    }

    fn arguments(&self, round: u32) -> BallsArguments {
        BallsArguments {
            now: self.now.ptr(),
            next: self.next.ptr(),
            changed: self.changed.ptr(),
            fresh: self.fresh.ptr(),
            sizes: self.sizes.ptr(),
            sums: self.sums.ptr(),
            count: self.count.ptr(),
            powers: self.powers.ptr(),
            alpha: self.alpha,
            registers: self.registers,
            round,
        }
    }
}
