//! Reading ahead: a thread that reads one item after the other while those that have come are worked on.

use crossbeam_channel::{Receiver, Sender, bounded};
use tiergraph_core::{Error, ErrorKind, Result, panics, threads};
use tiergraph_mem::AlignedBuf;

/// Items that a thread reads ahead, in their order. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ahead<T> {
    items: Receiver<Result<T>>,
    /// How many items are to come.
    left: usize,
}

impl<T: Send + 'static> Ahead<T> {
    /// Starts a thread called `name`, which calls `read` with the numbers of `count` items, while at most so many
    /// as are `waiting` wait to be taken.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub(crate) fn start(
        name: &str,
        waiting: usize,
        count: usize,
        mut read: impl FnMut(usize) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let (send, items) = bounded(waiting);
        threads::start(name, move || {
            for number in 0..count {
                let item = panics::caught(|| read(number));
                let failed = item.is_err();
                if send.send(item).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self { items, left: count })
    }
}

impl<T> Iterator for Ahead<T> {
    type Item = Result<T>;

    /// The next item. An error is the last.
    fn next(&mut self) -> Option<Result<T>> {
        self.left = self.left.checked_sub(1)?;
        let item = self.items.recv().unwrap_or_else(|_| Err(ended()));
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "read ahead").got("the thread that reads has ended")
}

/// A pool of what is used again, such as buffers.
#[derive(Debug)]
pub(crate) struct Spares<T> {
    give: Sender<T>,
    take: Receiver<T>,
}

impl<T> Spares<T> {
    /// A pool that keeps at most `most`.
    pub(crate) fn new(most: usize) -> Self {
        let (give, take) = bounded(most);
        Self { give, take }
    }

    /// One that was given, if there is any.
    pub(crate) fn take(&self) -> Option<T> {
        self.take.try_recv().ok()
    }

    /// Keeps `spare` for later, unless there are enough.
    pub(crate) fn give(&self, spare: T) {
        // A full channel means that there are.
        let _ = self.give.try_send(spare);
    }
}

impl Spares<AlignedBuf> {
    /// A buffer of `bytes`: one that was given, or a new one.
    ///
    /// # Errors
    /// The system has no such amount of memory to give.
    pub(crate) fn buffer(&self, bytes: usize) -> Result<AlignedBuf> {
        self.take().map_or_else(|| AlignedBuf::zeroed(bytes), Ok)
    }
}

impl<T> Clone for Spares<T> {
    fn clone(&self) -> Self {
        Self { give: self.give.clone(), take: self.take.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn items_come_in_order_and_no_more_of_them_are_read_than_may_wait() {
        for (waiting, count) in [(0, 9), (1, 9), (7, 100), (9, 3), (9, 0)] {
            let begun = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&begun);
            let read = move |number: usize| {
                counted.fetch_add(1, Ordering::SeqCst);
                Ok(number)
            };
            let mut taken = 0;
            for item in Ahead::start("read", waiting, count, read).unwrap() {
                assert_eq!(item.unwrap(), taken);
                taken += 1;
                // Those that wait, and one that is handed over.
                assert!(begun.load(Ordering::SeqCst) <= taken + waiting + 1, "{waiting} {count}");
            }
            assert_eq!((taken, begun.load(Ordering::SeqCst)), (count, count));
        }
    }

    #[test]
    fn an_error_or_a_panic_comes_in_its_turn_and_is_the_last() {
        for panics in [false, true] {
            let read = move |number: usize| match number {
                5 if panics => panic!("at the disco"),
                5 => Err(Error::new(ErrorKind::Io, "read the item")),
                number => Ok(number),
            };
            let mut items = Ahead::start("read", 3, 20, read).unwrap();
            assert!(items.by_ref().take(5).map(Result::unwrap).eq(0..5));
            let error = items.next().unwrap().unwrap_err();
            assert_eq!(error.kind() == ErrorKind::Internal, panics, "{error}");
            assert!(items.next().is_none());
        }
    }

    #[test]
    fn a_pool_gives_what_it_was_given_and_keeps_no_more_than_it_may() {
        let spares = Spares::new(2);
        assert!(spares.take().is_none());
        (0..3).for_each(|spare| spares.clone().give(spare));
        assert_eq!([spares.take(), spares.take(), spares.take()], [Some(0), Some(1), None]);
    }
}
