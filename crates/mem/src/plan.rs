//! Memory plans: what a run will hold, part by part.
//!
//! A run that reserves its parts one after the other is refused once for each of them. One that says
//! all of them first is refused once, with a budget that then is enough.

use std::borrow::Cow;
use std::fmt;

use tiergraph_core::{ByteSize, Error, ErrorKind, Result};

use crate::{Budget, Reservation};

/// A memory plan: what a run will hold at its worst moment, as names of parts and their bytes.
///
/// ```
/// use tiergraph_mem::{Budget, MemoryPlan};
/// let opened = MemoryPlan::default().and("the process", 20 << 20);
/// let budget = Budget::new(24 << 20);
/// let _held = opened.reserve(&budget, &MemoryPlan::default()).unwrap();
/// let run = MemoryPlan::default().and("the ranks", 6 << 20).and("strips", 2 << 20);
/// let refused = run.reserve(&budget, &opened).unwrap_err();
/// assert_eq!(refused.enough_bytes(), Some(28 << 20));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    parts: Vec<(Cow<'static, str>, u64)>,
}

impl MemoryPlan {
    /// Adds `bytes` for `what`, as a refusal names it: `the ranks`. A part of no bytes is left out.
    #[must_use]
    pub fn and(mut self, what: impl Into<Cow<'static, str>>, bytes: u64) -> Self {
        if bytes > 0 {
            self.parts.push((what.into(), bytes));
        }
        self
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.1))
    }

    /// Reserves all parts in `budget`, which counts those of `held` already.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when less is left, with every part of both plans and with the budget
    /// that would be enough; nothing is counted then.
    pub fn reserve(&self, budget: &Budget, held: &Self) -> Result<Reservation> {
        budget.try_reserve(self.bytes()).ok_or_else(|| self.refused(budget, held))
    }

    /// The error that [`reserve`](Self::reserve) returns where the budget is too small.
    pub fn refused(&self, budget: &Budget, held: &Self) -> Error {
        let used = budget.used();
        let others = used.saturating_sub(held.bytes());
        let enough = used.saturating_add(self.bytes());
        let all = held.clone().and("what is in use", others);
        let all = Self { parts: [&all.parts[..], &self.parts[..]].concat() };
        let names: Vec<&str> = self.parts.iter().map(|(what, _)| what.as_ref()).collect();
        Error::new(ErrorKind::Budget, "reserve memory for")
            .object(names.join(", "))
            .expected(format!("a budget of at least `{}` ({all})", ByteSize(enough)))
            .got(format!("`{}`", ByteSize(budget.limit())))
            .enough(enough)
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (what, bytes)) in self.parts.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{what} {}", ByteSize(*bytes))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_every_part_and_a_budget_that_is_enough() {
        let opened = MemoryPlan::default().and("the process", 24 << 20).and("indexes", 0);
        let run = MemoryPlan::default().and("the components", 6 << 20).and("strips", 1 << 20);
        let refuse = |limit| {
            let budget = Budget::new(limit);
            let _held = budget.count(opened.bytes());
            run.reserve(&budget, &opened).map(drop)
        };
        let e = refuse(1 << 20).unwrap_err();
        assert_eq!(
            e.to_string(),
            "cannot reserve memory for `the components, strips`: expected a budget of at least \
             `31.0 MiB` (the process 24.0 MiB, the components 6.0 MiB, strips 1.0 MiB), got \
             `1.0 MiB`\n\nhint: run with `--memory 31MiB` or more"
        );
        assert!(refuse(e.enough_bytes().unwrap()).is_ok());
        assert!(refuse(e.enough_bytes().unwrap() - 1).is_err());
    }

    #[test]
    fn what_others_reserved_counts_too() {
        let budget = Budget::new(10);
        let _others = budget.reserve(7, "the checksums").unwrap();
        let e = MemoryPlan::default().and("the ranks", 4).reserve(&budget, &MemoryPlan::default());
        let e = e.unwrap_err();
        assert!(e.to_string().contains("(what is in use 7 B, the ranks 4 B), got `10 B`"), "{e}");
        assert_eq!(e.enough_bytes(), Some(11));
    }
}
