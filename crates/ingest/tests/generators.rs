//! The same seed gives the same graph, and the graph is of the model that was asked for.
#![allow(clippy::unwrap_used)]

mod common;

use common::drain;
use tiergraph_ingest::generate::{
    BlockModel, Generated, GeneratorOptions, Model, Rmat, Uniform, WeightRange,
};

const SEED: u64 = 42;

fn edges<M: Model>(model: M, options: GeneratorOptions) -> (Vec<(u64, u64)>, Vec<f64>) {
    drain(&mut Generated::new(model, SEED, options)).unwrap()
}

fn check_determinism<M: Model + Clone>(model: &M) {
    let weights = Some(WeightRange::Unit);
    let reference =
        edges(model.clone(), GeneratorOptions { weights, threads: 1, batch_edges: 1 << 20 });
    assert_eq!(reference.0.len() as u64, model.edges());
    assert!(reference.0.iter().all(|e| e.0.max(e.1) < model.vertices()));
    for (threads, batch_edges) in [(1, 1000), (2, 1 << 20), (3, 777), (2, 1)] {
        if batch_edges == 1 && model.edges() > 5000 {
            continue;
        }
        let options = GeneratorOptions { weights, threads, batch_edges };
        let again = edges(model.clone(), options);
        assert!(again == reference, "{} with {options:?}", model.describe());
    }
}

#[test]
fn threads_and_batches_change_nothing() {
    check_determinism(&Rmat::new(8, 16, Rmat::GRAPH500, SEED).unwrap());
    check_determinism(&Rmat::new(13, 16, Rmat::GRAPH500, SEED).unwrap());
    check_determinism(&Uniform::new(1000, 4321, SEED).unwrap());
    check_determinism(&BlockModel::new(1003, 10, 8.0, 0.8, SEED).unwrap());
}

#[test]
fn seeds_give_the_graphs_they_always_gave() {
    // A graph that somebody wrote down by its seed must stay that graph.
    let rmat = Rmat::new(20, 16, Rmat::GRAPH500, SEED).unwrap();
    let uniform = Uniform::new(1_000_000, 10, SEED).unwrap();
    let blocks = BlockModel::new(1_000_000, 10, 8.0, 0.8, SEED).unwrap();
    assert_eq!([rmat.edge(0), rmat.edge(1_000_000)], [(202_418, 643_734), (900_022, 374_166)]);
    assert_eq!([uniform.edge(0), uniform.edge(9)], [(164_462, 718_545), (570_547, 424_125)]);
    assert_eq!([blocks.edge(0), blocks.edge(9)], [(577_315, 126_115), (195_443, 659_037)]);
    let other = Rmat::new(20, 16, Rmat::GRAPH500, SEED + 1).unwrap();
    assert_ne!(other.edge(0), rmat.edge(0));
}

fn out_degrees(edges: &[(u64, u64)], vertices: u64) -> Vec<u32> {
    let mut degrees = vec![0; vertices as usize];
    edges.iter().for_each(|&(src, _)| degrees[src as usize] += 1);
    degrees.sort_unstable_by(|a, b| b.cmp(a));
    degrees
}

#[test]
fn rmat_is_skewed_and_uniform_is_not() {
    let options = GeneratorOptions::default();
    let share = |degrees: &[u32]| {
        let top: u32 = degrees[..degrees.len() / 100].iter().sum();
        f64::from(top) / f64::from(degrees.iter().sum::<u32>())
    };
    let (rmat, _) = edges(Rmat::new(14, 16, Rmat::GRAPH500, SEED).unwrap(), options);
    let (uniform, _) = edges(Uniform::new(1 << 14, 16 << 14, SEED).unwrap(), options);
    let skewed = share(&out_degrees(&rmat, 1 << 14));
    let even = share(&out_degrees(&uniform, 1 << 14));
    // The heaviest row of a quadtree of 0.76 : 0.24 has 0.76^14 of the edges.
    let hub = f64::from(out_degrees(&rmat, 1 << 14)[0]) / rmat.len() as f64;
    assert!((0.2..0.5).contains(&skewed), "{skewed}");
    assert!(even < 0.03, "{even}");
    assert!((hub / 0.76f64.powi(14) - 1.0).abs() < 0.1, "{hub}");
}

#[test]
fn rmat_ids_say_nothing_about_degrees() {
    let (edges, _) =
        edges(Rmat::new(14, 16, Rmat::GRAPH500, SEED).unwrap(), GeneratorOptions::default());
    let low = edges.iter().filter(|e| e.0 < 1 << 13).count() as f64 / edges.len() as f64;
    // Without a permutation 0.76 of the edges start in the lower half.
    assert!((0.4..0.6).contains(&low), "{low}");
}

#[test]
fn uniform_has_no_self_loops_and_even_targets() {
    let (edges, _) = edges(Uniform::new(10, 100_000, SEED).unwrap(), GeneratorOptions::default());
    assert!(edges.iter().all(|e| e.0 != e.1));
    let mut counts = [0u32; 100];
    edges.iter().for_each(|e| counts[(e.0 * 10 + e.1) as usize] += 1);
    let pairs = counts.iter().filter(|&&count| count > 0);
    // 90 ordered pairs of 1111 each; five standard deviations are 166.
    assert!(pairs.clone().all(|count| count.abs_diff(1111) < 166), "{counts:?}");
    assert_eq!(pairs.count(), 90);
}

#[test]
fn blocks_keep_their_share_of_edges_inside() {
    for (vertices, communities, inside) in [(1003, 10, 0.8), (50, 25, 0.5), (7, 3, 0.0)] {
        let model = BlockModel::new(vertices, communities, 50.0, inside, SEED).unwrap();
        let (edges, _) = edges(model.clone(), GeneratorOptions::default());
        assert!(edges.iter().all(|e| e.0 != e.1 && e.0.max(e.1) < vertices));
        let same = edges.iter().filter(|e| model.community(e.0) == model.community(e.1)).count();
        let (share, n) = (same as f64 / edges.len() as f64, edges.len() as f64);
        let sd = (inside * (1.0 - inside) / n).sqrt();
        assert!((share - inside).abs() <= 5.0 * sd, "{share} of {inside}");
        assert_eq!(common::distinct(&edges) as u64, vertices);
    }
}

#[test]
fn weights_are_in_their_range() {
    let weights = |range| {
        let options = GeneratorOptions { weights: Some(range), ..GeneratorOptions::default() };
        edges(Uniform::new(100, 50_000, SEED).unwrap(), options).1
    };
    let unit = weights(WeightRange::Unit);
    assert!(unit.iter().all(|w| (0.0..1.0).contains(w)));
    let mean = unit.iter().sum::<f64>() / unit.len() as f64;
    assert!((mean - 0.5).abs() < 0.01, "{mean}");
    let mut bytes = weights(WeightRange::Byte);
    bytes.sort_unstable_by(f64::total_cmp);
    bytes.dedup();
    assert_eq!(bytes, (1..=255).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn impossible_models_are_refused() {
    let message = |n, k, d, p| BlockModel::new(n, k, d, p, 0).unwrap_err().to_string();
    let start = "cannot generate a block model: expected ";
    assert_eq!(
        message(10, 6, 4.0, 0.5),
        format!("{start}2 vertices or more in every community, got 10 vertices and 6 communities")
    );
    assert_eq!(
        message(10, 2, 4.0, 1.5),
        format!("{start}a probability of edges inside a community, got 1.5")
    );
    assert_eq!(
        message(10, 1, 4.0, 0.5),
        format!("{start}all edges inside the only community, got 0.5")
    );
    assert_eq!(
        Uniform::new(1, 1, 0).unwrap_err().to_string(),
        "cannot generate a uniform graph: expected 2 vertices or more, got 1"
    );
}
