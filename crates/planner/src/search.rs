//! The hardware that gives most for a dollar, and what it says about the rest.

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_nvme::DriveKind;

use crate::estimate::Hardware;
use crate::{Bottleneck, Estimate, Gpu, Job, Machine, Parts};

/// Memory of which a plan says what more of it brings.
const MORE_MEMORY: f64 = 10e9;
/// The sizes, each twice the one before, of memory that may be bought.
const BOUGHT: u32 = 8;
/// The smallest of those.
const LEAST_BOUGHT: f64 = (16_u64 << 30) as f64;

/// What is asked: a job, the hardware that it may have, and the money for it.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The job.
    pub job: &'a Job,
    /// The catalogue of parts.
    pub parts: &'a Parts,
    /// The machine's name in it.
    pub machine: &'a str,
    /// The GPU's name in it: that on which the job's training was timed.
    pub gpu: &'a str,
    /// The names of kinds of drives in it, or in the catalogue of drives that are imitated; none for all that
    /// have a price.
    pub drives: &'a [String],
    /// Bytes of rows in the GPU's memory; `None` for as many as the job had.
    pub device_cache: Option<f64>,
    /// Bytes of rows in the host's memory; `None` for as many as the job had, or more, where the catalogue
    /// has a price for memory.
    pub host_cache: Option<f64>,
    /// Dollars for five years, at most; `None` for any.
    pub budget: Option<f64>,
}

/// What more memory for rows brings, as a share of seeds a second: 0.1 for a tenth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MoreMemory {
    /// 10 GB more on the GPU; 0 without one.
    pub device: f64,
    /// 10 GB more of the host's.
    pub host: f64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Each number of drives that slots and budget allow, from 1 on, of the kind and with the memory of the
    /// best.
    pub estimates: Vec<Estimate>,
    /// The index among those of the one that gives most for a dollar.
    pub best: usize,
    /// The best of each kind of drive that the budget pays for, the best first.
    pub kinds: Vec<Estimate>,
    /// By how much one drive more than the best raises seeds a second: 0.1 for a tenth; `None` if there is
    /// no slot or money for it.
    pub one_more: Option<f64>,
    /// What more memory would bring; `None` where the job does not say what it does with it.
    pub more_memory: Option<MoreMemory>,
    /// What limits the best, in a sentence.
    pub limit: String,
}

impl Plan {
    /// The estimate that gives most for a dollar.
    pub fn best(&self) -> &Estimate {
        &self.estimates[self.best]
    }
}

/// Plans for a job.
///
/// # Errors
/// [`ErrorKind::Input`] for parts that no catalogue has or that have no price, a job with impossible figures, and
/// a budget that pays for no machine with one drive.
pub fn plan(question: &Question<'_>) -> Result<Plan> {
    let Question { job, parts, machine, gpu, budget, .. } = *question;
    job.check()?;
    let (machine, gpu) = (parts.machine(machine)?, parts.gpu(gpu)?);
    let kinds = kinds(question)?;
    let mut least = f64::INFINITY;
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for (drive, kind) in &kinds {
        let mut best: Option<Sweep<'_>> = None;
        for (job, more_memory) in jobs(question, machine, gpu)? {
            let hardware = Hardware { parts, machine, gpu, drive, kind, more_memory };
            least = least.min(hardware.dollars(1)?);
            let sweep = Sweep::of(hardware, job, budget)?;
            if let Some(sweep) = sweep
                && best.as_ref().is_none_or(|best| sweep.worth() > best.worth())
            {
                best = Some(sweep);
            }
        }
        sweeps.extend(best);
    }
    // Stable: of equals the first that was named.
    sweeps.sort_by(|one, other| other.worth().total_cmp(&one.worth()));
    let Some(first) = sweeps.first() else {
        return Err(Error::new(ErrorKind::Input, "plan with a budget")
            .expected(format!("${least:.0} or more: a machine with one drive, for five years"))
            .got(format!("${:.0}", budget.unwrap_or(0.0))));
    };
    let kinds = sweeps.iter().map(|sweep| sweep.best().clone()).collect();
    let (estimates, best) = (first.estimates.clone(), first.best);
    let one_more = estimates
        .get(best + 1)
        .map(|more| more.seeds_per_second / estimates[best].seeds_per_second - 1.0);
    let more_memory = first.more_memory()?;
    let limit = first.limit();
    Ok(Plan { estimates, best, kinds, one_more, more_memory, limit })
}

/// The kinds of drives that are asked for, with their names.
fn kinds(question: &Question<'_>) -> Result<Vec<(String, DriveKind)>> {
    let parts = question.parts;
    if !question.drives.is_empty() {
        let named = |key: &String| Ok((key.clone(), parts.drive(key)?));
        return question.drives.iter().map(named).collect();
    }
    let mut all = DriveKind::all()?;
    all.extend(parts.drives.clone());
    all.retain(|_, kind| kind.dollars.is_some());
    Ok(all.into_iter().collect())
}

/// The job with each size of memory that is to be looked at, and the bytes of it that are bought for that.
fn jobs(question: &Question<'_>, machine: &Machine, gpu: &Gpu) -> Result<Vec<(Job, f64)>> {
    let job = question.job;
    let (device, host) = job.caches();
    let asked = question.host_cache;
    let device = within(question.device_cache, device, gpu.memory_bytes, question.gpu)?;
    let least = within(asked, host, machine.memory_bytes, question.machine)?;
    let Some(all) = job.all_bytes() else {
        if question.device_cache.is_some() || asked.is_some() {
            return Err(Error::new(ErrorKind::Input, "plan with other memory")
                .expected("a job that says how often rows are wanted (`misses`)")
                .got("one without")
                .hint("measure the job once more"));
        }
        return Ok(vec![(job.clone(), 0.0)]);
    };
    let mut sizes = vec![0.0];
    if asked.is_none() && machine.memory_dollars_per_gib.is_some() {
        let bought = (0..BOUGHT).map(|twice| LEAST_BOUGHT * f64::from(1 << twice));
        let is_wanted = |more: &f64| device + least + more / 2.0 < all;
        sizes.extend(bought.take_while(is_wanted));
    }
    let with = |more: f64| job.with_caches(device, least + more).map(|job| (job, more));
    Ok(sizes.into_iter().filter_map(with).collect())
}

/// Bytes of rows in a memory of `has` bytes: those that are asked for, or as many as a job had, or fit.
fn within(asked: Option<f64>, of_job: f64, has: Option<f64>, part: &str) -> Result<f64> {
    let has = has.unwrap_or(f64::INFINITY);
    match asked {
        Some(bytes) if bytes > has => {
            Err(Error::new(ErrorKind::Input, "plan for rows in the memory of")
                .object(part)
                .expected(format!("{has:.0} bytes at most, all that it has"))
                .got(format!("{bytes:.0}"))
                .hint("a catalogue of your own parts may have another"))
        }
        Some(bytes) => Ok(bytes),
        None => Ok(of_job.min(has)),
    }
}

/// All numbers of drives of a kind, with the same memory.
struct Sweep<'a> {
    hardware: Hardware<'a>,
    job: Job,
    estimates: Vec<Estimate>,
    best: usize,
}

impl<'a> Sweep<'a> {
    /// Of as many drives as slots and budget allow; `None` if that is none.
    fn of(hardware: Hardware<'a>, job: Job, budget: Option<f64>) -> Result<Option<Self>> {
        let mut estimates = Vec::new();
        for drives in 1..=hardware.machine.drive_slots.max(1) {
            let estimate = hardware.estimate(&job, drives)?;
            if budget.is_some_and(|budget| estimate.dollars > budget) {
                break;
            }
            estimates.push(estimate);
        }
        let better = |best: usize, next: usize| {
            let worth = |index: usize| estimates[index].seeds_per_second_and_dollar;
            if worth(next) > worth(best) { next } else { best }
        };
        let best = (0..estimates.len()).fold(0, better);
        Ok((!estimates.is_empty()).then_some(Self { hardware, job, estimates, best }))
    }

    fn best(&self) -> &Estimate {
        &self.estimates[self.best]
    }

    fn worth(&self) -> f64 {
        self.best().seeds_per_second_and_dollar
    }

    /// What 10 GB more memory would bring to the best estimate.
    fn more_memory(&self) -> Result<Option<MoreMemory>> {
        let (device, host) = self.job.caches();
        let gain = |job: Job| {
            let more = self.hardware.estimate(&job, self.best().drives)?;
            Ok::<_, Error>(more.seeds_per_second / self.best().seeds_per_second - 1.0)
        };
        let on_device = if self.job.is_on_gpu { device + MORE_MEMORY } else { device };
        let more_device = self.job.with_caches(on_device, host);
        let more_host = self.job.with_caches(device, host + MORE_MEMORY);
        match (more_device, more_host) {
            (Some(more_device), Some(more_host)) => {
                Ok(Some(MoreMemory { device: gain(more_device)?, host: gain(more_host)? }))
            }
            _ => Ok(None),
        }
    }

    /// What limits the best, in a sentence.
    fn limit(&self) -> String {
        let best = self.best();
        let is_last = self.best + 1 == self.estimates.len();
        let said = match best.bottleneck {
            Bottleneck::Drives if self.job.lookup_seconds > best.drive_seconds / 2.0 => {
                "Preparing batches limits it (sampling, and looking up what memory has): more threads, or \
                 a GPU that samples; more drives bring little."
            }
            _ if self.job.drive_reads == 0.0 => {
                "Nothing is read from drives: memory holds all that the job wants, and more drives bring \
                 nothing."
            }
            Bottleneck::Drives if is_last && best.drives == self.hardware.machine.drive_slots => {
                "The drives limit it, and every slot has one: more memory for what is hot, or faster drives."
            }
            Bottleneck::Drives if is_last => {
                "The drives limit it, and the budget pays for no more of them."
            }
            Bottleneck::Drives => "The drives limit it, but another one brings less than it costs.",
            Bottleneck::Link => {
                "The link to the GPU limits it: more memory on the GPU for what is hot, or a faster link; \
                 more drives bring nothing."
            }
            Bottleneck::Training | Bottleneck::Compute => {
                "Training limits it: a faster GPU; more drives or memory bring nothing."
            }
        };
        said.into()
    }
}
