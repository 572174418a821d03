//! What was measured of a job on some machine, and what it says of the job on any other.

use serde::Deserialize;
use tiergraph_core::Result;
use tiergraph_nvme::DriveKind;

use crate::Job;

/// The share of their rate that drives are taken to reach where nothing shows another: between the whole that
/// modelled ones gave (`gpu_hyperion_planner-first.jsonl` of `bench/runs`) and the nine tenths that a real
/// one did (`gpu_real_drive-19.jsonl`).
const USUAL_SHARE: f64 = 0.95;
/// Drives set the pace of preparing where they are busy for this share of it.
const SETS_THE_PACE: f64 = 0.75;
/// Bytes a second of the slowest link that a GPU has (PCIe 3.0): what takes longer was not the link.
const SLOWEST_LINK: f64 = 10e9;

/// Batches of a training job as they were measured: what each took, on average.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Seeds of a batch.
    pub batch_size: u64,
    /// Bytes that drives were asked for.
    pub drive_bytes: f64,
    /// Reads by which they were.
    pub drive_reads: f64,
    /// Bytes of the host's memory that a GPU read.
    pub host_bytes: f64,
    /// Seconds of preparing a batch where nobody trains.
    pub prepare_seconds: f64,
    /// Seconds of training while the next batches are prepared.
    pub train_seconds: f64,
    /// Whether a GPU trains the job.
    pub is_on_gpu: bool,
    /// Bytes of a row of features, 0 without misses: [`Job::row_bytes`].
    pub row_bytes: f64,
    /// Rows that were in the GPU's memory: [`Job::device_rows`].
    pub device_rows: f64,
    /// Rows that were in the host's memory: [`Job::host_rows`].
    pub host_rows: f64,
    /// Rows of a batch that so many of the hottest do not have: [`Job::misses`].
    pub misses: Vec<(f64, f64)>,
    /// The kind of drives that were read from, and how many; `None` if it is not known.
    pub drives: Option<(String, u32)>,
}

impl Measured {
    /// The job that this was.
    ///
    /// Where drives set the pace, it shows what share of their rate they reach; where they did not, it shows what
    /// else preparing takes: all that the drives, and on a GPU a slow link, do not explain.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](tiergraph_core::ErrorKind) for drives that no catalogue has.
    pub fn job(self) -> Result<Job> {
        let Self { drive_reads, drive_bytes, host_bytes, prepare_seconds, .. } = self;
        let busy = match &self.drives {
            Some((kind, count)) if drive_reads > 0.0 => {
                let one =
                    DriveKind::named(kind)?.seconds(drive_reads, drive_bytes / drive_reads)?;
                Some(one / f64::from((*count).max(1)))
            }
            _ => None,
        };
        let (drive_share, lookup_seconds) = match busy {
            Some(busy) if busy >= SETS_THE_PACE * prepare_seconds => {
                ((busy / prepare_seconds).min(1.0), 0.0)
            }
            // Nothing tells waiting for drives that are not known from other work.
            None if drive_reads > 0.0 => (USUAL_SHARE, 0.0),
            _ => {
                let link =
                    if self.is_on_gpu { (drive_bytes + host_bytes) / SLOWEST_LINK } else { 0.0 };
                let explained = busy.unwrap_or(0.0) / USUAL_SHARE + link;
                (USUAL_SHARE, (prepare_seconds - explained).max(0.0))
            }
        };
        Ok(Job {
            batch_size: self.batch_size,
            drive_bytes,
            drive_reads,
            host_bytes,
            train_seconds: self.train_seconds,
            prepare_seconds,
            lookup_seconds,
            drive_share,
            is_on_gpu: self.is_on_gpu,
            row_bytes: self.row_bytes,
            device_rows: self.device_rows,
            host_rows: self.host_rows,
            misses: self.misses,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// 7,500 reads take one P5510 10 ms.
    fn measured(prepare_seconds: f64, drives: Option<(String, u32)>) -> Job {
        Measured {
            batch_size: 1,
            drive_bytes: 7500.0 * 4096.0,
            drive_reads: 7500.0,
            host_bytes: 1e7,
            prepare_seconds,
            train_seconds: 0.001,
            is_on_gpu: false,
            row_bytes: 0.0,
            device_rows: 0.0,
            host_rows: 0.0,
            misses: Vec::new(),
            drives,
        }
        .job()
        .unwrap()
    }

    #[test]
    fn preparing_shows_the_drives_share_or_what_else_it_takes() {
        let p5510 = |count| Some(("p5510".to_string(), count));
        let job = measured(0.0125, p5510(1));
        assert!((job.drive_share - 0.8).abs() < 1e-12 && job.lookup_seconds == 0.0, "{job:?}");
        assert_eq!(measured(0.009, p5510(1)).drive_share, 1.0);
        let job = measured(0.05, p5510(2));
        assert_eq!(job.drive_share, USUAL_SHARE);
        assert!((job.lookup_seconds - 0.05 + 0.005 / USUAL_SHARE).abs() < 1e-12, "{job:?}");
        let job = measured(0.05, None);
        assert_eq!((job.drive_share, job.lookup_seconds), (USUAL_SHARE, 0.0));
    }

    #[test]
    fn what_a_slow_link_explains_is_no_other_work() {
        let rows = Measured {
            batch_size: 1,
            drive_bytes: 0.0,
            drive_reads: 0.0,
            host_bytes: 1e8,
            prepare_seconds: 0.004,
            train_seconds: 0.001,
            is_on_gpu: true,
            row_bytes: 0.0,
            device_rows: 0.0,
            host_rows: 0.0,
            misses: Vec::new(),
            drives: None,
        };
        assert_eq!(rows.clone().job().unwrap().lookup_seconds, 0.0);
        let slow = Measured { prepare_seconds: 0.014, ..rows.clone() };
        assert!((slow.job().unwrap().lookup_seconds - 0.004).abs() < 1e-12);
        let drives = Some(("floppy".into(), 1));
        let wrong = Measured { drive_reads: 1.0, drive_bytes: 512.0, drives, ..rows };
        assert!(wrong.job().unwrap_err().to_string().contains("floppy"));
    }
}
