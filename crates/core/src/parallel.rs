//! Loops on several threads.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

/// Calls `work(worker, items)` on up to `threads` threads, no more than there are items, each of which
/// takes an item when it asks for one; gives what each made.
///
/// ```
/// let sums = tiergraph_core::parallel(1..=100, 4, |_, items| items.sum::<u64>());
/// assert!(sums.len() == 4 && sums.iter().sum::<u64>() == 5050);
/// assert_eq!(tiergraph_core::parallel(0..2, 4, |_, items| items.count()).len(), 2);
/// ```
pub fn parallel<I, R: Send>(
    items: impl Iterator<Item = I> + Send,
    threads: usize,
    work: impl Fn(usize, &mut dyn Iterator<Item = I>) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.size_hint().1.unwrap_or(threads));
    let items = Mutex::new(items);
    let take = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let one = |worker| work(worker, &mut std::iter::from_fn(take));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|worker| scope.spawn(move || one(worker))).collect();
        let mut results = vec![one(0)];
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => resume_unwind(panic),
            }
        }
        results
    })
}
