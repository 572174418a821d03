//! Compiles every kernel with NVRTC, which needs no GPU: `compile_kernels [FOLDER OF NVRTC]…`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tiergraph_gpu::{Architecture, Compiler, kernels, search_libraries_in};

fn main() -> ExitCode {
    search_libraries_in(env::args_os().skip(1).map(PathBuf::from));
    for (major, minor) in [(8, 0), (9, 0)] {
        let architecture = Architecture { major, minor };
        match kernels::compile_all(architecture) {
            Ok(count) => println!("{architecture}: {count} kernels compiled"),
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if let Ok(compiler) = Compiler::get() {
        let (major, minor) = compiler.version();
        println!("NVRTC {major}.{minor}");
    }
    ExitCode::SUCCESS
}
