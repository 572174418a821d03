//! Numbers for keys (names, or ids far apart): each has the next one when it first comes.
//!
//! A table of 8 bytes a place finds a key's number, by linear probing: the upper half of the
//! key's hash, and the number. Three places of four are taken at most, which makes it 11 to 21 bytes
//! a key, beside the keys themselves. Keys are looked up in groups, each step of a look-up for a whole
//! group, with what the next step needs asked for ahead: a cache miss takes longer than all else.

mod ids;
mod names;
mod stored;

use tiergraph_core::{Error, ErrorKind, Result, threads};
use tiergraph_format::names::{number_in, place};
use tiergraph_mem::{Array, Budget, Reservation, prefetch};

pub(crate) use ids::Ids;
pub use names::Names;

/// Keys that are looked up at once.
const GROUP: usize = 64;
/// Keys between the one that is put in a new table, and the one whose place is asked for.
const AHEAD: usize = 16;
/// Keys that are worth a thread.
const PART: usize = 1 << 13;
/// What is in the place of the number of a key that has none yet.
pub(crate) const NEW: u32 = u32::MAX;
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

    /// Asks for what says where the key with this number is.
    fn prefetch_place(&self, number: usize);

    /// Asks for the key with this number.
    fn prefetch(&self, number: usize);

    /// The hash of the key with this number.
    fn hash_of(&self, number: usize) -> u64;

    fn push(&mut self, key: Self::Key<'_>);

    /// Bytes that they hold.
    fn bytes(&self) -> u64;

    /// Bytes by which they grow before `keys` are pushed: 0 where there is room for all.
    fn growth(&self, keys: &[(u64, Self::Key<'_>)]) -> u64;

    /// Grows by as much.
    fn grow(&mut self, keys: &[(u64, Self::Key<'_>)]) -> Result<()>;
}

/// Numbers keys: those that are known are looked up by as many `threads`, the others are added in their order.
pub(crate) fn number<'k, K: Keys + Sync>(
    table: &mut Table<K>,
    threads: usize,
    key: impl Fn(usize) -> (u64, K::Key<'k>) + Sync,
    numbers: &mut [u32],
) -> Result<()> {
    let known = &*table;
    // Where most are new, to look them up first would be in vain.
    if known.mostly_new {
        numbers.fill(NEW);
    } else {
        let part = numbers.len().div_ceil(threads).max(PART);
        let look_up =
            |from: usize, numbers: &mut [u32]| known.look_up(|at| key(from + at), numbers);
        std::thread::scope(|scope| -> Result<()> {
            let mut parts = numbers.chunks_mut(part).enumerate();
            let own = parts.next();
            for (turn, numbers) in parts {
                threads::start_in(scope, "number", move || look_up(turn * part, numbers))?;
            }
            own.into_iter().for_each(|(_, numbers)| look_up(0, numbers));
            Ok(())
        })?;
    }
    let new = (0..numbers.len()).filter(|&at| numbers[at] == NEW);
    let (mut added, before) = (Vec::new(), table.keys.count());
    table.add(new.map(&key), &mut added)?;
    table.mostly_new = (table.keys.count() - before) * 2 > numbers.len();
    let mut added = added.into_iter();
    for number in numbers.iter_mut().filter(|number| **number == NEW) {
        *number = added.next().unwrap_or(NEW);
    }
    Ok(())
}

/// Keys, and the table that finds their numbers.
#[derive(Default)]
pub(crate) struct Table<K> {
    keys: K,
    places: Array<u64>,
    held: Option<(Budget, Reservation)>,
    /// Whether most keys of the last batch were new.
    mostly_new: bool,
}

impl<K: Keys> Table<K> {
    /// Counts memory in `budget` from now on.
    pub(crate) fn count_in(&mut self, budget: &Budget) -> Result<()> {
        self.held = Some((budget.clone(), budget.reserve(self.bytes(), K::WHAT)?));
        Ok(())
    }

    /// The budget that memory is counted in, if it is.
    pub(crate) fn budget(&self) -> Option<Budget> {
        self.held.as_ref().map(|(budget, _)| budget.clone())
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
    pub(crate) fn add<'k>(
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
        self.ask_for(group);
        for (&(hash, key), found) in group.iter().zip(self.found(group)) {
            numbers.push(match found {
                Some(number) => number,
                None => self.find_or_add(hash, key)?,
            });
        }
        Ok(())
    }

    /// Replaces `numbers` by the numbers of the keys that are known already, and by [`NEW`] for others.
    pub(crate) fn look_up<'k>(
        &self,
        key: impl Fn(usize) -> (u64, K::Key<'k>),
        numbers: &mut [u32],
    ) {
        if self.places.is_empty() {
            numbers.fill(NEW);
            return;
        }
        let fill = |group: &mut [(u64, K::Key<'k>)], from: usize| {
            group.iter_mut().zip(from..).for_each(|(to, at)| *to = key(at));
            self.ask_for(group);
        };
        // A group's places are asked for while the one before is looked up.
        let mut groups = [[(0, K::Key::default()); GROUP]; 2];
        let count = numbers.len();
        fill(&mut groups[0][..GROUP.min(count)], 0);
        for (turn, numbers) in numbers.chunks_mut(GROUP).enumerate() {
            let next = (turn + 1) * GROUP;
            if next < count {
                fill(&mut groups[(turn + 1) % 2][..GROUP.min(count - next)], next);
            }
            let found = self.found(&groups[turn % 2][..numbers.len()]);
            numbers.iter_mut().zip(found).for_each(|(to, found)| *to = found.unwrap_or(NEW));
        }
    }

    /// Asks for the places where keys are looked for first.
    fn ask_for(&self, group: &[(u64, K::Key<'_>)]) {
        let mask = self.places.len() - 1;
        group.iter().for_each(|(hash, _)| prefetch(&self.places, *hash as usize & mask));
    }

    /// The numbers of keys. (Of two with hashes that are alike, only the first is found.)
    fn found(&self, group: &[(u64, K::Key<'_>)]) -> [Option<u32>; GROUP] {
        let mask = self.places.len() - 1;
        let mut found = [None; GROUP];
        for (found, &(hash, _)) in found.iter_mut().zip(group) {
            let mut at = hash as usize & mask;
            while self.places[at] != 0 && found.is_none() {
                *found = number_in(self.places[at], hash);
                at = (at + 1) & mask;
            }
            found.iter().for_each(|&number| self.keys.prefetch_place(number as usize));
        }
        found.iter().flatten().for_each(|&number| self.keys.prefetch(number as usize));
        for (found, &(_, key)) in found.iter_mut().zip(group) {
            *found = found.filter(|&number| self.keys.is(number as usize, key));
        }
        found
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
            self.keys.grow(group)?;
        }
        let most = self.keys.count() + group.len();
        if most * 4 > self.places.len() * 3 {
            let places = (2 * self.places.len()).max(LEAST_PLACES);
            self.hold(self.keys.bytes() + 8 * places as u64)?;
            self.make_places(places)?;
        }
        Ok(())
    }

    fn make_places(&mut self, places: usize) -> Result<()> {
        // Of a hash, the half that says the place is not stored; keys are hashed again.
        self.places = Array::default();
        self.places = Array::zeroed(places)?;
        let mut hashes = [0; AHEAD];
        for number in 0..self.keys.count() + AHEAD {
            if let Some(before) = number.checked_sub(AHEAD).filter(|&at| at < self.keys.count()) {
                let hash = hashes[before % AHEAD];
                let mut at = hash as usize & (places - 1);
                while self.places[at] != 0 {
                    at = (at + 1) & (places - 1);
                }
                self.places[at] = place(hash, before as u32);
            }
            if number < self.keys.count() {
                let hash = self.keys.hash_of(number);
                prefetch(&self.places, hash as usize & (places - 1));
                hashes[number % AHEAD] = hash;
            }
        }
        Ok(())
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
        self.places = Array::default();
        std::mem::take(&mut self.keys)
    }

    /// Lets go of the keys and the table.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
