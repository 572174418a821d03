//! Names of vertices: texts that are numbered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::names::hash;
use tiergraph_mem::Budget;

use super::{Keys, Table};

/// Bytes by which the texts grow at least.
const TEXT_STEP: usize = 1 << 20;
/// Names by which the list of their ends grows at least.
const STEP: usize = 1 << 12;

/// The names of a graph's vertices, shared by those who read edges and the build that writes them.
#[derive(Clone, Default)]
pub struct Names(Arc<Shared>);

#[derive(Default)]
struct Shared {
    table: Mutex<Table<Texts>>,
    /// Whether edges come again after the build.
    stays: AtomicBool,
}

impl Names {
    /// Counts the memory of names in `budget` from now on.
    ///
    /// # Errors
    /// A budget error where what there is does not fit.
    pub fn count_in(&self, budget: &Budget) -> Result<()> {
        self.lock().count_in(budget)
    }

    /// Keeps the names when a build has written them, as its edges are read again.
    pub fn stay(&self) {
        self.0.stays.store(true, Ordering::Relaxed);
    }

    /// Appends the number of each of `texts` to `numbers`; a new text has the next number.
    ///
    /// # Errors
    /// A budget error; an input error for more names than a graph has vertices, and for bytes that are no UTF-8.
    pub fn number<'t>(
        &self,
        texts: impl Iterator<Item = &'t [u8]>,
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        self.number_hashed(texts.map(|text| (hash(text), text)), numbers)
    }

    /// As [`number`](Self::number), of texts with their hashes.
    pub(crate) fn number_hashed<'t>(
        &self,
        texts: impl Iterator<Item = (u64, &'t [u8])>,
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        let mut table = self.lock();
        let before = table.keys().text.len();
        table.number(texts, numbers)?;
        // Names are whole, so that those that are new are UTF-8 together if each is.
        let new = &table.keys().text[before..];
        std::str::from_utf8(new).map(drop).map_err(|error| {
            let at = error.valid_up_to();
            let shown =
                String::from_utf8_lossy(&new[at.saturating_sub(20)..new.len().min(at + 20)]);
            Error::new(ErrorKind::Input, "use the names of vertices")
                .expected("text in UTF-8")
                .got(format!("`{}`", shown.escape_debug()))
        })
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

/// Texts, one after the other.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) text: Vec<u8>,
    /// Where each ends in `text`.
    pub(crate) ends: Vec<u64>,
}

impl Texts {
    /// The text with this number.
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start as usize..self.ends[number] as usize]
    }

    fn text_growth(&self, keys: &[(u64, &[u8])]) -> usize {
        let new: usize = keys.iter().map(|(_, text)| text.len()).sum();
        let room = self.text.capacity() - self.text.len();
        if room >= new { 0 } else { (self.text.len() / 4).max(TEXT_STEP).max(new) }
    }

    fn ends_growth(&self, keys: &[(u64, &[u8])]) -> usize {
        let room = self.ends.capacity() - self.ends.len();
        if room >= keys.len() { 0 } else { (self.ends.len() / 4).max(STEP) }
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
        self.ends.len()
    }

    #[inline]
    fn is(&self, number: usize, text: &[u8]) -> bool {
        self.get(number) == text
    }

    fn hash_of(&self, number: usize) -> u64 {
        hash(self.get(number))
    }

    fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.ends.push(self.text.len() as u64);
    }

    fn bytes(&self) -> u64 {
        (self.text.capacity() + 8 * self.ends.capacity()) as u64
    }

    fn growth(&self, keys: &[(u64, &[u8])]) -> u64 {
        (self.text_growth(keys) + 8 * self.ends_growth(keys)) as u64
    }

    fn grow(&mut self, keys: &[(u64, &[u8])]) {
        self.text.reserve_exact(self.text_growth(keys));
        self.ends.reserve_exact(self.ends_growth(keys));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(names: &Names, texts: &[String]) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        names.number(texts.iter().map(String::as_bytes), &mut numbers)?;
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
        assert_eq!(numbers(&names, &[String::new()]).unwrap(), [30_000]);
    }

    #[test]
    fn names_count_in_the_budget_and_are_refused_where_they_do_not_fit() {
        let (names, budget) = (Names::default(), Budget::new(3 << 20));
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
        let error = names.number([&b"a\xffb"[..]].into_iter(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("expected text in UTF-8"), "{error}");
    }
}
