//! A training job, as a few of its batches show it.

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

/// What a batch of a training job takes, on average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Seeds of a batch.
    pub batch_size: u64,
    /// Bytes that drives are asked for: N_ssd of the paper, in bytes.
    pub drive_bytes: f64,
    /// Reads by which they are.
    pub drive_reads: f64,
    /// Bytes of lists and rows in the host's memory that a GPU reads: N_mem of the paper, in bytes; 0 where the
    /// CPU trains.
    pub host_bytes: f64,
    /// Seconds of training, where the batch is there already.
    pub train_seconds: f64,
    /// Seconds of looking up what caches have, which drives wait for: α of the paper.
    #[serde(default)]
    pub lookup_seconds: f64,
    /// Whether a GPU trains, to whose memory everything goes over its link.
    pub is_on_gpu: bool,
}

impl Job {
    /// Refuses figures that no job has.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for one that is negative or no number, and a batch of no seeds or no time.
    pub fn check(&self) -> Result<()> {
        let Self { drive_bytes, drive_reads, host_bytes, train_seconds, lookup_seconds, .. } =
            *self;
        let named = [
            ("drive_bytes", drive_bytes),
            ("drive_reads", drive_reads),
            ("host_bytes", host_bytes),
            ("train_seconds", train_seconds),
            ("lookup_seconds", lookup_seconds),
        ];
        let refused = |name: &str, expected: &str, got: String| {
            Err(Error::new(ErrorKind::Input, format!("plan for a job's `{name}`"))
                .expected(expected)
                .got(got))
        };
        for (name, value) in named {
            if !(value.is_finite() && value >= 0.0) {
                return refused(name, "a number, 0 or more", value.to_string());
            }
        }
        if self.batch_size == 0 {
            return refused("batch_size", "at least one seed", "0".into());
        }
        if train_seconds == 0.0 {
            return refused("train_seconds", "the measured time of a batch", "0".into());
        }
        if (drive_bytes > 0.0) != (drive_reads > 0.0) {
            let got = format!("{drive_reads} reads of {drive_bytes} bytes");
            return refused("drive_reads", "reads, if there are bytes, and none else", got);
        }
        Ok(())
    }

    /// Bytes of a read from drives, on average; 0 without reads.
    pub fn read_bytes(&self) -> f64 {
        if self.drive_reads > 0.0 { self.drive_bytes / self.drive_reads } else { 0.0 }
    }
}
