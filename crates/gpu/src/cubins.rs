//! A cache on disk of the machine code of kernels.
//!
//! One file a kernel, named by the SHA-256 of everything that decides its bytes: source, options,
//! architecture, compiler. Written beside its place and renamed into it, so that two processes may
//! compile at once. Deleting the folder costs a second at the next start and nothing else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use sha2::{Digest, Sha256};
use tiergraph_core::Result;

use crate::{Architecture, Compiler};

/// The folder that caches compiled kernels: `TIERGRAPH_KERNEL_CACHE`, or `tiergraph/kernels` in the
/// user's cache folder. `None` where there is no such folder: kernels are then compiled every time.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("TIERGRAPH_KERNEL_CACHE").or_else(|| {
        let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        Some(cache.join("tiergraph").join("kernels"))
    })
}

/// The machine code of `source`: read from the cache in `folder`, or else compiled and then cached.
/// `name` is what messages and the cached file are called by.
///
/// # Errors
/// No compiler, or the compiler's log. A folder that cannot be read or written costs only time.
pub fn get(
    folder: Option<&Path>,
    name: &str,
    source: &str,
    options: &[String],
    architecture: Architecture,
) -> Result<Vec<u8>> {
    let compiler = Compiler::get()?;
    let path = folder.map(|f| f.join(file_name(name, source, options, architecture, compiler)));
    if let Some(cubin) = path.as_ref().and_then(|p| fs::read(p).ok()).filter(|c| is_cubin(c)) {
        return Ok(cubin);
    }
    let cubin = compiler.compile(name, source, options, architecture)?;
    if let Some(path) = path {
        write(&path, &cubin);
    }
    Ok(cubin)
}

fn file_name(
    name: &str,
    source: &str,
    options: &[String],
    architecture: Architecture,
    compiler: &Compiler,
) -> String {
    let mut hash = Sha256::new();
    let version = format!("{:?}", compiler.version());
    let parts = [source, &architecture.to_string(), &version];
    for part in parts.into_iter().chain(options.iter().map(String::as_str)) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{architecture}-{digest}.cubin")
}

/// Machine code is an ELF file; an empty or a foreign one is compiled again.
fn is_cubin(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Caches `cubin`. A full or read-only disk must not end a run that has its code.
fn write(path: &Path, cubin: &[u8]) {
    let temporary = path.with_extension(format!("{}.tmp", process::id()));
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&temporary, cubin))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
}
