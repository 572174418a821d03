//! Harmonic closeness on a GPU, by HyperBall over lists of in-neighbours.
//!
//! Counters are those of [`crate::harmonic`], byte by byte; estimates agree up to the last bits of a logarithm.
//! Device memory: two counters a vertex and 17 bytes, and the lists.

use std::sync::atomic::Ordering;

use bytemuck::cast_slice;
use tiergraph_core::{Progress, Result};
use tiergraph_gpu::kernels::{BallKernels, BallState};
use tiergraph_graph::Graph;

use super::Gpu;
use super::device_lists::{Loaded, Needs, OnGpu, load};
use crate::paths::{Closeness, Estimate, check_registers, first_counters, options};
use crate::report::RunReport;
use crate::row_map::Side;

/// Harmonic closeness, as [`crate::harmonic`].
///
/// # Errors
/// Another number of registers, state that does not fit the memory, any error of a pass or of the driver.
pub fn harmonic(
    graph: &Graph,
    gpu: &Gpu,
    registers: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<OnGpu<(Closeness, RunReport)>> {
    check_registers(registers)?;
    let n = graph.vertices();
    let bytes = n as u64 * (2 * registers as u64 + 25);
    let _state = graph.memory().reserve(bytes, "the counters and the sums")?;
    let (state, few) = (2 * registers as u64 + 17, Some(BallKernels::SHORT));
    let needs = Needs { side: Side::In, state, few, ..Needs::EVERY_ARC };
    let loaded = load(graph, gpu, needs, "harmonic", progress)?;
    let Loaded { mut run, stream, lists, many, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let mut counters: Vec<u64> = first_counters(graph, registers, seed)?
        .iter()
        .map(|word| word.load(Ordering::Relaxed))
        .collect();
    let (mut sizes, mut sums) = (vec![1f64; n], vec![0f64; n]);
    let mut changed = vec![u64::MAX; n.div_ceil(64)];
    let mut pairs = vec![n as f64];
    run.resume(&options(registers, seed), |from| {
        let mut rounds = [0u64];
        from.array(&mut rounds)?;
        pairs = from.list(rounds[0] as usize)?;
        from.array(&mut counters)?;
        from.array(&mut sizes)?;
        from.array(&mut sums)?;
        from.array(&mut changed)
    })?;
    let estimate = Estimate::new(registers);
    let state = BallState {
        counters: cast_slice(&counters),
        changed: cast_slice(&changed),
        sizes: &sizes,
        sums: &sums,
    };
    let (powers, alpha) = (&estimate.powers, estimate.alpha);
    let mut balls = BallKernels::new(&gpu.device, &stream, state, registers, powers, alpha)?;
    drop((counters, changed, sums));
    for round in pairs.len() as u32.. {
        graph.cancel().check("estimate closeness")?;
        let count = balls.round(&stream, &lists, &many, round)?;
        run.iteration("lists", f64::from(count));
        if count == 0 {
            break;
        }
        pairs.push(balls.pairs(&stream)?);
        run.keep(|to| {
            to.array(&[pairs.len() as u64]);
            to.array(&pairs);
            to.array(&stream.download(balls.counters(), balls.counters().len())?);
            to.array(&stream.download(balls.sizes(), n)?);
            to.array(&stream.download(balls.sums(), n)?);
            to.array(&stream.download(balls.changed(), balls.changed().len())?);
            Ok(())
        })?;
    }
    let harmonic = stream.download(balls.sums(), n)?;
    let report = run.finish(true)?;
    let harmonic = graph.order().to_user(harmonic, 1)?;
    Ok(Ok((Closeness::new(harmonic, &pairs), report)))
}
