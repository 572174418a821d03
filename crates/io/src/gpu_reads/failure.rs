//! Errors of reads that a GPU started.

use std::time::Duration;

use tiergraph_core::{Error, ErrorKind};
use tiergraph_gpu::kernels::{FailureKind, ReadFailure};
use tiergraph_nvme::Status;

/// The error that a failure is; `pairs_per_drive` says which drive a queue pair is of.
pub(super) fn error(failure: ReadFailure, pairs_per_drive: usize, most: Duration) -> Error {
    let ReadFailure { kind, pair, cid, status, row } = failure;
    let queue =
        format!("queue pair {} of drive {}", pair % pairs_per_drive, pair / pairs_per_drive);
    match kind {
        FailureKind::Refused => Error::new(ErrorKind::Io, "read by a GPU")
            .object(format!("row {row}"))
            .expected(format!("drive {} to give it", pair / pairs_per_drive))
            .got(Status(status).to_string()),
        FailureKind::Late => Error::new(ErrorKind::Io, "read rows by a GPU from")
            .object(queue)
            .expected(format!("a completion within `{} ms`", most.as_millis()))
            .got("none"),
        FailureKind::Impossible => Error::new(ErrorKind::Io, "take a completion by a GPU of")
            .object(queue)
            .expected("a command in flight")
            .got(format!("command {cid}")),
        FailureKind::Stopped => {
            Error::new(ErrorKind::Interrupted, "read rows by a GPU").got("interrupted")
        }
    }
}
