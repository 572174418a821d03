//! Runs: memory for the words of parts whose sizes are not known yet.
//!
//! A part's words lie in runs, each of which knows the one before it: a word is written once, and
//! copied once, by the run, when all are there. To count the words of each part first takes as long
//! as to write them.

use tiergraph_core::{Error, ErrorKind, Result};

use super::load::Split;
use super::sorted::Sorted;
use crate::build::array::Array;
use crate::build::partition::records::Records;

/// The longest run, as a power of two: a copy is worth its call, and little is left empty.
const RUN_LOG2: u32 = 6;
const RUN: usize = 1 << RUN_LOG2;

/// Runs of words, with their weights.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    words: Array<u32>,
    weights: Array<f64>,
    /// Words of a run, as a power of two.
    run_log2: u32,
    /// The run before each in its part; 0, which holds nothing, before the first.
    before: Vec<u32>,
    /// For each part, where its next word goes; the end of its last run, if that is full.
    ends: Vec<u32>,
}

impl Runs {
    /// Empties `parts` parts, for `arcs` arcs in all; there will never be more than `most`.
    ///
    /// # Errors
    /// An input error for more arcs than 32 bits count.
    pub(crate) fn begin(
        &mut self,
        parts: usize,
        arcs: usize,
        most: usize,
        weighted: bool,
    ) -> Result<()> {
        // As many words may be left empty as there are arcs.
        let begun = parts.clamp(1, arcs.max(1));
        self.run_log2 = (arcs / begun).max(1).ilog2().min(RUN_LOG2);
        let last = arcs as u64 + ((begun as u64 + 1) << self.run_log2);
        if last > u64::from(u32::MAX) {
            return Err(too_many(arcs));
        }
        let room = 2 * most.max(arcs) + (1 << RUN_LOG2);
        self.words.make_room(room)?;
        if weighted {
            self.weights.make_room(room)?;
        }
        self.before.clear();
        self.before.push(0);
        self.ends.clear();
        self.ends.resize(parts, 0);
        Ok(())
    }

    /// Splits the keys of records, and adds those of parts from `first_part` on.
    pub(crate) fn put<S: Split>(
        &mut self,
        split: &S,
        records: &Records<'_>,
        first_part: u32,
        weighted: bool,
    ) {
        match weighted {
            true => self.put_all::<true, S>(split, records, first_part),
            false => self.put_all::<false, S>(split, records, first_part),
        }
    }

    #[inline(always)]
    fn put_all<const WEIGHTED: bool, S: Split>(
        &mut self,
        split: &S,
        records: &Records<'_>,
        first_part: u32,
    ) {
        let Self { words, weights, run_log2, before, ends } = self;
        let (words, weights) = (&mut words[..], &mut weights[..]);
        let in_run = (1u32 << *run_log2) - 1;
        records.for_each_key(|key, bytes| {
            let (part, word) = split.split(key);
            // A part before the wanted ones wraps around to a large number.
            let Some(end) = ends.get_mut(part.wrapping_sub(first_part) as usize) else { return };
            if *end & in_run == 0 {
                before.push((*end >> *run_log2).saturating_sub(1));
                *end = (before.len() as u32 - 1) << *run_log2;
            }
            words[*end as usize] = word;
            if WEIGHTED {
                weights[*end as usize] = records.record.weight(bytes);
            }
            *end += 1;
        });
    }

    /// Appends the words of a part to `sorted`, after those of the parts before.
    pub(crate) fn copy(&self, part: usize, sorted: &mut Sorted) {
        let (mut at, mut end) = (sorted.len(), self.ends[part] as usize);
        while end > 0 {
            let run = (end - 1) >> self.run_log2;
            let begin = run << self.run_log2;
            let to = at..at + (end - begin);
            if sorted.weighted {
                sorted.weights[to.clone()].copy_from_slice(&self.weights[begin..end]);
            }
            let from = &self.words[begin..end];
            match (sorted.words[to.clone()].first_chunk_mut::<RUN>(), from.first_chunk::<RUN>()) {
                // No run is longer, and a fixed length is copied without a call.
                (Some(to), Some(from)) => *to = *from,
                _ => sorted.words[to.clone()].copy_from_slice(from),
            }
            at = to.end;
            end = match self.before[run] {
                0 => 0,
                before => (before as usize + 1) << self.run_log2,
            };
        }
        sorted.ends.push(at as u32);
    }
}

/// The error of more arcs than positions of 32 bits address.
fn too_many(arcs: usize) -> Error {
    Error::new(ErrorKind::Input, "sort the arcs of rows that belong together")
        .expected("fewer than 4294967296 with what runs leave empty")
        .got(arcs)
        .hint("remove duplicate edges before building")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_arcs_than_places_are_refused_before_memory_is_asked_for() {
        let error = Runs::default().begin(1000, u32::MAX as usize, 0, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot sort the arcs of rows that belong together: expected fewer than 4294967296 with \
             what runs leave empty, got 4294967295\n\nhint: remove duplicate edges before building"
        );
    }
}
