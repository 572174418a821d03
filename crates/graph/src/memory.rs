//! The memory that an opened graph and its algorithms share, and what of it resident blocks get.

use tiergraph_core::{ErrorKind, Result};
use tiergraph_mem::{AlignedBuf, Budget, MemoryPlan, Reservation};

use crate::Graph;

/// The memory of a graph, as [`Graph::memory`] gives it: state of algorithms, indexes, buffers and resident
/// blocks under one budget.
#[derive(Clone, Copy)]
pub struct Memory<'g> {
    graph: &'g Graph,
}

impl Graph {
    /// The memory that the graph and its algorithms share.
    pub fn memory(&self) -> Memory<'_> {
        Memory { graph: self }
    }
}

impl<'g> Memory<'g> {
    /// The budget that all of it counts in.
    pub fn budget(self) -> &'g Budget {
        &self.graph.budget
    }

    /// Gives blocks all the memory that is not reserved. Called by an algorithm after it reserved
    /// its state.
    pub fn plan_residency(self) {
        let capacity = if self.graph.residency { self.graph.budget.left() } else { 0 };
        self.graph.cache.retain(|block| !block.is_locked());
        self.graph.cache.set_capacity(capacity);
    }

    /// As [`plan_residency`](Self::plan_residency), for blocks in memory that is locked for a device; the
    /// bytes of all of them.
    pub fn plan_locked_residency(self) -> u64 {
        let capacity = if self.graph.residency { self.graph.budget.left() } else { 0 };
        self.graph.cache.retain(AlignedBuf::is_locked);
        self.graph.cache.set_capacity(capacity);
        capacity
    }

    /// Refuses memory that does not hold what the opened graph holds: indexes and buffers.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] where [`OpenOptions::refuse_later`] put this off.
    pub fn check(self) -> Result<()> {
        let nothing = MemoryPlan::default();
        match self.graph.budget.used() > self.graph.budget.limit() {
            true => {
                Err(self.graph.opened.0.refused(&Budget::new(self.graph.budget.limit()), &nothing))
            }
            false => Ok(()),
        }
    }

    /// Reserves `bytes` of state for `what`; resident blocks make room.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when the state does not fit the memory.
    pub fn reserve(self, bytes: u64, what: &str) -> Result<Reservation> {
        self.reserve_all(&MemoryPlan::default().and(what.to_owned(), bytes))
    }

    /// As [`reserve`](Self::reserve), for what a run can do without: `None` where there is no memory for it.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve), but for the memory.
    pub fn reserve_if_left(self, bytes: u64, what: &str) -> Result<Option<Reservation>> {
        match self.reserve(bytes, what) {
            Err(error) if error.kind() == ErrorKind::Budget => Ok(None),
            reserved => reserved.map(Some),
        }
    }

    /// Reserves all that a run will hold; resident blocks make room.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] when it does not fit the memory beside what the opened graph holds, with
    /// the parts of both and the memory to open the graph with.
    pub fn reserve_all(self, plan: &MemoryPlan) -> Result<Reservation> {
        let reservation = plan.reserve(&self.graph.budget, &self.graph.opened.0)?;
        self.graph.cache.set_capacity(self.graph.cache.capacity().min(self.graph.budget.left()));
        Ok(reservation)
    }

    /// Bytes that can be reserved without a resident block making room.
    pub fn spare_bytes(self) -> u64 {
        self.graph.budget.left().saturating_sub(self.graph.cache.resident_bytes())
    }

    /// Bytes of resident blocks.
    pub fn resident_bytes(self) -> u64 {
        self.graph.cache.resident_bytes()
    }
}
