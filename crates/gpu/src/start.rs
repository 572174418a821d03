//! The driver, found and started when the first device is opened.

use std::ffi::c_int;
use std::sync::OnceLock;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::driver::Driver;
use crate::failure::check;
use crate::library::open;

pub(crate) const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
pub(crate) const USE_CPU: &str = "install NVIDIA's driver, or run with `--device cpu`";
/// The oldest version of the driver API that has what is used here: CUDA 12.0.
const OLDEST_DRIVER: c_int = 12000;

/// The driver; the same answer, or the same reason, at every call.
pub(crate) fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let loaded = DRIVER.get_or_init(|| load().map_err(|e| e.to_string()));
    loaded.as_ref().map_err(|reason| {
        let (reason, hint) = reason.split_once("\n\nhint: ").unwrap_or((reason, USE_CPU));
        Error::new(ErrorKind::Device, "use a GPU").got(reason).hint(hint)
    })
}

fn load() -> Result<Driver> {
    let library = open("CUDA's driver", &NAMES, USE_CPU)?;
    let driver = Driver::read(library).map_err(|missing| old(&format!("one without {missing}")))?;
    // The version first: an old driver may not even start beside a newer kernel module.
    let version = version(&driver)?;
    if version < OLDEST_DRIVER {
        return Err(old(&format!("one for CUDA {}", release(version))));
    }
    // SAFETY: `cuInit` takes 0.
    check(&driver, unsafe { (driver.init)(0) }, "start CUDA")?;
    Ok(driver)
}

/// The driver API's version: 1000 × major + 10 × minor.
pub(crate) fn version(driver: &Driver) -> Result<c_int> {
    let mut version = 0;
    // SAFETY: writes one integer, and may be called before `cuInit`.
    check(driver, unsafe { (driver.driver_version)(&raw mut version) }, "ask CUDA's version")?;
    Ok(version)
}

pub(crate) fn release(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn old(got: &str) -> Error {
    Error::new(ErrorKind::Device, "use CUDA's driver")
        .expected("a driver for CUDA 12.0 or newer")
        .got(got)
        .hint("update NVIDIA's driver, or run with `--device cpu`")
}
