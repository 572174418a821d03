//! Threads whose start can fail: a system that gives no more of them is an error, not a panic.

use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::{Error, Result, panics};

/// Starts a thread called `tiergraph-NAME`.
///
/// # Errors
/// The system gives no more threads.
pub fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    named(name).spawn(body).map_err(|e| refused(name, e))
}

/// Starts a thread called `tiergraph-NAME` that ends before `scope` does.
///
/// # Errors
/// The system gives no more threads.
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    named(name).spawn_scoped(scope, body).map_err(|e| refused(name, e))
}

/// Has a thread called `tiergraph-NAME` prepare `items` one after the other, each in one of `buffers`, while this one takes those
/// that are ready, in their order. As many are prepared ahead as there are buffers beyond one.
///
/// ```
/// # use tiergraph_core::threads;
/// let mut sum = 0;
/// let square = |item: &u64, buffer: &mut u64| {
///     *buffer = item * item;
///     Ok(())
/// };
/// let add = |_: u64, square: &u64| {
///     sum += square;
///     Ok(())
/// };
/// threads::ahead("squares", 1..=4, vec![0; 2], square, add)?;
/// assert_eq!(sum, 30);
/// # Ok::<(), tiergraph_core::Error>(())
/// ```
///
/// # Errors
/// The first of `prepare` or `take`, after which nothing is prepared; the system gives no more threads.
pub fn ahead<I: Send, B: Send>(
    name: &str,
    items: impl Iterator<Item = I> + Send,
    buffers: Vec<B>,
    prepare: impl Fn(&I, &mut B) -> Result<()> + Send,
    mut take: impl FnMut(I, &B) -> Result<()>,
) -> Result<()> {
    let (give, empty) = sync_channel(buffers.len());
    let (send, ready) = sync_channel(buffers.len());
    buffers.into_iter().for_each(|buffer| give.send(buffer).unwrap_or(()));
    // Both ends that this thread has are dropped before the scope waits for the other thread.
    thread::scope(move |scope| {
        start_in(scope, name, move || {
            for item in items {
                let Ok(mut buffer) = empty.recv() else { return };
                let prepared = panics::caught(|| prepare(&item, &mut buffer));
                let has_failed = prepared.is_err();
                if send.send(prepared.map(|()| (item, buffer))).is_err() || has_failed {
                    return;
                }
            }
        })?;
        for prepared in ready {
            let (item, buffer) = prepared?;
            take(item, &buffer)?;
            // Where nothing is left to prepare, nobody takes it.
            let _ = give.send(buffer);
        }
        Ok(())
    })
}

fn named(name: &str) -> Builder {
    Builder::new().name(format!("tiergraph-{name}"))
}

fn refused(name: &str, error: std::io::Error) -> Error {
    Error::io("start the thread", name, error).hint(MORE)
}

/// The hint of errors that say that a thread could not be started.
pub const MORE: &str = "use fewer `--threads`, or raise the limit of processes (`ulimit -u`, or the \
    container's limit of pids)";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn items_are_taken_in_order_and_prepared_as_far_ahead_as_there_are_buffers() {
        for (count, buffers) in [(0, 1), (9, 1), (9, 2), (3, 7), (100, 3)] {
            let (begun, mut taken) = (AtomicUsize::new(0), 0);
            let prepare = |item: &usize, buffer: &mut usize| {
                begun.fetch_add(1, Ordering::SeqCst);
                *buffer = item * 3;
                Ok(())
            };
            let take = |item: usize, buffer: &usize| {
                assert_eq!((item, *buffer), (taken, taken * 3));
                assert!(begun.load(Ordering::SeqCst) <= taken + buffers);
                taken += 1;
                Ok(())
            };
            ahead("test", 0..count, vec![0; buffers], prepare, take).unwrap();
            assert_eq!(taken, count);
        }
    }

    #[test]
    fn the_first_error_ends_both_threads() {
        let fails = |at: usize, item: usize| match item == at {
            true => Err(Error::new(ErrorKind::Input, "test")),
            false => Ok(()),
        };
        for (preparing, taking) in [(5, 100), (100, 5), (100, 0), (0, 100)] {
            let prepare = |item: &usize, (): &mut ()| fails(preparing, *item);
            let mut taken = 0;
            let take = |item: usize, (): &()| {
                taken += 1;
                fails(taking, item)
            };
            let error = ahead("test", 0..50, vec![(); 2], prepare, take).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(taken <= 6, "{taken}");
        }
        let panics = |_: &usize, (): &mut ()| panic!("in a test");
        let error = ahead("test", 0..2, vec![()], panics, |_, ()| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
