//! Reading blocks of files: one asynchronous trait, [`ReadEngine`], and everything behind it.
//!
//! A [`FileSet`] names what may be read: logical files, each on one or more stripes, opened with
//! `O_DIRECT` where the file system takes it. [`open_engine`] gives a worker its own engine over
//! the set, wrapped in [`Retry`](engine::Retry). The worker then repeats: fill the engine up to its
//! capacity, poll, process what came.
//!
//! ```
//! use std::sync::Arc;
//! use tiergraph_io::{EngineChoice, FileSet, Read, Wait, open_engine};
//! use tiergraph_mem::AlignedBuf;
//!
//! # let path = std::env::temp_dir().join(format!("tiergraph-io-doc-{}", std::process::id()));
//! # std::fs::write(&path, [7u8; 5000]).unwrap();
//! let mut files = FileSet::new();
//! let file = files.open(&path)?;
//! let (mut engine, _choice) = open_engine(EngineChoice::Auto, &Arc::new(files), 4)?;
//! let buffer = AlignedBuf::zeroed(8192)?;
//! engine.submit(Read { file, offset: 0, len: 8192, buffer, tag: 1 }).expect("it is empty");
//! let mut done = Vec::new();
//! engine.poll(&mut done, Wait::All)?;
//! let first = done.remove(0);
//! assert_eq!((first.tag, first.result?), (1, 5000));
//! assert_eq!((first.buffer[4999], first.buffer[5000]), (7, 0));
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), tiergraph_core::Error>(())
//! ```

pub mod ceiling;
pub mod choice;
pub mod engine;
pub mod file_set;
pub mod load;
pub mod read;
mod slots;
mod stripe;

pub use ceiling::{Ceiling, Pattern, Workload, measure};
pub use choice::{EngineChoice, EngineReport, open_engine};
pub use file_set::{Access, FileId, FileSet, Opening};
pub use load::load;
pub use read::{Done, Read, ReadEngine, Wait};
