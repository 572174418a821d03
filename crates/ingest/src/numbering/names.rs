//! Names of vertices: texts that are numbered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::names::hash;
use tiergraph_mem::{Array, Budget, Segments, prefetch_all};

use super::{Keys, Table, number, stored};

/// Bits of a name's place that say how long it is.
const LEN_BITS: u32 = 21;
/// Bytes of the longest name.
const LONGEST: usize = (1 << LEN_BITS) - 1;

/// The names of a graph's vertices, shared by those who read edges and the build that writes them.
#[derive(Clone, Default)]
pub struct Names(Arc<Shared>);

#[derive(Default)]
struct Shared {
    table: Mutex<Table<Texts>>,
    /// Whether edges come again after the build.
    stays: AtomicBool,
    /// Whether they are all: those of a graph that is there.
    closed: AtomicBool,
}

impl Names {
    /// Counts the memory of names in `budget` from now on.
    ///
    /// # Errors
    /// A budget error where what there is does not fit.
    pub fn count_in(&self, budget: &Budget) -> Result<()> {
        self.lock().count_in(budget)
    }

    /// The names of the graph in `dir`, whose numbers are its ids; there will be no others. Their memory is counted
    /// in `budget`.
    ///
    /// # Errors
    /// A budget error where they do not fit; names that cannot be read, or are damaged.
    pub fn of(dir: &GraphDir, budget: &Budget) -> Result<Self> {
        let names = Self::default();
        names.count_in(budget)?;
        stored::read(dir, |first, texts| {
            let mut numbers = vec![0; texts.len()];
            names.number(1, |at| texts[at], &mut numbers)?;
            let are_new = numbers.iter().zip(first..).all(|(&number, id)| u64::from(number) == id);
            are_new.then_some(()).ok_or_else(|| stored::damaged(dir))
        })?;
        names.0.closed.store(true, Ordering::Relaxed);
        Ok(names)
    }

    /// The budget that their memory is counted in, if it is.
    pub fn budget(&self) -> Option<Budget> {
        self.lock().budget()
    }

    /// Keeps the names when a build has written them, as its edges are read again.
    pub fn stay(&self) {
        self.0.stays.store(true, Ordering::Relaxed);
    }

    /// Replaces `numbers` by the numbers of texts: `text` of 0 and so on. A new text has the next number. Look-ups
    /// are shared by `threads`.
    ///
    /// # Errors
    /// A budget error; an input error for more names than a graph has vertices, and for bytes that are no UTF-8.
    pub fn number<'t>(
        &self,
        threads: usize,
        text: impl Fn(usize) -> &'t [u8] + Sync,
        numbers: &mut [u32],
    ) -> Result<()> {
        let hashed = |at| {
            let text = text(at);
            (hash(text), text)
        };
        self.number_hashed(threads, hashed, numbers)
    }

    /// As [`number`](Self::number), of texts with their hashes.
    pub(crate) fn number_hashed<'t>(
        &self,
        threads: usize,
        text: impl Fn(usize) -> (u64, &'t [u8]) + Sync,
        numbers: &mut [u32],
    ) -> Result<()> {
        let mut table = self.lock();
        let before = table.keys().count();
        number(&mut table, threads, text, numbers)?;
        let keys = table.keys();
        if self.0.closed.load(Ordering::Relaxed) && keys.count() > before {
            return Err(Error::new(ErrorKind::Input, "find vertex")
                .object(String::from_utf8_lossy(keys.get(before)))
                .expected(format!("one of the graph's {before} names"))
                .hint("give the edges that the graph was built from"));
        }
        let mut new = (before..keys.count()).map(|new| keys.get(new));
        let broken = new.find(|name| name.is_empty() || std::str::from_utf8(name).is_err());
        let Some(broken) = broken else { return Ok(()) };
        let expected = if broken.is_empty() { "text" } else { "text in UTF-8" };
        let shown = String::from_utf8_lossy(broken).escape_debug().to_string();
        Err(Error::new(ErrorKind::Input, "use the names of vertices")
            .expected(expected)
            .got(format!("`{shown}`")))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().keys().count()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Table<Texts>> {
        // Numbers that were given stay true, whatever happened after.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the names, unless they [`stay`](Self::stay).
    pub(crate) fn written(&self) {
        if !self.0.stays.load(Ordering::Relaxed) {
            self.lock().clear();
        }
    }
}

/// Texts of at most [`LONGEST`] bytes.
#[derive(Default)]
pub(crate) struct Texts {
    text: Segments<u8>,
    /// Where each begins in `text`, and how long it is.
    places: Segments<u64>,
}

impl Texts {
    /// The text with this number.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let place = self.places.get(number);
        self.text.slice((place >> LEN_BITS) as usize, place as usize & LONGEST)
    }

    /// Calls `visit` with all texts one after the other, a part at a time, and where each of these ends.
    pub(crate) fn each_part(
        &self,
        mut visit: impl FnMut(&[u8], &[u64]) -> Result<()>,
    ) -> Result<()> {
        const PART: usize = 1 << 16;
        let (mut text, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        for number in 0..self.count() {
            let own = self.get(number);
            text.extend_from_slice(own);
            end += own.len() as u64;
            ends.push(end);
            if ends.len() == PART || text.len() >= PART * 16 {
                visit(&text, &ends)?;
                text.clear();
                ends.clear();
            }
        }
        visit(&text, &ends)
    }
}

impl Texts {
    /// All of them, one after the other, and where each ends.
    pub(crate) fn into_all(self) -> (Vec<u8>, Vec<u64>) {
        let Self { text, places } = self;
        let (mut all, mut ends) =
            (Vec::with_capacity(text.len()), Vec::with_capacity(places.len()));
        let (mut parts, mut part, mut number) = (text.into_parts(), Array::default(), 0);
        for number_of_part in 0.. {
            while let Some(place) = (number < places.len()).then(|| places.get(number)) {
                let (start, len) = ((place >> LEN_BITS) as usize, place as usize & LONGEST);
                if len > 0 && start / Segments::<u8>::SEGMENT >= number_of_part {
                    break;
                }
                if len > 0 {
                    all.extend_from_slice(&part[start % Segments::<u8>::SEGMENT..][..len]);
                }
                ends.push(all.len() as u64);
                number += 1;
            }
            let Some(next) = parts.next() else { break };
            part = next;
        }
        (all, ends)
    }
}

impl Keys for Texts {
    type Key<'k> = &'k [u8];

    const WHAT: &'static str = "the names of vertices";

    #[inline]
    fn hash(text: &[u8]) -> u64 {
        hash(text)
    }

    fn count(&self) -> usize {
        self.places.len()
    }

    #[inline]
    fn is(&self, number: usize, text: &[u8]) -> bool {
        self.get(number) == text
    }

    #[inline]
    fn prefetch_place(&self, number: usize) {
        self.places.prefetch(number);
    }

    #[inline]
    fn prefetch(&self, number: usize) {
        prefetch_all(self.get(number));
    }

    fn hash_of(&self, number: usize) -> u64 {
        hash(self.get(number))
    }

    #[inline]
    fn push(&mut self, text: &[u8]) {
        let start = self.text.push_all(text);
        self.places.push((start as u64) << LEN_BITS | text.len() as u64);
    }

    fn bytes(&self) -> u64 {
        self.text.bytes() + self.places.bytes()
    }

    fn growth(&self, keys: &[(u64, &[u8])]) -> u64 {
        let places = if self.places.room() >= keys.len() { 0 } else { 1 };
        (self.segments(keys) + places) * Segments::<u8>::SEGMENT_BYTES
    }

    fn grow(&mut self, keys: &[(u64, &[u8])]) -> Result<()> {
        if let Some((_, long)) = keys.iter().find(|(_, text)| text.len() > LONGEST) {
            return Err(Error::new(ErrorKind::Input, "use the names of vertices")
                .expected(format!("at most {LONGEST} bytes each"))
                .got(format!("one of {}", long.len())));
        }
        (0..self.segments(keys)).try_for_each(|_| self.text.grow())?;
        if self.places.room() < keys.len() {
            self.places.grow()?;
        }
        Ok(())
    }
}

impl Texts {
    /// Segments of text that `keys` may need more.
    fn segments(&self, keys: &[(u64, &[u8])]) -> u64 {
        let longest = keys.iter().map(|(_, text)| text.len()).max().unwrap_or(0);
        let new: usize = keys.iter().map(|(_, text)| text.len()).sum();
        let room = self.text.room();
        // At the end of a segment, less than the longest is skipped.
        let segments = new / (Segments::<u8>::SEGMENT - longest.min(LONGEST) + 1) + 1;
        let most = new + segments * longest;
        if room >= most { 0 } else { segments as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(names: &Names, texts: &[String]) -> Result<Vec<u32>> {
        let mut numbers = vec![0; texts.len()];
        names.number(2, |at| texts[at].as_bytes(), &mut numbers)?;
        Ok(numbers)
    }

    #[test]
    fn a_name_has_one_number_however_often_it_comes() {
        let names = Names::default();
        let texts: Vec<String> = (0..40_000).map(|i| format!("name {}", i % 30_000)).collect();
        let expected: Vec<u32> = (0..40_000).map(|i| i % 30_000).collect();
        assert!(numbers(&names, &texts).unwrap() == expected);
        assert!(numbers(&names, &texts).unwrap() == expected);
        assert_eq!(names.count(), 30_000);
        assert_eq!(names.lock().keys().get(12_345), b"name 12345");
        let error = numbers(&names, &[String::new()]).unwrap_err();
        assert!(error.to_string().contains("expected text, got ``"), "{error}");
    }

    #[test]
    fn names_count_in_the_budget_and_are_refused_where_they_do_not_fit() {
        let (names, budget) = (Names::default(), Budget::new(7 << 20));
        names.count_in(&budget).unwrap();
        let texts = |from| (from..from + 1000).map(|i| format!("{i:0100}")).collect::<Vec<_>>();
        numbers(&names, &texts(0)).unwrap();
        assert!(budget.used() >= 1000 * 116, "{}", budget.used());
        let error = (1..100).find_map(|i| numbers(&names, &texts(i * 1000)).err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::Budget);
        assert!(error.to_string().contains("the names of vertices"), "{error}");
        names.written();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let names = Names::default();
        let error = names.number(1, |_| &b"a\xffb"[..], &mut [0]).unwrap_err();
        assert!(error.to_string().contains("expected text in UTF-8"), "{error}");
    }
}
