//! Numbers for keys (names, or ids far apart): each has the next one when it first comes.
//!
//! A table of 8 bytes a place finds a key's number, by linear probing: the upper half of the
//! key's hash, and the number. Three places of four are taken at most, which makes it 11 to 21 bytes
//! a key, beside the keys themselves. Keys are looked up in groups, so that the processor waits for the cache misses of many at once.

mod ids;
mod names;

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::names::{number_in, place};
use tiergraph_mem::{Budget, Reservation};

pub(crate) use ids::Ids;
pub use names::Names;

/// Keys that are looked up at once.
const GROUP: usize = 32;
/// Places of the smallest table.
const LEAST_PLACES: usize = 1 << 12;

/// Keys in the order of their numbers.
pub(crate) trait Keys: Default {
    /// A key.
    type Key<'k>: Copy + Default;

    /// What messages call them.
    const WHAT: &'static str;

    fn hash(key: Self::Key<'_>) -> u64;

    fn count(&self) -> usize;

    /// Whether the key with this number is `key`.
    fn is(&self, number: usize, key: Self::Key<'_>) -> bool;

    /// The hash of the key with this number.
    fn hash_of(&self, number: usize) -> u64;

    fn push(&mut self, key: Self::Key<'_>);

    /// Bytes that they hold.
    fn bytes(&self) -> u64;

    /// Bytes by which they have to grow before `keys` are pushed: 0 where there is room.
    fn growth(&self, keys: &[(u64, Self::Key<'_>)]) -> u64;

    /// Grows by as much.
    fn grow(&mut self, keys: &[(u64, Self::Key<'_>)]);
}

/// Keys, and the table that finds their numbers.
#[derive(Default)]
pub(crate) struct Table<K> {
    keys: K,
    places: Vec<u64>,
    held: Option<(Budget, Reservation)>,
}

impl<K: Keys> Table<K> {
    /// Counts memory in `budget` from now on.
    pub(crate) fn count_in(&mut self, budget: &Budget) -> Result<()> {
        self.held = Some((budget.clone(), budget.reserve(self.bytes(), K::WHAT)?));
        Ok(())
    }

    pub(crate) fn keys(&self) -> &K {
        &self.keys
    }

    pub(crate) fn places(&self) -> &[u64] {
        &self.places
    }

    /// Appends the number of each of `keys`, which come with their hashes, to `numbers`.
    ///
    /// # Errors
    /// A budget error; an input error for more keys than a graph has vertices.
    pub(crate) fn number<'k>(
        &mut self,
        mut keys: impl Iterator<Item = (u64, K::Key<'k>)>,
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        let mut group = [(0, K::Key::default()); GROUP];
        loop {
            let mut count = 0;
            for (to, key) in group.iter_mut().zip(&mut keys) {
                *to = key;
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            self.make_room(&group[..count])?;
            self.number_group(&group[..count], numbers)?;
            if count < GROUP {
                return Ok(());
            }
        }
    }

    fn number_group(&mut self, group: &[(u64, K::Key<'_>)], numbers: &mut Vec<u32>) -> Result<()> {
        let mask = self.places.len() - 1;
        // Misses of one do not wait for those of another.
        let mut first = [0; GROUP];
        for (first, (hash, _)) in first.iter_mut().zip(group) {
            *first = self.places[*hash as usize & mask];
        }
        let mut found = [None; GROUP];
        for ((found, &first), &(hash, key)) in found.iter_mut().zip(&first).zip(group) {
            *found = number_in(first, hash).filter(|&number| self.keys.is(number as usize, key));
        }
        for (&(hash, key), found) in group.iter().zip(found) {
            numbers.push(match found {
                Some(number) => number,
                None => self.find_or_add(hash, key)?,
            });
        }
        Ok(())
    }

    fn find_or_add(&mut self, hash: u64, key: K::Key<'_>) -> Result<u32> {
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        while self.places[at] != 0 {
            if let Some(number) = number_in(self.places[at], hash)
                && self.keys.is(number as usize, key)
            {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
        let number = self.keys.count();
        if number >= u32::MAX as usize {
            return Err(Error::new(ErrorKind::Input, "number the ids of vertices")
                .expected("at most 4294967295 of them")
                .got("more"));
        }
        self.keys.push(key);
        self.places[at] = place(hash, number as u32);
        Ok(number as u32)
    }

    /// Makes room for a group of keys, should all of them be new.
    fn make_room(&mut self, group: &[(u64, K::Key<'_>)]) -> Result<()> {
        let growth = self.keys.growth(group);
        if growth > 0 {
            self.hold(self.bytes() + growth)?;
            self.keys.grow(group);
        }
        let most = self.keys.count() + group.len();
        if most * 4 > self.places.len() * 3 {
            let places = (2 * self.places.len()).max(LEAST_PLACES);
            self.hold(self.keys.bytes() + 8 * places as u64)?;
            self.make_places(places);
        }
        Ok(())
    }

    fn make_places(&mut self, places: usize) {
        // Of a hash, the half that says the place is not stored; keys are hashed again.
        self.places = Vec::new();
        self.places = vec![0; places];
        for number in 0..self.keys.count() {
            let hash = self.keys.hash_of(number);
            let mut at = hash as usize & (places - 1);
            while self.places[at] != 0 {
                at = (at + 1) & (places - 1);
            }
            self.places[at] = place(hash, number as u32);
        }
    }

    fn bytes(&self) -> u64 {
        self.keys.bytes() + 8 * self.places.len() as u64
    }

    /// Counts `bytes` in all, or as many as now.
    fn hold(&mut self, bytes: u64) -> Result<()> {
        if let Some((budget, held)) = &mut self.held
            && bytes > held.bytes()
        {
            held.join(budget.reserve(bytes - held.bytes(), K::WHAT)?);
        }
        Ok(())
    }

    /// The keys, of which the table lets go.
    pub(crate) fn take(&mut self) -> K {
        self.places = Vec::new();
        std::mem::take(&mut self.keys)
    }

    /// Lets go of the keys and the table.
    pub(crate) fn clear(&mut self) {
        *self = Self { keys: K::default(), places: Vec::new(), held: None };
    }
}
