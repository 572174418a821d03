//! The memory budget: a count of bytes that the parts of a run share.
//!
//! It exists so that a run that would need too much memory fails before it starts, with what to change,
//! and is not killed by the kernel in the middle. Reserving is one atomic update.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};

use crate::system::available_memory_bytes;

/// A budget of memory: the bytes that a run may hold, and those it holds. Clones share one count.
///
/// ```
/// use tiergraph_mem::Budget;
/// let budget = Budget::new(1 << 20);
/// let ranks = budget.reserve(300_000, "the ranks").unwrap();
/// assert_eq!(budget.used(), 300_000);
/// assert!(budget.reserve(1 << 20, "the block cache").is_err());
/// drop(ranks);
/// assert_eq!(budget.used(), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Budget(Arc<Count>);

#[derive(Debug)]
struct Count {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes, none of them used.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Count { limit, used: AtomicU64::new(0) }))
    }

    /// A budget of `limit` bytes; by default, of half of what the machine has available.
    ///
    /// # Errors
    /// The system does not say what is available.
    pub fn of(limit: Option<u64>) -> Result<Self> {
        Ok(Self::new(match limit {
            Some(limit) => limit,
            None => available_memory_bytes()? / 2,
        }))
    }

    /// Counts `bytes` for `what` (as the error names it: `the block cache`) until the returned
    /// reservation drops.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when less is left; nothing is counted then.
    pub fn reserve(&self, bytes: u64, what: &str) -> Result<Reservation> {
        self.take(bytes).map_err(|left| self.refusal(bytes, left, what))?;
        Ok(Reservation { budget: self.clone(), bytes })
    }

    /// As [`reserve`](Self::reserve), but `None` where less is left.
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        self.take(bytes).ok()?;
        Some(Reservation { budget: self.clone(), bytes })
    }

    /// Counts `bytes` that are held already, even if they exceed the limit: reservations then fail.
    pub fn count(&self, bytes: u64) -> Reservation {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        Reservation { budget: self.clone(), bytes }
    }

    /// Bytes that are reserved now.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Bytes that may be reserved in all.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes that may still be reserved.
    pub fn left(&self) -> u64 {
        self.0.limit.saturating_sub(self.used())
    }

    /// Adds `bytes` to the count, or returns how many are left. Only a count is shared, no memory
    /// is published through it, so relaxed order is enough.
    fn take(&self, bytes: u64) -> std::result::Result<(), u64> {
        let fits = |used: u64| {
            // Nothing fits whatever is counted already.
            used.checked_add(bytes).filter(|&sum| bytes == 0 || sum <= self.0.limit)
        };
        self.0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map(|_| ())
            .map_err(|used| self.0.limit.saturating_sub(used))
    }

    /// The error that says that `bytes` for `what` do not fit the `left` bytes of this budget.
    pub fn refusal(&self, bytes: u64, left: u64, what: &str) -> Error {
        let enough = self.used().saturating_add(bytes);
        Error::new(ErrorKind::Budget, "reserve memory for")
            .object(what)
            .expected(format!(
                "at most `{}`, what is left of the budget of `{}`",
                ByteSize(left),
                ByteSize(self.0.limit)
            ))
            .got(format!("`{}`", ByteSize(bytes)))
            .enough(enough)
    }
}

/// Bytes counted in a [`Budget`]; dropping it gives them back.
#[derive(Debug)]
#[must_use = "dropping a reservation gives its bytes back"]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
}

impl Reservation {
    /// The number of bytes that the reservation counts.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds another reservation of the same budget to this one.
    pub fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Keeps `bytes` of the reservation and gives the rest back at once; never makes it larger.
    pub fn shrink_to(&mut self, bytes: u64) {
        let given_back = self.bytes.saturating_sub(bytes);
        self.bytes -= given_back;
        self.budget.0.used.fetch_sub(given_back, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_is_not_told_is_half_of_what_is_available() {
        assert_eq!(Budget::of(Some(5)).unwrap().limit(), 5);
        let limit = Budget::of(None).unwrap().limit();
        let available = available_memory_bytes().unwrap();
        // Others take and give back memory meanwhile.
        assert!(limit > available / 8 && limit < available * 2, "{limit} of {available}");
    }

    #[test]
    fn an_exceeded_budget_says_who_asked_for_how_much_and_what_would_do() {
        let budget = Budget::new(2 << 30);
        let _held = budget.reserve(3 << 29, "the vertex states").unwrap();
        let e = budget.reserve(1 << 30, "the block cache").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Budget);
        assert_eq!(
            e.to_string(),
            "cannot reserve memory for `the block cache`: expected at most `512.0 MiB`, what is \
             left of the budget of `2.0 GiB`, got `1.0 GiB`\n\nhint: run with `--memory 2560MiB` \
             or more"
        );
        assert_eq!(e.enough_bytes(), Some(5 << 29));
        assert_eq!(budget.used(), 3 << 29, "a refused reservation counts nothing");
    }

    #[test]
    fn the_last_byte_can_be_reserved_and_a_huge_request_does_not_wrap() {
        let budget = Budget::new(100);
        let mut all = budget.reserve(100, "everything").unwrap();
        assert!(budget.reserve(1, "one more").is_err());
        assert!(budget.reserve(u64::MAX, "a wrap").is_err());
        all.shrink_to(40);
        assert_eq!((all.bytes(), budget.left()), (40, 60));
        all.shrink_to(90);
        assert_eq!(all.bytes(), 40, "it never grows");
    }

    #[test]
    fn threads_never_exceed_the_limit_together() {
        let budget = Budget::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let held = budget.reserve(300, "a block");
                        assert!(budget.used() <= budget.limit());
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
