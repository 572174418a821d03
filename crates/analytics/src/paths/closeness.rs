//! Harmonic closeness and the effective diameter, estimated by HyperBall.
//!
//! Each vertex has a HyperLogLog counter (Flajolet et al., AOFA 2007) of the vertices that reach it in so many
//! hops; a round makes the union of its in-neighbours' counters and its own (Boldi and Vigna, ICDM workshops
//! 2013). What is new in round r is at distance r, so that sums of 1/r are harmonic closeness, and the sizes of all balls
//! say within how many hops 90 % of the pairs that are connected lie. One pass a round, until no counter
//! changes; 2 × `registers` bytes a vertex and 17 more. A counter is off by 1.04/√`registers` (standard error).

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::json;
use tiergraph_core::{Error, ErrorKind, Progress, Result, mix};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, prefetch, vec_from_fn};

use crate::bits::Bits;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};

/// Registers of a counter that are loaded at once.
const WORD: usize = size_of::<u64>();

/// Estimates of how far the vertices of a graph are from each other.
#[derive(Debug)]
pub struct Closeness {
    /// For each vertex, in the user's order, the sum of 1/d over all others that reach it in d hops.
    pub harmonic: Vec<f64>,
    /// The hops within which 90 % of the connected pairs lie, interpolated.
    pub effective_diameter: f64,
    /// The mean hops between vertices that are connected.
    pub mean_distance: f64,
}

/// Estimates harmonic closeness by counters of so many `registers`, a power of two from 16 to 4,096.
///
/// # Errors
/// Another number of registers, state that does not fit the memory, any error of a pass.
pub fn harmonic(
    graph: &Graph,
    registers: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<(Closeness, RunReport)> {
    check_registers(registers)?;
    let n = graph.vertices();
    let plan = RowMap::memory(graph, Side::In)?
        .and("the counters", n as u64 * (2 * registers as u64))
        .and("the sums", n as u64 * 17);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, Side::In)?;
    let words = registers / WORD;
    let mut now = first_counters(graph, registers, seed)?;
    let mut next = Array::<AtomicU64>::zeroed(n * words)?;
    // As bits of floats: the sizes of balls, and the sums.
    let mut sizes = Array::from_fn(graph.thread_pool(), n, |_| AtomicU64::new(1f64.to_bits()))?;
    let mut sums = Array::<AtomicU64>::zeroed(n)?;
    let mut changed = Bits::all(n);
    let mut rows = RowMap::new(graph, &degrees)?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "harmonic", 0, progress).with_passes_of(rows.round_bytes());
    let estimate = Estimate::new(registers);
    let mut pairs = vec![n as f64];
    run.resume(&options(registers, seed), |from| {
        let mut rounds = [0u64];
        from.array(&mut rounds)?;
        pairs = from.list(rounds[0] as usize)?;
        from.array(&mut now)?;
        from.array(&mut sizes)?;
        from.array(&mut sums)?;
        from.array(changed.words_mut())
    })?;
    for round in pairs.len() as u32.. {
        let fresh = Bits::none(n);
        let count = AtomicU64::new(0);
        rows.for_each(
            |_| (vec![0u8; registers], vec![0u8; registers]),
            |(own, other), v, neighbors| {
                load(&now, v, words, own);
                let before = own.iter().map(|&r| u64::from(r)).sum::<u64>();
                for (i, &u) in neighbors.iter().enumerate() {
                    if let Some(&later) = neighbors.get(i + 4) {
                        prefetch(&now, later as usize * words);
                    }
                    if changed.has(u) {
                        load(&now, u, words, other);
                        own.iter_mut()
                            .zip(&*other)
                            .for_each(|(own, &other)| *own = (*own).max(other));
                    }
                }
                store(&next, v, words, own);
                if own.iter().map(|&r| u64::from(r)).sum::<u64>() == before {
                    return;
                }
                fresh.put(v);
                count.fetch_add(1, Ordering::Relaxed);
                let before = f64::from_bits(sizes[v as usize].load(Ordering::Relaxed));
                let size = estimate.of(own).max(before);
                sizes[v as usize].store(size.to_bits(), Ordering::Relaxed);
                let sum = f64::from_bits(sums[v as usize].load(Ordering::Relaxed));
                let sum = sum + (size - before) / f64::from(round);
                sums[v as usize].store(sum.to_bits(), Ordering::Relaxed);
            },
        )?;
        std::mem::swap(&mut now, &mut next);
        changed = fresh;
        let count = count.into_inner();
        run.iteration("pass", count as f64);
        if count == 0 {
            break;
        }
        pairs.push(sizes.iter().map(|size| f64::from_bits(size.load(Ordering::Relaxed))).sum());
        run.keep(|to| {
            to.array(&[pairs.len() as u64]);
            to.array(&pairs);
            to.array(&now);
            to.array(&sizes);
            to.array(&sums);
            to.array(changed.words());
            Ok(())
        })?;
    }
    let report = run.finish(true)?;
    drop((rows, now, next));
    let harmonic =
        vec_from_fn(graph.thread_pool(), n, |v| f64::from_bits(sums[v].load(Ordering::Relaxed)))?;
    let harmonic = graph.order().to_user(harmonic, 1)?;
    Ok((Closeness::new(harmonic, &pairs), report))
}

impl Closeness {
    /// Of the sums, and of the pairs within 0 hops, 1, and so on.
    pub(crate) fn new(harmonic: Vec<f64>, pairs: &[f64]) -> Self {
        let (effective_diameter, mean_distance) = distances(pairs);
        Self { harmonic, effective_diameter, mean_distance }
    }
}

/// What tells a run's checkpoints from others'.
pub(crate) fn options(registers: usize, seed: u64) -> impl Serialize {
    json!({ "registers": registers, "seed": seed })
}

/// Refuses a number of registers that no counter has.
pub(crate) fn check_registers(registers: usize) -> Result<()> {
    if registers.is_power_of_two() && (16..=4096).contains(&registers) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Input, "estimate closeness")
        .expected("a number of registers that is a power of two from 16 to 4096")
        .got(registers))
}

/// The counters of balls of one vertex each, a byte a register.
///
/// # Errors
/// An order that cannot be read, no memory.
pub(crate) fn first_counters(
    graph: &Graph,
    registers: usize,
    seed: u64,
) -> Result<Array<AtomicU64>> {
    let (n, words) = (graph.vertices(), registers / WORD);
    let counters = Array::<AtomicU64>::zeroed(n * words)?;
    graph.order().for_each_position(n, |v, position| {
        let random = mix(mix(seed) ^ mix(position as u64 + 1));
        let (register, rest) = (random as usize % registers, random >> registers.ilog2());
        let rank = (rest.trailing_zeros().min(63 - registers.ilog2()) + 1) as u64;
        if let Some(word) = counters.get(v * words + register / WORD) {
            word.store(rank << (register % WORD * 8), Ordering::Relaxed);
        }
    })?;
    Ok(counters)
}

/// The hops within which 90 % of pairs lie, and the mean of all, from the pairs within 0 hops, 1, and so on.
fn distances(pairs: &[f64]) -> (f64, f64) {
    let (alone, all) = (pairs[0], pairs[pairs.len() - 1]);
    let wanted = 0.9 * all;
    let after = pairs.partition_point(|&within| within < wanted);
    let effective = match after.checked_sub(1) {
        None => 0.0,
        Some(before) => {
            let more = pairs[after.min(pairs.len() - 1)] - pairs[before];
            before as f64 + (wanted - pairs[before]) / more.max(f64::MIN_POSITIVE)
        }
    };
    let hops = |(i, two): (usize, &[f64])| (i + 1) as f64 * (two[1] - two[0]);
    let sum: f64 = pairs.windows(2).enumerate().map(hops).sum();
    (effective, if all > alone { sum / (all - alone) } else { 0.0 })
}

fn load(counters: &[AtomicU64], v: u32, words: usize, to: &mut [u8]) {
    let own = &counters[v as usize * words..][..words];
    for (to, word) in to.as_chunks_mut::<WORD>().0.iter_mut().zip(own) {
        *to = word.load(Ordering::Relaxed).to_le_bytes();
    }
}

fn store(counters: &[AtomicU64], v: u32, words: usize, from: &[u8]) {
    let own = &counters[v as usize * words..][..words];
    for (from, word) in from.as_chunks::<WORD>().0.iter().zip(own) {
        word.store(u64::from_le_bytes(*from), Ordering::Relaxed);
    }
}

/// HyperLogLog's estimate of a counter.
pub(crate) struct Estimate {
    registers: f64,
    pub(crate) alpha: f64,
    /// 2 to the power of minus each rank.
    pub(crate) powers: [f64; 65],
}

impl Estimate {
    pub(crate) fn new(registers: usize) -> Self {
        let m = registers as f64;
        let alpha = match registers {
            16 => 0.673,
            32 => 0.697,
            64 => 0.709,
            _ => 0.7213 / (1.0 + 1.079 / m),
        };
        let mut powers = [1.0; 65];
        (1..powers.len()).for_each(|i| powers[i] = powers[i - 1] / 2.0);
        Self { registers: m, alpha, powers }
    }

    fn of(&self, counter: &[u8]) -> f64 {
        let sum: f64 = counter.iter().map(|&rank| self.powers[usize::from(rank).min(64)]).sum();
        let raw = self.alpha * self.registers * self.registers / sum;
        let zeros = counter.iter().filter(|&&rank| rank == 0).count();
        if raw <= 2.5 * self.registers && zeros > 0 {
            return self.registers * (self.registers / zeros as f64).ln();
        }
        raw
    }
}
