//! Where NVIDIA's shared libraries are found.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use libloading::Library;
use tiergraph_core::{Error, ErrorKind, Result};

static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds `folders` to those that NVIDIA's libraries are looked for in: PyPI's `nvidia-*` packages lie
/// where the system's loader does not look.
pub fn search_libraries_in(folders: impl IntoIterator<Item = PathBuf>) {
    let mut known = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders {
        if !known.contains(&folder) {
            known.push(folder);
        }
    }
}

/// Opens the first of `names` that is there: as the system finds it, in the folders that
/// [`search_libraries_in`] was told of, in a toolkit's usual place.
pub(crate) fn open(what: &str, names: &[&str], hint: &str) -> Result<Library> {
    let known = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let toolkit = PathBuf::from("/usr/local/cuda/lib64");
    let folders = known.iter().chain([&toolkit]);
    let inside = folders.clone().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let mut reason = String::new();
    for path in names.iter().map(PathBuf::from).chain(inside.filter(|path| path.exists())) {
        // SAFETY: NVIDIA's libraries run nothing at loading that depends on this process.
        match unsafe { Library::new(&path) } {
            Ok(library) => return Ok(library),
            Err(error) if path.is_absolute() || reason.is_empty() => reason = error.to_string(),
            Err(_) => {}
        }
    }
    let places: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
    Err(Error::new(ErrorKind::Device, format!("use {what}"))
        .expected(format!(
            "one of {} where the system looks for libraries, or in {}",
            names.join(", "),
            places.join(", ")
        ))
        .got(reason)
        .hint(hint))
}

/// Reads the functions of a library into a struct of function pointers. They all give a `$result`
/// but those that say otherwise.
macro_rules! functions {
    (@result $result:ty) => { $result };
    (@result $result:ty, $own:ty) => { $own };
    ($(#[$doc:meta])* $table:ident, $result:ty;
     $($name:ident: $symbol:literal($($arg:ty),*) $(-> $own:ty)?;)*) => {
        $(#[$doc])*
        #[allow(clippy::struct_field_names)]
        pub(crate) struct $table {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> functions!(@result $result $(, $own)?),)*
            _library: libloading::Library,
        }

        impl $table {
            /// Reads the table; gives the name of the first function that is missing.
            pub(crate) fn read(library: libloading::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $(
                        // SAFETY: the type is the one that NVIDIA's header declares.
                        $name: unsafe { *library.get(concat!($symbol, "\0").as_bytes()).map_err(|_| $symbol)? },
                    )*
                    _library: library,
                })
            }
        }
    };
}
pub(crate) use functions;
