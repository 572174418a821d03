//! A GPU that is not there: kernels run on the CPU (`python/tests/emulated_cuda`), one at a time, while
//! other threads of the process go on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tempfile::TempDir;
use tiergraph_gpu::{Device, search_libraries_in};

/// The emulated GPU; whoever has it is alone with it. `None`, with the reason printed, without a C++
/// compiler.
pub fn emulated_gpu() -> Option<(MutexGuard<'static, ()>, Device)> {
    static BUILT: OnceLock<Option<TempDir>> = OnceLock::new();
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if BUILT.get_or_init(build).is_none() {
        println!("skipped: no C++ compiler here (`c++`) to build the emulated CUDA with");
        return None;
    }
    Some((guard, Device::open(0).unwrap()))
}

fn build() -> Option<TempDir> {
    Command::new("c++").arg("--version").output().ok()?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/emulated_cuda");
    let sources = sources.canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (library, source) in [("libcuda.so.1", "driver.cpp"), ("libnvrtc.so.13", "nvrtc.cpp")] {
        let place = format!("-DEMULATED_CUDA_FOLDER=\"{}\"", sources.display());
        let built = Command::new("c++")
            .args(["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-fPIC", "-shared", &place, "-o"])
            .args([folder.path().join(library), sources.join(source)])
            .status();
        assert!(built.unwrap().success(), "{source} compiles");
    }
    keep_kernels_in(folder.path().join("kernels"));
    search_libraries_in([folder.path().to_owned()]);
    Some(folder)
}

/// Keeps what is compiled for the emulated GPU apart from what is for real ones.
#[allow(unsafe_code)]
fn keep_kernels_in(folder: PathBuf) {
    // SAFETY: the emulated driver, which alone reads the environment behind Rust's back, is not loaded yet.
    unsafe { std::env::set_var("TIERGRAPH_KERNEL_CACHE", folder) };
}
