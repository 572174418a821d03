//! Connected components of pairs of ids or names as they come, without a graph: one pass, and memory
//! for the distinct ids alone.
//!
//! Ids are numbered, and a forest over the numbers holds what is connected so far: the smaller of two roots
//! becomes the root of both (R. Tarjan and J. van Leeuwen, "Worst-case analysis of set union algorithms",
//! J. ACM 31, 1984; paths are halved). What comes out does not depend on the order of the pairs, but for the
//! order in which ids are listed: that in which they first came.

use tiergraph_core::{Cancel, Error, ErrorKind, Result};
use tiergraph_mem::{Budget, Reservation, Segments};

use crate::build::visit_source;
use crate::numbering::{Ids, Keys, Table, number};
use crate::{EdgeBatch, EdgeSource, Endpoints, Names};

/// Vertices that are counted at a time, where a source says how many there are.
const STEP: usize = 1 << 16;
/// Pairs between the one that is joined and the one whose parents are asked for.
const AHEAD: usize = 16;

/// What is connected by the pairs so far.
pub struct Components {
    budget: Budget,
    keys: Numbered,
    /// Numbers of the batch that is being added.
    numbers: Vec<u32>,
    /// A number that stands for the same component and is not larger; a root stands for itself.
    parents: Segments<u32>,
    held: Reservation,
    pairs: u64,
    threads: usize,
}

/// What numbers ids.
enum Numbered {
    Ids(Table<Ids>),
    Names(Names),
}

/// Components that were found.
pub struct Found {
    /// All ids, or names one after the other and where each ends, in the order in which they first came.
    pub keys: FoundKeys,
    /// The place in that order of the least id of each one's component.
    pub least: Vec<u32>,
    /// How many pairs there were.
    pub pairs: u64,
    /// How many components there are.
    pub components: u64,
    /// How many ids the largest has.
    pub largest: u64,
}

/// Ids or names that were found.
pub enum FoundKeys {
    /// Ids.
    Ids(Vec<u64>),
    /// Names in UTF-8, and where each ends.
    Names(Vec<u8>, Vec<u64>),
}

impl Components {
    /// No pairs yet, of ids or of `names`, in memory that counts in `budget`; `threads` look ids up.
    ///
    /// # Errors
    /// A budget error.
    pub fn new(names: Option<Names>, threads: usize, budget: &Budget) -> Result<Self> {
        let keys = match names {
            Some(names) => {
                names.count_in(budget)?;
                Numbered::Names(names)
            }
            None => {
                let mut table = Table::<Ids>::default();
                table.count_in(budget)?;
                Numbered::Ids(table)
            }
        };
        Ok(Self {
            budget: budget.clone(),
            keys,
            numbers: Vec::new(),
            parents: Segments::default(),
            held: budget.reserve(0, "the components")?,
            pairs: 0,
            threads,
        })
    }

    /// Adds all pairs of a source, which a thread of its own reads.
    ///
    /// # Errors
    /// The source's; a budget error; where it is cancelled.
    pub fn add_source(&mut self, source: &mut dyn EdgeSource, cancel: &Cancel) -> Result<()> {
        source.keep_within(self.budget.limit());
        let _held = self.budget.reserve(source.held_bytes(), "the edges that are being read")?;
        // Those without an edge are components of their own.
        let pairs = self.pairs;
        if let Some(listed) = source.vertices()? {
            self.add_ids(&listed, &listed)?;
        } else if let Some(vertices) = source.size_hint().vertices {
            for first in (0..vertices).step_by(STEP) {
                let counted: Vec<u64> = (first..vertices.min(first + STEP as u64)).collect();
                self.add_ids(&counted, &counted)?;
            }
        }
        self.pairs = pairs;
        visit_source(source, |batch| {
            cancel.check("find components")?;
            self.add(batch)
        })
    }

    /// Adds the pairs of a batch, of ids or of numbers of names.
    ///
    /// # Errors
    /// A budget error.
    pub fn add(&mut self, batch: &EdgeBatch) -> Result<()> {
        match (&batch.ends, &self.keys) {
            (Endpoints::U32 { src, dst }, Numbered::Names(names)) => {
                let count = names.count();
                self.grow(count)?;
                self.pairs += src.len() as u64;
                join_all(&mut self.parents, src.len(), |i| [src[i], dst[i]]);
                Ok(())
            }
            (Endpoints::U32 { src, dst }, _) => self.add_ids(src, dst),
            (Endpoints::U64 { src, dst }, _) => self.add_ids(src, dst),
        }
    }

    fn add_ids<I: Copy + Into<u64> + Sync>(&mut self, src: &[I], dst: &[I]) -> Result<()> {
        let Numbered::Ids(table) = &mut self.keys else {
            return Err(Error::new(ErrorKind::Input, "find components")
                .expected("numbers of names, of 32 bits")
                .got("ids of 64 bits"));
        };
        self.numbers.resize(2 * src.len(), 0);
        let end = |at: usize| {
            let id = if at.is_multiple_of(2) { src[at / 2] } else { dst[at / 2] }.into();
            (Ids::hash(id), id)
        };
        number(table, self.threads, end, &mut self.numbers)?;
        let count = table.keys().count();
        self.grow(count)?;
        self.pairs += src.len() as u64;
        let ends = self.numbers.as_chunks::<2>().0;
        join_all(&mut self.parents, ends.len(), |i| ends[i]);
        Ok(())
    }

    /// Has a root of its own for each number below `count` that has none yet.
    fn grow(&mut self, count: usize) -> Result<()> {
        while self.parents.len() + self.parents.room() < count {
            // As many bytes again for what comes out.
            let bytes = 2 * Segments::<u32>::SEGMENT_BYTES;
            self.held.join(self.budget.reserve(bytes, "the components")?);
            self.parents.grow()?;
        }
        (self.parents.len()..count).for_each(|number| self.parents.push(number as u32));
        Ok(())
    }

    /// The components of all pairs.
    pub fn finish(self) -> Found {
        let mut roots = Vec::with_capacity(self.parents.len());
        for part in self.parents.into_parts() {
            // A parent is not larger than its children: its own root is known already.
            for &parent in &part[..part.len().min(roots.capacity() - roots.len())] {
                let of_parent = roots.get(parent as usize).copied();
                roots.push(of_parent.unwrap_or(parent));
            }
        }
        let mut sizes = vec![0u32; roots.len()];
        roots.iter().for_each(|&root| sizes[root as usize] += 1);
        let components = sizes.iter().filter(|&&size| size > 0).count() as u64;
        let largest = sizes.iter().copied().max().unwrap_or(0).into();
        let mut least = sizes;
        least.iter_mut().zip(0..).for_each(|(least, v)| *least = v);
        let keys = match self.keys {
            Numbered::Ids(mut table) => {
                let ids = table.take().into_all();
                find_least(&roots, &mut least, |a, b| ids[a] < ids[b]);
                FoundKeys::Ids(ids)
            }
            Numbered::Names(names) => {
                let texts = names.lock().take();
                find_least(&roots, &mut least, |a, b| texts.get(a) < texts.get(b));
                let (text, ends) = texts.into_all();
                FoundKeys::Names(text, ends)
            }
        };
        roots.iter_mut().for_each(|root| *root = least[*root as usize]);
        Found { keys, least: roots, pairs: self.pairs, components, largest }
    }
}

/// Makes `least` of every root the least of its numbers, by `is_less`.
fn find_least(roots: &[u32], least: &mut [u32], is_less: impl Fn(usize, usize) -> bool) {
    for (v, &root) in roots.iter().enumerate() {
        let so_far = &mut least[root as usize];
        if is_less(v, *so_far as usize) {
            *so_far = v as u32;
        }
    }
}

/// Joins the components of both numbers of each of `count` pairs.
fn join_all(parents: &mut Segments<u32>, count: usize, pair: impl Fn(usize) -> [u32; 2]) {
    for i in 0..count {
        if i + AHEAD < count {
            pair(i + AHEAD).into_iter().for_each(|number| parents.prefetch(number as usize));
        }
        let [a, b] = pair(i);
        join(parents, a, b);
    }
}

/// Joins the components of two numbers.
#[inline]
fn join(parents: &mut Segments<u32>, a: u32, b: u32) {
    let (a, b) = (root(parents, a), root(parents, b));
    if a != b {
        parents.set(a.max(b) as usize, a.min(b));
    }
}

/// The root of a number; every other number on the way is brought nearer to it.
#[inline]
fn root(parents: &mut Segments<u32>, mut v: u32) -> u32 {
    loop {
        let parent = parents.get(v as usize);
        let next = parents.get(parent as usize);
        if parent == next {
            return parent;
        }
        parents.set(v as usize, next);
        v = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::hash::Counter;

    fn found(pairs: &[(u64, u64)]) -> (Vec<u64>, Vec<u32>, u64, u64) {
        let mut components = Components::new(None, 2, &Budget::new(1 << 25)).unwrap();
        for part in pairs.chunks(7) {
            let (src, dst) = part.iter().copied().unzip();
            let batch = EdgeBatch { ends: Endpoints::U64 { src, dst }, weights: None };
            components.add(&batch).unwrap();
        }
        let found = components.finish();
        let FoundKeys::Ids(ids) = found.keys else { panic!("ids were given") };
        assert_eq!(found.pairs, pairs.len() as u64);
        (ids, found.least, found.components, found.largest)
    }

    #[test]
    fn pairs_are_joined_and_the_least_id_stands_for_a_component() {
        let (ids, least, components, largest) =
            found(&[(9, 7), (1 << 40, 3), (7, 5), (8, 8), (3, 4)]);
        assert_eq!(ids, [9, 7, 1 << 40, 3, 5, 8, 4]);
        assert_eq!(least, [4, 4, 3, 3, 4, 5, 3]);
        assert_eq!((components, largest), (3, 3));
    }

    #[test]
    fn random_pairs_give_what_labels_that_spread_give() {
        for seed in 0..20 {
            let words = Counter::new(seed, 1);
            let pairs: Vec<(u64, u64)> = (0..300)
                .map(|i| (words.below(2 * i, 400) * 977, words.below(2 * i + 1, 400) * 977))
                .collect();
            let mut label: std::collections::BTreeMap<u64, u64> =
                pairs.iter().flat_map(|&(a, b)| [(a, a), (b, b)]).collect();
            for _ in 0..label.len() {
                for (a, b) in &pairs {
                    let least = label[a].min(label[b]);
                    label.insert(*a, least);
                    label.insert(*b, least);
                }
            }
            let (ids, least, components, _) = found(&pairs);
            let mine = ids.iter().zip(&least).map(|(&id, &at)| (id, ids[at as usize])).collect();
            assert_eq!(label, mine, "seed {seed}");
            let roots = label.iter().filter(|(id, label)| id == label).count();
            assert_eq!(components, roots as u64);
        }
    }

    #[test]
    fn too_little_memory_is_refused() {
        let mut components = Components::new(None, 2, &Budget::new(100_000)).unwrap();
        let src: Vec<u64> = (0..10_000).collect();
        let batch = EdgeBatch { ends: Endpoints::U64 { dst: src.clone(), src }, weights: None };
        assert_eq!(components.add(&batch).unwrap_err().kind(), ErrorKind::Budget);
    }
}
