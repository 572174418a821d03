//! Drives that a GPU reads by itself, and who starts the reads of feature rows from them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_nvme::PciAddress;

use super::{Common, EngineChoice, MODELLED, Modelled, NVME, made_once, software, take_drives};
use crate::{FileSet, NvmeDrives};

/// Reads by a GPU: from which drives, and who starts those of feature rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GpuReading {
    /// The drives.
    pub drives: GpuDrives,
    /// Who starts reads of feature rows.
    pub started_by: StartedBy,
}

/// Who starts the reads of feature rows from drives whose queue pairs a GPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StartedBy {
    /// The GPU: one kernel submits, another takes what has come.
    #[default]
    Gpu,
    /// Warps of the GPU that each wait for their own row: the baseline.
    WaitingWarps,
    /// Those, which look rows up before in a page cache that has the device's memory for rows.
    CachingWarps,
    /// The GPU or the host, whichever is faster in a trial.
    Faster,
}

/// The drives that a GPU reads by itself.
#[derive(Debug, Clone)]
pub struct DrivesOfGpus {
    /// The drives.
    pub drives: Arc<NvmeDrives>,
    /// Who starts reads of feature rows.
    pub started_by: StartedBy,
}

/// The words behind `gpu:` that say who starts reads.
const STARTED_BY: [(&str, StartedBy); 3] = [
    ("coupled", StartedBy::WaitingWarps),
    ("coupled-cache", StartedBy::CachingWarps),
    ("auto", StartedBy::Faster),
];

/// The drives whose queue pairs kernels use. A host's engine reads from them, too, unless they are software.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GpuDrives {
    /// A software controller over the files, which the fastest engine here reads for the host.
    Software,
    /// Drives that are imitated by software controllers over the files.
    Modelled(Modelled),
    /// The NVMe drives at these addresses, to which the files were written.
    Nvme(Vec<PciAddress>),
}

impl FromStr for GpuReading {
    type Err = Error;

    /// What is written behind `gpu:`.
    fn from_str(text: &str) -> Result<Self> {
        let (first, rest) = text.split_once(':').unwrap_or((text, ""));
        let named = STARTED_BY.iter().find(|(name, _)| *name == first);
        let (started_by, drives) = match named {
            Some((_, started_by)) => (*started_by, rest),
            None => (StartedBy::Gpu, text),
        };
        Ok(Self { drives: drives.parse()?, started_by })
    }
}

impl fmt::Display for GpuReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = STARTED_BY.iter().find(|(_, started_by)| *started_by == self.started_by);
        let drives = self.drives.to_string();
        let words = named.map(|(name, _)| *name).into_iter().chain([drives.as_str()]);
        words.filter(|word| !word.is_empty()).try_for_each(|word| write!(f, ":{word}"))
    }
}

impl FromStr for GpuDrives {
    type Err = Error;

    /// The drives as they are written behind `gpu:`; nothing for software.
    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::Software);
        }
        let Some(drives) = text.strip_prefix(MODELLED) else {
            let addresses = text.strip_prefix(NVME).unwrap_or(text).split(',');
            return addresses.map(str::parse).collect::<Result<_>>().map(Self::Nvme);
        };
        match drives.parse()? {
            Modelled { held_back: Some(_), .. } => {
                Err(Error::new(ErrorKind::Input, "read by the GPU from").object(text).expected(
                    "drives alone, such as `modelled:p5510*4`: a GPU has no other engine",
                ))
            }
            drives => Ok(Self::Modelled(drives)),
        }
    }
}

impl fmt::Display for GpuDrives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Software => Ok(()),
            Self::Modelled(drives) => write!(f, "{MODELLED}{drives}"),
            Self::Nvme(addresses) => {
                let names: Vec<String> = addresses.iter().map(PciAddress::to_string).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl GpuDrives {
    /// The engine by which the host reads.
    pub(super) fn of_host(&self) -> EngineChoice {
        match self {
            Self::Software => EngineChoice::Auto,
            Self::Modelled(drives) => EngineChoice::Modelled(drives.clone()),
            Self::Nvme(addresses) => EngineChoice::Nvme(addresses.clone()),
        }
    }

    /// The drives, which `common` keeps.
    pub(super) fn open(
        &self,
        common: &mut Common,
        files: &Arc<FileSet>,
    ) -> Result<Arc<NvmeDrives>> {
        let start = || match self {
            Self::Software => software(files),
            Self::Modelled(modelled) => modelled.start(files),
            Self::Nvme(addresses) => take_drives(addresses, files),
        };
        made_once(&mut common.drives, start).cloned()
    }
}
