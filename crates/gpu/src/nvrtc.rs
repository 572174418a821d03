//! NVRTC: CUDA C++ to machine code, with neither a toolkit nor a GPU.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

use tiergraph_core::{Error, ErrorKind, Result};

use crate::Architecture;
use crate::driver::Handle;
use crate::library::{functions, open};
use crate::start::{driver, version};

functions! {
    /// `libnvrtc`.
    Functions, c_int;
    version: "nvrtcVersion"(*mut c_int, *mut c_int);
    create: "nvrtcCreateProgram"(*mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    destroy: "nvrtcDestroyProgram"(*mut Handle);
    compile: "nvrtcCompileProgram"(Handle, c_int, *const *const c_char);
    log_size: "nvrtcGetProgramLogSize"(Handle, *mut usize);
    log: "nvrtcGetProgramLog"(Handle, *mut c_char);
    cubin_size: "nvrtcGetCUBINSize"(Handle, *mut usize);
    cubin: "nvrtcGetCUBIN"(Handle, *mut c_char);
}

const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
/// As [`NAMES`], where the driver is CUDA 12's: it does not take the machine code of CUDA 13.
const NAMES_OF_12: [&str; 3] = ["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"];
const HINT: &str = "pip install nvidia-cuda-nvrtc (for a driver of CUDA 12: nvidia-cuda-nvrtc-cu12), \
                    or install the CUDA toolkit; or run with `--device cpu`";

/// NVRTC, the run-time compiler of CUDA C++.
pub struct Compiler {
    functions: Functions,
    version: (i32, i32),
}

impl Compiler {
    /// The compiler that is installed, from a CUDA toolkit or from PyPI.
    ///
    /// # Errors
    /// A compiler that is not installed.
    pub fn get() -> Result<&'static Self> {
        static COMPILER: OnceLock<Compiler> = OnceLock::new();
        // A compiler that was missing may have been installed since: only success is kept.
        match COMPILER.get() {
            Some(compiler) => Ok(compiler),
            None => Self::load().map(|compiler| COMPILER.get_or_init(|| compiler)),
        }
    }

    fn load() -> Result<Self> {
        // Without a driver, kernels are compiled to see whether they do.
        let is_12 = driver().and_then(version).is_ok_and(|version| version < 13000);
        let names = if is_12 { &NAMES_OF_12 } else { &NAMES };
        let functions = Functions::read(open("CUDA's run-time compiler", names, HINT)?)
            .map_err(|missing| failed("use NVRTC").got(format!("a library without {missing}")))?;
        let mut version = (0, 0);
        // SAFETY: writes two integers.
        unsafe { (functions.version)(&raw mut version.0, &raw mut version.1) };
        Ok(Self { functions, version })
    }

    /// The compiler's version: its major and its minor number.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Compiles `source` to machine code for `architecture`; `name` is what messages call it.
    ///
    /// # Errors
    /// A source that does not compile, with the compiler's log.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        options: &[String],
        architecture: Architecture,
    ) -> Result<Vec<u8>> {
        let mut program = Program { functions: &self.functions, handle: ptr::null_mut() };
        let (title, text) = (c_string(name)?, c_string(source)?);
        // SAFETY: both strings live through the call, and there are no headers.
        let created = unsafe {
            (self.functions.create)(
                &raw mut program.handle,
                text.as_ptr(),
                title.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if created != 0 {
            return Err(failed("compile").object(name).got(format!("NVRTC's error {created}")));
        }
        let all = [format!("--gpu-architecture={architecture}"), "--std=c++17".into()];
        let all: Vec<CString> =
            all.iter().chain(options).map(|o| c_string(o)).collect::<Result<_>>()?;
        let pointers: Vec<*const c_char> = all.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: a live program and as many live strings as said.
        let code = unsafe {
            (self.functions.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr())
        };
        if code != 0 {
            let log = program.log();
            let got =
                if log.is_empty() { format!("NVRTC's error {code}, without a log") } else { log };
            return Err(failed("compile")
                .object(format!("kernel {name}"))
                .expected(format!("NVRTC {}.{} to take it", self.version.0, self.version.1))
                .got(got)
                .hint("report this as a bug of tiergraph, with this message; or run with `--device cpu`"));
        }
        program.cubin().ok_or_else(|| {
            failed("compile")
                .object(name)
                .expected(format!("machine code for {architecture}"))
                .got(format!("none from NVRTC {}.{}", self.version.0, self.version.1))
                .hint("install a newer nvidia-cuda-nvrtc")
        })
    }
}

fn failed(op: &str) -> Error {
    Error::new(ErrorKind::Device, op).hint(HINT)
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|e| failed("pass text to NVRTC").source(e))
}

struct Program<'a> {
    functions: &'a Functions,
    handle: Handle,
}

impl Program<'_> {
    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: writes one size.
        unsafe { (self.functions.log_size)(self.handle, &raw mut size) };
        let mut log: Vec<c_char> = vec![0; size + 1];
        // SAFETY: writes `size` bytes, the last of them zero.
        unsafe { (self.functions.log)(self.handle, log.as_mut_ptr()) };
        // SAFETY: a zero is behind whatever was written.
        unsafe { CStr::from_ptr(log.as_ptr()) }.to_string_lossy().trim().to_owned()
    }

    fn cubin(&self) -> Option<Vec<u8>> {
        let mut size = 0;
        // SAFETY: writes one size.
        unsafe { (self.functions.cubin_size)(self.handle, &raw mut size) };
        let mut cubin = vec![0u8; size];
        // SAFETY: writes `size` bytes.
        let code = unsafe { (self.functions.cubin)(self.handle, cubin.as_mut_ptr().cast()) };
        (code == 0 && size > 0).then_some(cubin)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: created in `compile`.
            unsafe { (self.functions.destroy)(&raw mut self.handle) };
        }
    }
}
