//! Reads a graph through the format's readers, in the user's ids.

use std::path::Path;

use tiergraph_core::{Cancel, Silent};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::manifest::Order;
use tiergraph_format::raw::{Ids, RawBlock, WeightSlice};
use tiergraph_format::rows::{PAGE_BYTES, RowsIndex, RowsPage};
use tiergraph_format::tiles::{TileOptions, TilesBlock, TilesIndex, for_each_step};
use tiergraph_format::verify::verify;

/// Arcs with weights, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Arcs(pub Vec<(u64, u64, f64)>);

impl Arcs {
    pub fn of(mut arcs: Vec<(u64, u64, f64)>) -> Self {
        arcs.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        Self(arcs)
    }

    pub fn unweighted(&self) -> Self {
        Self(self.0.iter().map(|arc| (arc.0, arc.1, 0.0)).collect())
    }
}

pub struct ReadBack {
    pub dir: GraphDir,
    pub user_ids: Vec<u64>,
    order: Vec<u64>,
}

impl ReadBack {
    /// Opens a graph after every checksum was found right.
    pub fn open(path: &Path) -> Self {
        let report = verify(path, &Silent, &Cancel::default()).unwrap();
        assert_eq!(report.damage, []);
        let dir = GraphDir::open(path).unwrap();
        let n = dir.manifest().vertices;
        let mut graph = Self { dir, user_ids: Vec::new(), order: (0..n).collect() };
        if graph.has("user.ids") {
            graph.user_ids = graph.flat("user.ids");
        }
        if graph.dir.manifest().order == Order::Degree {
            graph.order = match graph.dir.manifest().id_width {
                4 => graph.flat::<u32>("order.ids").into_iter().map(u64::from).collect(),
                _ => graph.flat("order.ids"),
            };
        }
        graph
    }

    fn has(&self, name: &str) -> bool {
        self.dir.manifest().files.contains_key(name)
    }

    fn flat<T: flat::Element>(&self, name: &str) -> Vec<T> {
        let path = &self.dir.paths(name).unwrap()[0];
        flat::read(path, self.dir.entry(name).unwrap()).unwrap()
    }

    /// The user's id of a vertex.
    fn user(&self, vertex: u64) -> u64 {
        let at = self.order[vertex as usize];
        self.user_ids.get(at as usize).copied().unwrap_or(at)
    }

    /// The blocks of a file, stripes put together again, each at an aligned address.
    fn blocks(&self, name: &str) -> Vec<Vec<u64>> {
        let entry = self.dir.entry(name).unwrap();
        let size = self.dir.manifest().block_bytes as usize;
        let paths = self.dir.paths(name).unwrap();
        let stripes: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        let block = |i: usize| {
            let at = i / stripes.len() * size;
            let stripe = &stripes[i % stripes.len()];
            let bytes = &stripe[at..stripe.len().min(at + size)];
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        (0..entry.blocks as usize).map(block).collect()
    }

    /// Every file of adjacency with the arcs that it holds, as source and target.
    pub fn adjacency(&self) -> Vec<(String, Arcs)> {
        let names = ["tiles.blocks", "out.rows", "in.rows", "out.blocks", "in.blocks"];
        let present = names.iter().filter(|name| self.has(name));
        let read = |name: &str| {
            let arcs = match name {
                "tiles.blocks" => self.tiles(),
                "out.rows" | "in.rows" => self.rows(name),
                _ => self.raw(name),
            };
            let turned = |arc: (u64, u64, f64)| match name.starts_with("in") {
                true => (self.user(arc.1), self.user(arc.0), arc.2),
                false => (self.user(arc.0), self.user(arc.1), arc.2),
            };
            (name.to_string(), Arcs::of(arcs.into_iter().map(turned).collect()))
        };
        present.map(|name| read(name)).collect()
    }

    fn tiles(&self) -> Vec<(u64, u64, f64)> {
        let manifest = self.dir.manifest();
        let options = TileOptions::of(manifest).unwrap();
        let once = manifest.tiles.unwrap().stored_once;
        let words: Vec<u64> = self.flat("tiles.index");
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut index = bytes.chunks(TilesIndex::BYTES).map(|b| TilesIndex::from_bytes(b).unwrap());
        let mut arcs = Vec::new();
        for (number, block) in self.blocks("tiles.blocks").iter().enumerate() {
            let bytes = bytemuck::cast_slice(block);
            for segment in TilesBlock::parse(bytes, &options).unwrap().segments() {
                let segment = segment.unwrap();
                let entry = index.next().unwrap();
                assert_eq!((entry.block as usize, entry.row_base), (number, segment.row_base));
                assert!(entry.is_intact(&segment));
                let before = arcs.len();
                for_each_step(&segment, &options, |step| {
                    for (i, (row, column)) in step.rows.iter().zip(step.columns).enumerate() {
                        let row = segment.row_base + u64::from(*row);
                        let column = segment.column_base + u64::from(*column);
                        let weight = step.weights.get(i).copied().unwrap_or(0.0);
                        arcs.push((column, row, weight));
                    }
                })
                .unwrap();
                assert_eq!(arcs.len() - before, entry.arcs as usize);
            }
        }
        assert!(index.next().is_none());
        if once {
            assert!(arcs.iter().all(|arc| arc.0 <= arc.1), "an edge is stored with row < column");
            let other = |arc: &(u64, u64, f64)| (arc.1, arc.0, arc.2);
            let more: Vec<_> = arcs.iter().filter(|arc| arc.0 != arc.1).map(other).collect();
            arcs.extend(more);
        }
        arcs
    }

    fn rows(&self, name: &str) -> Vec<(u64, u64, f64)> {
        let index = RowsIndex::from_words(&self.flat::<u64>(&format!("{name}.index"))).unwrap();
        let blocks = self.blocks(name);
        let pages: Vec<&[u8]> =
            blocks.iter().flat_map(|b| bytemuck::cast_slice(b).chunks(PAGE_BYTES)).collect();
        let mut arcs = Vec::new();
        for vertex in 0..self.dir.manifest().vertices {
            let mut neighbors = Vec::new();
            for page in index.pages_of(vertex) {
                let page = RowsPage::parse(pages[page as usize]).unwrap();
                page.neighbors(vertex, &mut neighbors).unwrap();
            }
            arcs.extend(neighbors.into_iter().map(|neighbor| (vertex, neighbor, 0.0)));
        }
        arcs
    }

    fn raw(&self, name: &str) -> Vec<(u64, u64, f64)> {
        let mut arcs = Vec::new();
        for words in self.blocks(name) {
            let block = RawBlock::parse(bytemuck::cast_slice(&words)).unwrap();
            for (vertex, neighbors) in block.iter() {
                let ids: Vec<u64> = match neighbors.ids {
                    Ids::U32(ids) => ids.iter().map(|&id| id.into()).collect(),
                    Ids::U64(ids) => ids.to_vec(),
                };
                for (i, id) in ids.into_iter().enumerate() {
                    let weight = match neighbors.weights {
                        WeightSlice::None => 0.0,
                        WeightSlice::F32(weights) => weights[i].into(),
                        WeightSlice::F64(weights) => weights[i],
                    };
                    arcs.push((vertex, id, weight));
                }
            }
        }
        arcs
    }

    /// Compares the degrees with what any file of adjacency holds.
    pub fn check_degrees(&self) {
        let place: std::collections::HashMap<u64, usize> =
            (0..self.order.len()).map(|v| (self.user(v as u64), v)).collect();
        for (_, arcs) in self.adjacency() {
            let (mut out, mut into) = (vec![0u32; place.len()], vec![0u32; place.len()]);
            for arc in &arcs.0 {
                out[place[&arc.0]] += 1;
                into[place[&arc.1]] += 1;
            }
            assert_eq!(self.flat::<u32>("out.degrees"), out);
            if self.dir.manifest().directed {
                assert_eq!(self.flat::<u32>("in.degrees"), into);
            }
        }
        assert_eq!(self.has("in.degrees"), self.dir.manifest().directed);
    }
}
