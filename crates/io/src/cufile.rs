//! The files of a [`FileSet`] as cuFile reads them, into device memory.

use std::sync::{Arc, Mutex, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_gpu::{CuFile, Device, DirectFile};

use crate::{Destination, Done, FileSet, Memory, Read};

/// The files of a [`FileSet`], opened for cuFile: each is registered with it when it is first read.
#[derive(Debug)]
pub struct CuFiles {
    files: Arc<FileSet>,
    cufile: &'static CuFile,
    device: Device,
    /// One a stripe of the set.
    opened: Vec<Mutex<Option<Arc<DirectFile>>>>,
}

impl CuFiles {
    /// The files of `files`, for reads into the memory of `device`.
    ///
    /// # Errors
    /// There is no cuFile, or it does not start.
    pub fn new(files: &Arc<FileSet>, device: &Device) -> Result<Self> {
        let opened = files.stripes().iter().map(|_| Mutex::default()).collect();
        let (files, device) = (Arc::clone(files), device.clone());
        Ok(Self { files, cufile: CuFile::get(&device)?, device, opened })
    }

    /// The cuFile library, with which memory that is read into is registered.
    pub fn cufile(&self) -> &'static CuFile {
        self.cufile
    }

    /// Which way bytes go from storage to the device, in words.
    pub fn how(&self) -> String {
        let is_cached = |file: &Mutex<Option<Arc<DirectFile>>>| {
            let file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.as_ref().is_some_and(|file| !file.bypasses_cache())
        };
        let cached = self.opened.iter().any(is_cached);
        let cache = if cached { "; the file system refuses `O_DIRECT`" } else { "" };
        format!("{}{cache}", self.cufile.how())
    }

    /// Does one read, and waits.
    pub(crate) fn read_now(&self, read: Read) -> Done {
        let Read { tag, to, .. } = &read;
        let result = match to {
            Destination::Device(span) => {
                self.files.place(&read, Memory::Device).and_then(|place| {
                    let file = self.stripe(place.stripe)?;
                    file.read(span, read.at..read.at + read.len, place.offset)
                })
            }
            Destination::Host(_) => Err(Error::new(ErrorKind::Input, "read by cuFile")
                .expected("device memory to read into")
                .got("host memory")),
        };
        Done { tag: *tag, to: read.to, result }
    }

    fn stripe(&self, stripe: usize) -> Result<Arc<DirectFile>> {
        let mut opened = self.opened[stripe].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*opened {
            return Ok(Arc::clone(file));
        }
        let path = self.files.stripes()[stripe].path();
        let file = Arc::new(DirectFile::open(self.cufile, &self.device, path)?);
        Ok(Arc::clone(opened.insert(file)))
    }
}
