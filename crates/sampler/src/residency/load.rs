//! Loading the neighbours that are to stay in memory.

use tiergraph_cache::RankedSet;
use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::rows::RowsPage;
use tiergraph_graph::{Graph, PageReader};
use tiergraph_mem::{AlignedBuf, Array, PAGE_BYTES};

use crate::residency::topology::{Store, Topology};

impl Topology {
    /// Reads every page and unpacks its neighbours.
    pub(crate) fn decode_all(&self, graph: &Graph) -> Result<Store> {
        let mut neighbors: Array<u32> = Array::zeroed(self.offsets().total() as usize)?;
        let pages: Vec<u64> = (0..self.map().pages()).collect();
        let mut list = Vec::new();
        let mut found = 0;
        self.for_each_page(graph, &pages, |_, bytes| {
            let page = RowsPage::parse(bytes)?;
            for vertex in page.vertices() {
                let piece = page.piece(vertex)?;
                if piece.len == 0 {
                    continue;
                }
                let vertex = self.expanded(vertex)?;
                let all = self.offsets().arcs(vertex);
                if piece.degree != all.end - all.start || piece.first + piece.len > piece.degree {
                    let expected = "as many neighbours as its degree";
                    return Err(self.damaged(vertex, expected, piece.degree));
                }
                list.clear();
                page.neighbors(vertex.into(), &mut list)?;
                let at = (all.start + piece.first) as usize;
                for (slot, &neighbor) in neighbors[at..at + list.len()].iter_mut().zip(&list) {
                    *slot = self.neighbor(vertex, neighbor)?;
                }
                found += list.len() as u64;
            }
            Ok(())
        })?;
        if found != self.offsets().total() {
            let expected = format!("{} arcs", self.offsets().total());
            return Err(Error::new(ErrorKind::Format, "read the rows of")
                .object(self.name())
                .expected(expected)
                .got(found));
        }
        Ok(Store::Decoded(neighbors))
    }

    /// Reads the pages `kept`, which stay in memory as they are.
    pub(crate) fn load(&self, graph: &Graph, kept: &[u64]) -> Result<Store> {
        let set = RankedSet::new(self.map().pages(), kept.iter().copied());
        let mut bytes = AlignedBuf::zeroed(set.len() as usize * PAGE_BYTES)?;
        let pages: Vec<u64> = set.iter().collect();
        self.for_each_page(graph, &pages, |number, page| {
            if let Some(rank) = set.rank(number) {
                let at = rank as usize * PAGE_BYTES;
                bytes[at..at + PAGE_BYTES].copy_from_slice(page);
            }
            Ok(())
        })?;
        Ok(Store::Pages { set, bytes })
    }

    /// Reads and checks `pages`, which ascend.
    fn for_each_page(
        &self,
        graph: &Graph,
        pages: &[u64],
        mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut reader = PageReader::new(graph)?;
        let each = |number: u64, page: &[u8]| {
            self.check(number, page)?;
            visit(number, page)
        };
        reader.read(self.file(), pages, || Ok(false), each).map(|_| ())
    }
}
