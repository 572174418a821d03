//! What the driver's codes mean to a user: the error, and what to do now.

use std::ffi::{CStr, c_char};
use std::ptr;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::driver::{Code, Driver};

/// The names of `CUresult`'s values that are told apart.
pub(crate) const OUT_OF_MEMORY: Code = 2;
const NO_DEVICE: Code = 100;
const DEVICE_UNAVAILABLE: Code = 46;
/// Machine code that this driver does not take: damaged, of another architecture, too new.
const IMAGES: [Code; 4] = [200, 209, 218, 222];
/// The driver's library is not that of the kernel's module.
const MISMATCHES: [Code; 2] = [803, 804];

/// Whether the context does nothing more after `code`: uncorrectable errors of memory (214) and
/// links (220), kernels that read or ran what they must not, devices that are gone.
fn loses_context(code: Code) -> bool {
    matches!(code, 4 | 201 | 214 | 220 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 999)
}

/// An error unless `code` is success.
pub(crate) fn check(driver: &Driver, code: Code, op: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let name = text(driver.error_name, code).unwrap_or_else(|| format!("error {code}"));
    let meaning = text(driver.error_string, code).unwrap_or_default();
    let error = Error::new(ErrorKind::Device, op).got(format!("{meaning} ({name})"));
    Err(error.hint(hint(code)))
}

fn hint(code: Code) -> &'static str {
    match code {
        OUT_OF_MEMORY => "run with a smaller `--device-memory`, or `--device cpu`",
        NO_DEVICE => {
            "`nvidia-smi` lists the GPUs that the driver knows, and `CUDA_VISIBLE_DEVICES` may hide \
             some; or run with `--device cpu`"
        }
        DEVICE_UNAVAILABLE => {
            "another process may hold the GPU for itself (`nvidia-smi` shows which): end it, or run \
             with `--device cpu`, which works in this process"
        }
        _ if IMAGES.contains(&code) => {
            "the kernels' compiler is newer than the driver: update NVIDIA's driver, or install the \
             compiler of the driver's version (`pip install nvidia-cuda-nvrtc-cu12` for CUDA 12); or \
             run with `--device cpu`"
        }
        _ if MISMATCHES.contains(&code) => {
            "the driver was updated since the machine started: restart it, or run with \
             `--device cpu`"
        }
        _ if loses_context(code) => {
            "this process has lost its context on the GPU, and the graph's files are untouched: \
             `--device cpu` works on in this process, the GPU again from a new one"
        }
        _ => "run with `--device cpu`, which works in this process",
    }
}

fn text(of: unsafe extern "C" fn(Code, *mut *const c_char) -> Code, code: Code) -> Option<String> {
    let mut text = ptr::null();
    // SAFETY: writes a pointer to a static string, or leaves null.
    unsafe { of(code, &raw mut text) };
    // SAFETY: not null, so that string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
