//! A training job, as a few of its batches show it.

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};

/// Bytes that a row is read in, where no read of the job shows it: a page.
const READ_BYTES: f64 = 4096.0;

/// What a batch of a training job takes, on average.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Seconds of training, while the next batches are prepared: T_train of the paper.
    pub train_seconds: f64,
    /// Seconds of preparing a batch where nobody trains, as it was measured; plans do not use it.
    #[serde(default)]
    pub prepare_seconds: f64,
    /// Seconds of preparing a batch that neither drives nor the link set: α of the paper.
    #[serde(default)]
    pub lookup_seconds: f64,
    /// The share of a drive's reads a second that preparing reaches.
    #[serde(default = "whole")]
    pub drive_share: f64,
    /// Whether a GPU trains, to whose memory everything goes over its link.
    pub is_on_gpu: bool,
    /// Bytes of a row of features; 0 where `misses` is empty.
    #[serde(default)]
    pub row_bytes: f64,
    /// Rows that are in the GPU's memory.
    #[serde(default)]
    pub device_rows: f64,
    /// Rows that are in the host's memory.
    #[serde(default)]
    pub host_rows: f64,
    /// Numbers of rows, rising from 0 to all, and of each, how many of a batch's rows are not among so many of
    /// the hottest; empty where memory is not planned.
    #[serde(default)]
    pub misses: Vec<(f64, f64)>,
}

fn whole() -> f64 {
    1.0
}

impl Job {
    /// Refuses figures that no job has.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for one that is negative or no number, a batch of no seeds or no time, and
    /// misses that do not fall with rising numbers of rows.
    pub fn check(&self) -> Result<()> {
        let named = [
            ("drive_bytes", self.drive_bytes),
            ("drive_reads", self.drive_reads),
            ("host_bytes", self.host_bytes),
            ("train_seconds", self.train_seconds),
            ("prepare_seconds", self.prepare_seconds),
            ("lookup_seconds", self.lookup_seconds),
            ("drive_share", self.drive_share),
            ("row_bytes", self.row_bytes),
            ("device_rows", self.device_rows),
            ("host_rows", self.host_rows),
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
        if self.train_seconds == 0.0 {
            return refused("train_seconds", "the measured time of a batch", "0".into());
        }
        if (self.drive_bytes > 0.0) != (self.drive_reads > 0.0) {
            let got = format!("{} reads of {} bytes", self.drive_reads, self.drive_bytes);
            return refused("drive_reads", "reads, if there are bytes, and none else", got);
        }
        if !(self.drive_share > 0.0 && self.drive_share <= 1.0) {
            return refused("drive_share", "more than 0, at most 1", self.drive_share.to_string());
        }
        let falls = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1;
        let is_curve =
            self.misses.iter().all(|at| at.0.is_finite() && at.1.is_finite() && at.1 >= 0.0)
                && self.misses.first().is_none_or(|at| at.0 == 0.0 && self.row_bytes > 0.0)
                && self.misses.windows(2).all(falls);
        if !is_curve {
            let expected =
                "numbers of rows that rise from 0 on, misses that do not, and `row_bytes`";
            return refused("misses", expected, format!("{:?}", self.misses));
        }
        Ok(())
    }

    /// Bytes of a read from drives, on average; 0 without reads.
    pub fn read_bytes(&self) -> f64 {
        if self.drive_reads > 0.0 { self.drive_bytes / self.drive_reads } else { 0.0 }
    }

    /// Bytes of rows in the GPU's memory, and in the host's.
    pub fn caches(&self) -> (f64, f64) {
        (self.device_rows * self.row_bytes, self.host_rows * self.row_bytes)
    }

    /// Bytes of all rows; `None` where memory is not planned.
    pub fn all_bytes(&self) -> Option<f64> {
        self.misses.last().map(|all| all.0 * self.row_bytes)
    }

    /// The same job with so many bytes of rows in the GPU's memory, and in the host's, of the hottest in
    /// turn; `None` where memory is not planned. What is read beside rows of features stays as it is.
    pub fn with_caches(&self, device_bytes: f64, host_bytes: f64) -> Option<Self> {
        let all = self.misses.last()?.0;
        let device_rows = (device_bytes / self.row_bytes).min(all);
        let host_rows = (host_bytes / self.row_bytes).min(all - device_rows);
        let from_host = |device: f64, host: f64| self.missed(device) - self.missed(device + host);
        let (now, then) =
            (self.missed(self.device_rows + self.host_rows), self.missed(device_rows + host_rows));
        let of_a_row = |measured: f64, otherwise: f64| {
            if now > 0.0 { measured / now } else { otherwise }
        };
        let bytes = (self.row_bytes / READ_BYTES).ceil() * READ_BYTES;
        let moved = match self.is_on_gpu {
            true => from_host(device_rows, host_rows) - from_host(self.device_rows, self.host_rows),
            false => 0.0,
        };
        Some(Self {
            drive_reads: then * of_a_row(self.drive_reads, 1.0),
            drive_bytes: then * of_a_row(self.drive_bytes, bytes),
            host_bytes: (self.host_bytes + moved * self.row_bytes).max(0.0),
            device_rows,
            host_rows,
            ..self.clone()
        })
    }

    /// How many of a batch's rows are not among the `rows` hottest.
    fn missed(&self, rows: f64) -> f64 {
        let after = self.misses.partition_point(|at| at.0 <= rows);
        match (self.misses.get(after.wrapping_sub(1)), self.misses.get(after)) {
            (Some(&(from, high)), Some(&(to, low))) => {
                high + (low - high) * (rows - from) / (to - from)
            }
            (Some(&(_, last)), None) => last,
            _ => 0.0,
        }
    }
}
