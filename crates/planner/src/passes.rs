//! Passes over a graph with other drives and other memory, as one run shows them.

use serde::{Deserialize, Serialize};
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_nvme::DriveKind;

use crate::{Bottleneck, Parts};

/// Bytes of a read of a pass.
const BLOCK_BYTES: f64 = (1_u64 << 20) as f64;

/// What a run of an algorithm said, all of whose iterations go over the whole graph.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Iterations.
    pub iterations: f64,
    /// Seconds of all of them.
    pub seconds: f64,
    /// Seconds in which each of the workers computed, of all together.
    pub compute_seconds: f64,
    /// Seconds of these in which they compared checksums of blocks that had been read.
    #[serde(default)]
    pub check_seconds: f64,
    /// Bytes that were read in all iterations.
    #[serde(default)]
    pub bytes_read: f64,
    /// Seconds in which each of them waited for reads, of all together.
    pub wait_seconds: f64,
    /// How many workers there were.
    pub threads: f64,
    /// Bytes that a pass goes over.
    pub pass_bytes: f64,
    /// Bytes a second that bare reads reached; `None` where that was not measured.
    pub read_ceiling: Option<f64>,
}

/// An iteration with some drives and some memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PassEstimate {
    /// The number of drives.
    pub drives: u32,
    /// Bytes of the graph that stay in memory.
    pub resident_bytes: f64,
    /// Seconds of reading the others.
    pub drive_seconds: f64,
    /// Seconds of computing, by all workers at once.
    pub compute_seconds: f64,
    /// Seconds of an iteration: the larger of the two, and what goes on at the same time as neither.
    pub seconds: f64,
    /// The larger of the two.
    pub bottleneck: Bottleneck,
}

impl Run {
    fn check(&self) -> Result<()> {
        let named = [
            ("iterations", self.iterations),
            ("seconds", self.seconds),
            ("threads", self.threads),
            ("pass_bytes", self.pass_bytes),
        ];
        for (name, value) in named {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::new(ErrorKind::Input, format!("plan for a run's `{name}`"))
                    .expected("a number above 0")
                    .got(value));
            }
        }
        Ok(())
    }

    /// Bytes a second of one drive: of a kind, or of those that the run read from.
    fn drive_rate(&self, drive: Option<&str>, parts: &Parts) -> Result<f64> {
        let Some(drive) = drive else {
            return self.read_ceiling.filter(|rate| *rate > 0.0).ok_or_else(|| {
                Error::new(ErrorKind::Input, "plan with the drives that the run read from")
                    .expected("what bare reads reach there")
                    .got("a run that did not measure it")
                    .hint("measure the ceiling with the run, or name a `--drive`")
            });
        };
        let kind: DriveKind = parts.drive(drive)?;
        Ok(BLOCK_BYTES / kind.seconds(1.0, BLOCK_BYTES)?)
    }

    /// Iterations with each of `drives` of a kind, and each share of the graph in memory; `drive` is `None`
    /// for the drives that the run read from.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a run with impossible figures, a drive that no catalogue has, and a run that
    /// did not measure its own drives where those are asked for.
    pub fn estimates(
        &self,
        drive: Option<&str>,
        parts: &Parts,
        drives: &[u32],
        shares: &[f64],
    ) -> Result<Vec<PassEstimate>> {
        self.check()?;
        let rate = self.drive_rate(drive, parts)?;
        let of_worker = |all: f64| all / self.threads / self.iterations;
        let without_checks = of_worker((self.compute_seconds - self.check_seconds).max(0.0));
        // Of a byte that is read, by all workers at once; nothing where no block was compared.
        let check = match self.bytes_read > 0.0 {
            true => self.check_seconds / self.bytes_read / self.threads,
            false => 0.0,
        };
        let beside =
            self.seconds / self.iterations - of_worker(self.compute_seconds + self.wait_seconds);
        let beside = beside.max(0.0);
        let mut found = Vec::new();
        for &count in drives {
            for &share in shares {
                let resident_bytes = self.pass_bytes * share;
                let read = self.pass_bytes - resident_bytes;
                let drive_seconds = read / (rate * f64::from(count.max(1)));
                let compute_seconds = without_checks + check * read;
                let is_drives = drive_seconds > compute_seconds;
                found.push(PassEstimate {
                    drives: count,
                    resident_bytes,
                    drive_seconds,
                    compute_seconds,
                    seconds: drive_seconds.max(compute_seconds) + beside,
                    bottleneck: if is_drives { Bottleneck::Drives } else { Bottleneck::Compute },
                });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run {
            iterations: 10.0,
            seconds: 5.0,
            compute_seconds: 6.0,
            check_seconds: 0.0,
            bytes_read: 0.0,
            wait_seconds: 2.0,
            threads: 2.0,
            pass_bytes: 1.3e9,
            read_ceiling: Some(1e9),
        }
    }

    #[test]
    fn an_iteration_is_the_larger_of_reading_and_computing_and_what_is_beside() {
        let parts = Parts::built_in().unwrap();
        let found = run().estimates(None, &parts, &[1, 2], &[0.0, 0.5, 1.0]).unwrap();
        let seconds: Vec<f64> = found.iter().map(|e| e.seconds).collect();
        // 0.3 s of computing, 1.3 s of reading all of it, 0.1 s beside.
        let expected = [1.4, 0.75, 0.4, 0.75, 0.425, 0.4];
        for (found, expected) in seconds.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{seconds:?}");
        }
        assert_eq!(found[0].bottleneck, Bottleneck::Drives);
        assert_eq!(found[2].bottleneck, Bottleneck::Compute);
        // A P5510 gives 6.5 GB/s.
        let p5510 = run().estimates(Some("p5510"), &parts, &[1], &[0.0]).unwrap();
        assert!((p5510[0].drive_seconds - 0.2).abs() < 1e-9, "{p5510:?}");
    }

    #[test]
    fn what_is_read_is_compared_with_its_checksums() {
        let parts = Parts::built_in().unwrap();
        // The blocks were read once, and compared in 0.4 s of all workers.
        let once = Run { check_seconds: 0.4, bytes_read: 1.3e9, ..run() };
        let found = once.estimates(Some("p5510"), &parts, &[1], &[0.0, 0.5, 1.0]).unwrap();
        for (found, read) in found.iter().zip([1.0, 0.5, 0.0]) {
            let expected = (6.0 - 0.4) / 2.0 / 10.0 + read * 0.4 / 2.0;
            assert!((found.compute_seconds - expected).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let parts = Parts::built_in().unwrap();
        let refused = |run: Run, drive: Option<&str>| {
            run.estimates(drive, &parts, &[1], &[0.0]).unwrap_err().to_string()
        };
        let unmeasured = Run { read_ceiling: None, ..run() };
        assert!(refused(unmeasured, None).contains("measure the ceiling"));
        assert!(refused(run(), Some("floppy")).contains("floppy"));
        assert!(refused(Run { threads: 0.0, ..run() }, None).contains("`threads`"));
    }
}
