//! Setting up rings: the best kind that this kernel gives, and what its refusal means.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, Submitter, cqueue, squeue};
use tiergraph_core::{Error, Result};

use crate::FileSet;

/// How often a call is made again while the kernel is out of resources, a millisecond apart.
const MAX_BUSY_TRIES: u32 = 1000;

/// When a system call that failed is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// A signal interrupted it.
    AtOnce,
    /// The kernel is short of requests or of room for completions, for a while.
    Later,
    /// It fails for good.
    Never,
}

/// When a call that failed by `error` is made again, after so many `tries` for which the kernel was
/// out of resources.
fn again(error: &io::Error, tries: u32) -> Again {
    match error.raw_os_error() {
        Some(libc::EINTR) => Again::AtOnce,
        Some(libc::EAGAIN | libc::EBUSY) if tries < MAX_BUSY_TRIES => Again::Later,
        _ => Again::Never,
    }
}

/// Hands new entries to the kernel by `submit`, which may wait for completions as well, again where the kernel
/// is busy.
///
/// # Errors
/// The kernel refuses for good.
pub(crate) fn enter<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &mut IoUring<S, C>,
    submit: impl Fn(&Submitter<'_>) -> io::Result<usize>,
) -> Result<()> {
    let mut tries = 0;
    loop {
        let Err(error) = submit(&ring.submitter()) else { return Ok(()) };
        match again(&error, tries) {
            Again::AtOnce => {}
            Again::Later if !ring.completion().is_empty() => return Ok(()),
            Again::Later => {
                tries += 1;
                thread::sleep(Duration::from_millis(1));
            }
            Again::Never => return Err(Error::io("submit reads to", "an io_uring", error)),
        }
    }
}

/// What this kernel gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setup {
    /// One thread submits and asks for completions when it wants them.
    Deferred,
    /// No flags.
    Plain,
}

/// Whether this system gives io_uring, asked once; the reason when it does not.
pub fn probe() -> std::result::Result<(), String> {
    best_setup().as_ref().map(|_| ()).map_err(String::clone)
}

pub(super) fn best_setup() -> &'static std::result::Result<Setup, String> {
    static BEST: OnceLock<std::result::Result<Setup, String>> = OnceLock::new();
    BEST.get_or_init(|| {
        let works = |setup| {
            let ring = build(setup, 2)?;
            enable(&ring, setup)?;
            ring.submit().map(|_| setup)
        };
        works(Setup::Deferred).or_else(|_| works(Setup::Plain)).map_err(|e| refusal(&e))
    })
}

/// Says what a system's refusal means.
pub(crate) fn refusal(error: &io::Error) -> String {
    let meaning = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "the kernel or the container forbids io_uring",
        Some(libc::ENOSYS) => "the kernel or the container has no io_uring",
        Some(libc::ENOMEM) => "the limit of locked memory is too low for an io_uring",
        _ => "an io_uring cannot be set up",
    };
    format!("{meaning}: {error}")
}

pub(super) fn build(setup: Setup, depth: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if setup == Setup::Deferred {
        builder
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_taskrun_flag();
    }
    builder.build(depth)
}

pub(super) fn enable(ring: &IoUring, setup: Setup) -> io::Result<()> {
    if setup == Setup::Deferred { ring.submitter().register_enable_rings() } else { Ok(()) }
}

/// Registers the files; a kernel that cannot hold so many reads them by descriptor.
pub(super) fn register(ring: &IoUring, files: &FileSet) -> bool {
    let descriptors: Vec<_> = files.stripes().iter().map(|s| s.file.as_raw_fd()).collect();
    ring.submitter().register_files(&descriptors).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_out_of_resources_is_asked_again_for_about_a_second() {
        let again = |code, tries| again(&io::Error::from_raw_os_error(code), tries);
        for code in [libc::EAGAIN, libc::EBUSY] {
            assert_eq!([0, 1, 999].map(|tries| again(code, tries)), [Again::Later; 3]);
            assert_eq!([1000, 1001].map(|tries| again(code, tries)), [Again::Never; 2]);
        }
        assert_eq!([0, 5000].map(|tries| again(libc::EINTR, tries)), [Again::AtOnce; 2]);
        assert_eq!([libc::EIO, libc::EBADF].map(|code| again(code, 0)), [Again::Never; 2]);
    }

    #[test]
    fn the_best_ring_that_the_kernel_gives_is_taken_and_files_are_registered_in_it() {
        let Ok(plain) = IoUring::new(2) else {
            println!("skipped: the system gives no io_uring");
            return;
        };
        assert_eq!(probe(), Ok(()));
        let deferred = build(Setup::Deferred, 2);
        let best = if deferred.is_ok() { Setup::Deferred } else { Setup::Plain };
        assert_eq!(best_setup(), &Ok(best));
        // Only a deferred ring begins disabled, and is enabled once.
        if let Ok(ring) = &deferred {
            assert!(ring.submit().is_err());
            assert!(enable(ring, Setup::Deferred).is_ok() && ring.submit().is_ok());
        }
        assert!(enable(&plain, Setup::Plain).is_ok() && plain.submit().is_ok());
        let mut files = FileSet::new();
        files.open("/dev/null".as_ref()).unwrap();
        assert!(register(&plain, &files), "a kernel that gives rings registers a file");
        assert!(!register(&plain, &files), "once");
    }

    #[test]
    fn a_refusal_says_what_the_error_number_means() {
        let said = |code| refusal(&io::Error::from_raw_os_error(code));
        assert_eq!(
            said(libc::EPERM),
            "the kernel or the container forbids io_uring: Operation not permitted (os error 1)"
        );
        assert_eq!(
            said(libc::ENOSYS),
            "the kernel or the container has no io_uring: Function not implemented (os error 38)"
        );
        assert_eq!(
            said(libc::ENOMEM),
            "the limit of locked memory is too low for an io_uring: Cannot allocate memory (os \
             error 12)"
        );
        assert_eq!(
            said(libc::EMFILE),
            "an io_uring cannot be set up: Too many open files (os error 24)"
        );
    }
}
