//! Reading blocks of files: one asynchronous trait, [`ReadEngine`], everything behind it, and the one
//! [`pipeline`] that reads by it.
//!
//! A [`FileSet`] names what may be read: logical files, each on one or more stripes, opened with
//! `O_DIRECT` where the file system takes it. [`open_engine`] gives a worker its own engine over
//! the set, wrapped in [`Retry`](engine::Retry).
//!
//! ```
//! use std::collections::VecDeque;
//! use std::sync::Arc;
//! use tiergraph_io::{EngineChoice, FileSet, Read, Wait, open_engine};
//! use tiergraph_mem::AlignedBuf;
//!
//! # let path = std::env::temp_dir().join(format!("tiergraph-io-doc-{}", std::process::id()));
//! # std::fs::write(&path, [7u8; 5000]).unwrap();
//! let mut files = FileSet::new();
//! let file = files.open(&path)?;
//! let (mut engine, _choice) = open_engine(EngineChoice::Auto, &Arc::new(files), 4)?;
//! let to = AlignedBuf::zeroed(8192)?.into();
//! engine.submit(&mut VecDeque::from([Read { file, offset: 0, len: 8192, to, at: 0, tag: 1 }]));
//! let mut done = Vec::new();
//! engine.poll(&mut done, Wait::All)?;
//! let first = done.remove(0);
//! assert_eq!((first.tag, first.result?), (1, 5000));
//! assert_eq!((first.to.bytes()[4999], first.to.bytes()[5000]), (7, 0));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), tiergraph_core::Error>(())
//! ```

pub mod ceiling;
pub mod choice;
mod cufile;
mod drives;
pub mod engine;
pub mod file_set;
pub mod gpu_reads;
pub mod pipeline;
pub mod pool;
pub mod read;
mod slots;
mod stripe;
pub mod temporary;

pub use ceiling::{Ceiling, Pattern, Workload, measure};
pub use choice::{
    DrivesOfGpus, EngineChoice, EngineReport, GpuDrives, GpuReading, Modelled, StartedBy,
    open_engine,
};
pub use cufile::CuFiles;
pub use drives::{NvmeDrives, RawDrive, RawDrives, write_drives};
pub use file_set::{Access, Extent, FileId, FileSet, Opening, StripeSource};
pub use pool::{EngineFactory, EnginePool, EngineSource, Lease};
pub use read::{Destination, Done, Memory, Read, ReadEngine, Wait};
