//! Bus addresses: how a controller names host memory.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tiergraph_core::{Error, ErrorKind, Result};

use crate::SharedMemory;

/// Bytes of a page, of which lists of pages consist (CC.MPS = 0).
pub const PAGE_BYTES: u64 = 4096;

/// Makes host memory reachable for a controller. Bytes that lie side by side have bus addresses side by
/// side.
pub trait Dma: Send + Sync + fmt::Debug {
    /// Maps `memory`, which starts at a page, and gives the bus address of its first byte. It stays mapped
    /// until it is [unmapped](Self::unmap).
    ///
    /// # Errors
    /// The memory does not start at a page, is mapped already, or the system refuses to map it.
    fn map(&self, memory: &SharedMemory) -> Result<u64>;

    /// Ends the mapping that [`map`](Self::map) made at `bus`. The controller has no command left that
    /// names an address in it.
    fn unmap(&self, bus: u64);
}

/// The bus of a [`SoftwareController`](crate::SoftwareController): what is mapped, sorted by address. A
/// byte's bus address is its address in this process.
#[derive(Debug, Default)]
pub struct AddressMap {
    regions: RwLock<Arc<Vec<Region>>>,
    /// How often the map changed, by which snapshots know that they are old.
    changes: AtomicU64,
}

/// Mapped memory.
#[derive(Debug, Clone)]
struct Region {
    bus: u64,
    memory: SharedMemory,
}

impl Region {
    fn end(&self) -> u64 {
        self.bus + self.memory.len() as u64
    }
}

impl AddressMap {
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Region>) -> Result<T>) -> Result<T> {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(Arc::make_mut(&mut regions));
        self.changes.fetch_add(1, Ordering::Release);
        changed
    }
}

impl Dma for AddressMap {
    fn map(&self, memory: &SharedMemory) -> Result<u64> {
        let region = Region { bus: memory.address(), memory: memory.clone() };
        self.change(|regions| {
            let after = regions.partition_point(|other| other.bus < region.bus);
            let is_free = regions[..after].last().is_none_or(|other| other.end() <= region.bus)
                && regions[after..].first().is_none_or(|other| region.end() <= other.bus);
            if !region.bus.is_multiple_of(PAGE_BYTES) || region.memory.is_empty() || !is_free {
                return Err(Error::new(ErrorKind::Io, "map memory for a controller")
                    .expected("memory that starts at a page and is not mapped yet")
                    .got(format!("`{}` bytes at `{:#x}`", memory.len(), region.bus)));
            }
            let bus = region.bus;
            regions.insert(after, region);
            Ok(bus)
        })
    }

    fn unmap(&self, bus: u64) {
        // Removing is no error.
        let _ = self.change(|regions| {
            regions.retain(|region| region.bus != bus);
            Ok(())
        });
    }
}

/// A thread's view of an [`AddressMap`]: a snapshot, which is taken anew when the map has changed.
#[derive(Debug)]
pub(crate) struct Translation {
    map: Arc<AddressMap>,
    regions: Arc<Vec<Region>>,
    changes: u64,
    /// The region that the last address was in, which is often that of the next one.
    last: usize,
}

impl Translation {
    pub(crate) fn new(map: Arc<AddressMap>) -> Self {
        Self { map, regions: Arc::default(), changes: u64::MAX, last: 0 }
    }

    /// The memory behind `len` bytes at the bus address, and the byte of it where they begin; `None` if
    /// they are not all mapped.
    #[inline]
    pub(crate) fn find(&mut self, bus: u64, len: usize) -> Option<(&SharedMemory, usize)> {
        let changes = self.map.changes.load(Ordering::Acquire);
        if changes != self.changes {
            let regions = self.map.regions.read().unwrap_or_else(PoisonError::into_inner);
            (self.regions, self.changes) = (Arc::clone(&regions), changes);
        }
        if !self.is_in_last(bus, len) {
            self.last = self.regions.partition_point(|region| region.bus <= bus).checked_sub(1)?;
            if !self.is_in_last(bus, len) {
                return None;
            }
        }
        let region = &self.regions[self.last];
        Some((&region.memory, (bus - region.bus) as usize))
    }

    fn is_in_last(&self, bus: u64, len: usize) -> bool {
        self.regions.get(self.last).is_some_and(|region| {
            let end = bus.checked_sub(region.bus).and_then(|at| at.checked_add(len as u64));
            end.is_some_and(|end| end <= region.memory.len() as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_where_they_are_mapped_and_nowhere_else() {
        let map = Arc::new(AddressMap::default());
        let [a, b] = [8192, 4096].map(|len| SharedMemory::zeroed(len).unwrap());
        let (at_a, at_b) = (map.map(&a).unwrap(), map.map(&b).unwrap());
        let mut translation = Translation::new(Arc::clone(&map));
        for _ in 0..2 {
            let (memory, at) = translation.find(at_a + 4096, 4096).unwrap();
            assert_eq!((memory.address(), at), (a.address(), 4096));
            let (memory, at) = translation.find(at_b, 1).unwrap();
            assert_eq!((memory.address(), at), (b.address(), 0));
        }
        assert!(translation.find(at_a + 4097, 8192).is_none(), "past the end");
        assert!(translation.find(u64::MAX, 2).is_none());
        map.unmap(at_b);
        assert!(translation.find(at_b, 1).is_none(), "no more");
        assert!(translation.find(at_a, 8192).is_some());
    }

    #[test]
    fn memory_is_mapped_once() {
        let map = AddressMap::default();
        let memory = SharedMemory::zeroed(8192).unwrap();
        let bus = map.map(&memory).unwrap();
        let again = map.map(&memory.part(4096..8192)).unwrap_err();
        assert!(again.to_string().contains("not mapped yet"), "{again}");
        map.unmap(bus);
        assert!(map.map(&memory.part(4096..8192)).is_ok());
        assert!(map.map(&memory.part(8..4096)).is_err(), "no page starts there");
    }
}
