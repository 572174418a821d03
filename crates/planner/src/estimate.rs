//! The predicted time of a batch on some hardware, and its cost.

use serde::Serialize;
use tiergraph_core::Result;
use tiergraph_nvme::DriveKind;

use crate::parts::price;
use crate::{Gpu, Job, Machine, Parts};

const GIB: f64 = (1_u64 << 30) as f64;

/// What a batch waits for longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The drives.
    Drives,
    /// The link to the GPU (PCIe).
    Link,
    /// The GPU, or the CPU that trains.
    Training,
    /// The processors that go over a graph.
    Compute,
}

/// A number of drives in a machine, and what comes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The drives' name in the catalogue.
    pub drive: String,
    /// The number of drives.
    pub drives: u32,
    /// Bytes of rows in the GPU's memory.
    pub device_cache_bytes: f64,
    /// Bytes of rows in the host's memory.
    pub host_cache_bytes: f64,
    /// Seconds that drives take for a batch: T_ssd.
    pub drive_seconds: f64,
    /// Seconds that the link takes: T_pcie; 0 where the CPU trains.
    pub link_seconds: f64,
    /// Seconds that training takes: T_train.
    pub train_seconds: f64,
    /// Seconds of a batch: the largest of the three (equation 4).
    pub batch_seconds: f64,
    /// The largest of the three.
    pub bottleneck: Bottleneck,
    /// Seeds a second.
    pub seeds_per_second: f64,
    /// Dollars for five years, with electricity (equation 5).
    pub dollars: f64,
    /// Seeds a second for each dollar (equation 3).
    pub seeds_per_second_and_dollar: f64,
}

/// Hardware without its number of drives.
#[derive(Debug, Clone)]
pub(crate) struct Hardware<'a> {
    pub parts: &'a Parts,
    pub machine: &'a Machine,
    pub gpu: &'a Gpu,
    /// The drives' name in the catalogue.
    pub drive: &'a str,
    pub kind: &'a DriveKind,
    /// Bytes of memory that are bought beside what the machine's price has.
    pub more_memory: f64,
}

impl Hardware<'_> {
    /// Dollars for five years with so many drives.
    pub fn dollars(&self, drives: u32) -> Result<f64> {
        let machine = price(&self.machine.name, self.machine.dollars)?;
        let gpu = price(&self.gpu.name, self.gpu.dollars)?;
        let drive = price(&self.kind.name, self.kind.dollars)?;
        let memory = match self.more_memory > 0.0 {
            true => price("memory", self.machine.memory_dollars_per_gib)? * self.more_memory / GIB,
            false => 0.0,
        };
        let parts = machine + gpu + memory + drive * f64::from(drives);
        Ok(parts + self.parts.electricity(self.machine))
    }

    /// What comes of so many drives, one at least.
    pub fn estimate(&self, job: &Job, drives: u32) -> Result<Estimate> {
        let one = self.kind.seconds(job.drive_reads, job.read_bytes())? / job.drive_share;
        let drive_seconds = match job.drive_reads > 0.0 {
            true => one / f64::from(drives.max(1)) + job.lookup_seconds,
            false => job.lookup_seconds,
        };
        let link_seconds = match job.is_on_gpu {
            true => (job.drive_bytes + job.host_bytes) / self.machine.link_bytes_per_second,
            false => 0.0,
        };
        let train_seconds = job.train_seconds;
        let (bottleneck, batch_seconds) =
            [(Bottleneck::Link, link_seconds), (Bottleneck::Drives, drive_seconds)]
                .into_iter()
                .fold((Bottleneck::Training, train_seconds), |longest, next| {
                    if next.1 > longest.1 { next } else { longest }
                });
        let dollars = self.dollars(drives)?;
        let seeds_per_second = job.batch_size as f64 / batch_seconds;
        let (device_cache_bytes, host_cache_bytes) = job.caches();
        Ok(Estimate {
            drive: self.drive.into(),
            drives,
            device_cache_bytes,
            host_cache_bytes,
            drive_seconds,
            link_seconds,
            train_seconds,
            batch_seconds,
            bottleneck,
            seeds_per_second,
            dollars,
            seeds_per_second_and_dollar: seeds_per_second / dollars,
        })
    }
}
