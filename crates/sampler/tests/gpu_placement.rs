//! Lists and rows of a loader on an emulated GPU, wherever they are placed: the CPU's batches, within
//! the memory, with as many transactions as presampling predicts.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../io/tests/common/emulated_gpu.rs"]
mod emulated_gpu;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Layout, Sample, mix, small};
use emulated_gpu::emulated_gpu;
use tiergraph_cache::placement::{Kind, Placement};
use tiergraph_core::ErrorKind;
use tiergraph_gpu::kernels::{HostRows, Sampler};
use tiergraph_gpu::{Device, DeviceBuf, DevicePtr, Stream};
use tiergraph_graph::{Graph, OpenOptions};
use tiergraph_sampler::gpu::{
    BatchSize, GpuEpoch, GpuEpochStats, GpuLoader, GpuTiers, Outputs, Placed, ReadRates,
    Transactions,
};
use tiergraph_sampler::{Fanout, Loader, LoaderOptions, Plan, Residency, SampleOptions};

const DIM: usize = 20;
const BATCH: usize = 50;
const FANOUTS: [u32; 2] = [5, 3];
const PLACEMENTS: [Placement; 6] = [
    Placement::Unified,
    Placement::TOPOLOGY_FIRST,
    Placement::FEATURES_FIRST,
    Placement::First { gpu: Kind::Topology, host: Kind::Features },
    Placement::First { gpu: Kind::Features, host: Kind::Topology },
    Placement::Hybrid(0.5),
];

/// A batch as a model gets it.
#[derive(Debug, PartialEq)]
struct Batch {
    nodes: Vec<i64>,
    degree: Vec<i64>,
    edge_index: Vec<i64>,
    e_id: Vec<i64>,
    x: Vec<f32>,
    input_id: Vec<i64>,
}

/// The arrays of a batch that is being filled.
struct Buffers {
    nodes: DeviceBuf<i64>,
    degree: DeviceBuf<i64>,
    edge_index: DeviceBuf<i64>,
    e_id: DeviceBuf<i64>,
    x: DeviceBuf<f32>,
    input_id: DeviceBuf<i64>,
}

fn options(features: bool) -> LoaderOptions {
    let fanouts = FANOUTS.map(Fanout::Most).to_vec();
    LoaderOptions {
        batch_size: BATCH,
        seed: 9,
        shuffle: true,
        features: vec![features.then(|| "x".into())],
        ..LoaderOptions::new(SampleOptions { fanouts, ..SampleOptions::default() })
    }
}

/// Some seeds, the hub among them.
fn seeds() -> Vec<u32> {
    (0..400).map(|i| (mix(i) % 3000) as u32).chain([0, 1]).collect()
}

/// The CPU's batches of epoch `number`.
fn of_cpu(sample: &Sample, number: u64) -> Vec<Batch> {
    let loader = Loader::new(sample.open(), options(true), &Residency::Decoded, []).unwrap();
    let batches = loader.epoch(number, &seeds(), 0).unwrap().map(Result::unwrap);
    let degree = |&vertex: &u32| {
        let arcs = loader.topologies()[0].offsets().arcs(vertex);
        (arcs.end - arcs.start) as i64
    };
    let wide = |ids: &[u32]| -> Vec<i64> { ids.iter().map(|&id| id.into()).collect() };
    let to_batch = |prepared: tiergraph_sampler::Prepared| {
        let (nodes, edges) = (&prepared.batch.nodes[0], &prepared.batch.edges[0]);
        Batch {
            nodes: wide(&nodes.n_id),
            degree: nodes.n_id.iter().map(degree).collect(),
            edge_index: [wide(&edges.row), wide(&edges.col)].concat(),
            e_id: edges.e_id.iter().map(|&arc| arc as i64).collect(),
            x: prepared.x[0].as_ref().unwrap().floats().unwrap().to_vec(),
            input_id: wide(&prepared.input_id),
        }
    };
    batches.map(to_batch).collect()
}

/// A loader on a GPU, and the graph that it loads from.
struct Made {
    graph: Arc<Graph>,
    stream: Stream,
    loader: Arc<Mutex<GpuLoader>>,
    placed: Placed,
}

impl Made {
    /// A loader with so many bytes of device memory and of host memory beside the decoded lists.
    fn new(
        device: &Device,
        graph: Arc<Graph>,
        placement: Placement,
        device_memory: u64,
        options: &LoaderOptions,
    ) -> tiergraph_core::Result<Self> {
        Self::presampled(device, graph, placement, device_memory, options, usize::MAX)
    }

    /// As [`new`](Self::new), by the first `presample` batches of the presampled epoch.
    fn presampled(
        device: &Device,
        graph: Arc<Graph>,
        placement: Placement,
        device_memory: u64,
        options: &LoaderOptions,
        presample: usize,
    ) -> tiergraph_core::Result<Self> {
        let tiers = GpuTiers { device_memory: Some(device_memory), ..GpuTiers::default() };
        let plan = Plan { placement, ..Plan::default() };
        let loader = GpuLoader::new(&graph, tiers, options, &seeds(), None, &plan, presample)?;
        let placed = loader.placed().clone();
        let stream = Stream::new(device)?;
        Ok(Self { graph, stream, loader: Arc::new(Mutex::new(loader)), placed })
    }

    /// The batches of epoch `number`.
    fn epoch(&self, number: u64, dim: usize) -> (Vec<Batch>, GpuEpochStats) {
        let mut epoch = self.begun(number);
        let batches = std::iter::from_fn(|| self.next(&mut epoch, dim)).collect();
        (batches, epoch.stats())
    }

    fn begun(&self, number: u64) -> GpuEpoch<Buffers> {
        let seeds = seeds();
        GpuEpoch::start(&self.loader, number, (&seeds).into(), 0).unwrap()
    }

    /// Begins as many batches of an epoch as may be now.
    fn begin(&self, epoch: &mut GpuEpoch<Buffers>, dim: usize) -> tiergraph_core::Result<()> {
        let device = self.stream.device();
        while let Some(room) = epoch.wanted()? {
            let BatchSize { nodes, edges } = room;
            let buffers = Buffers {
                nodes: DeviceBuf::new(device, nodes).unwrap(),
                degree: DeviceBuf::new(device, nodes).unwrap(),
                edge_index: DeviceBuf::new(device, 2 * edges).unwrap(),
                e_id: DeviceBuf::new(device, edges).unwrap(),
                x: DeviceBuf::new(device, nodes * dim).unwrap(),
                input_id: DeviceBuf::new(device, BATCH).unwrap(),
            };
            let to = Outputs {
                nodes: buffers.nodes.ptr(),
                degree: Some(buffers.degree.ptr()),
                edge_index: buffers.edge_index.ptr(),
                e_id: buffers.e_id.ptr(),
                x: if dim == 0 { DevicePtr::NULL } else { buffers.x.ptr() },
                input_id: buffers.input_id.ptr(),
                room,
            };
            epoch.give(buffers, &to);
        }
        Ok(())
    }

    /// The next batch of an epoch; `None` after the last.
    fn next(&self, epoch: &mut GpuEpoch<Buffers>, dim: usize) -> Option<Batch> {
        while !epoch.is_done() {
            self.begin(epoch, dim).unwrap();
            let Some(filled) = epoch.poll(Duration::from_secs(10)).unwrap() else { continue };
            let Buffers { nodes, degree, edge_index, e_id, x, input_id } = filled.buffers;
            self.stream.device().synchronize().unwrap();
            let (stream, sampled) = (&self.stream, &filled.batch.sampled);
            let (node_count, edge_count) = (sampled.nodes(), sampled.edges());
            return Some(Batch {
                nodes: stream.download(&nodes, node_count).unwrap(),
                degree: stream.download(&degree, node_count).unwrap(),
                edge_index: stream.download(&edge_index, 2 * edge_count).unwrap(),
                e_id: stream.download(&e_id, edge_count).unwrap(),
                x: stream.download(&x, node_count * dim).unwrap(),
                input_id: stream.download(&input_id, filled.batch.seeds).unwrap(),
            });
        }
        None
    }
}

/// Bytes of all lists, of all rows, and of what a loader takes of device memory beside them.
fn sizes(graph: &Graph, dim: usize) -> (u64, u64, u64) {
    let (vertices, arcs) = (graph.vertices(), graph.manifest().arcs);
    // Offsets, locations of lists and rows, a list of the rows that are missing, and one of those in host memory.
    let working = Sampler::device_bytes(vertices, 50, &FANOUTS, arcs) + 28 * vertices as u64;
    let working = working + HostRows::device_bytes(vertices);
    (4 * arcs, 4 * (vertices * dim) as u64, working)
}

#[test]
fn batches_are_the_cpus_for_every_placement_and_budget() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = Layout { dim: DIM, ..Layout::mixed(true) }.build();
    let expected = [of_cpu(&sample, 0), of_cpu(&sample, 1)];
    let mut split = 0;
    for placement in PLACEMENTS {
        for tenths in [1, 3, 5, 9, 12] {
            let graph = sample.open();
            let (lists, rows, working) = sizes(&graph, DIM);
            let memory = working + (lists + rows) * tenths / 10;
            let made = Made::new(&device, graph, placement, memory, &options(true)).unwrap();
            let placed = &made.placed;
            assert!(placed.device_bytes <= memory, "{placement:?}: {placed:?} in {memory}");
            assert_eq!(placed.device_list_bytes + placed.host_list_bytes, lists, "{placed:?}");
            split += u64::from(placed.device_list_bytes > 0 && placed.host_list_bytes > 0);
            let used = made.graph.memory().budget().used();
            assert!(placed.host_bytes <= used, "{placed:?} of {used}");
            for (number, expected) in expected.iter().enumerate() {
                let (found, stats) = made.epoch(number as u64, DIM);
                assert!(&found == expected, "{placement:?} {tenths}: epoch {number} differs");
                let counted = stats.done.transactions;
                assert!(counted.total() > 0 || tenths > 5, "{placement:?} {tenths}: {counted:?}");
                assert!(counted.total() == 0 || tenths < 10, "{placement:?}: {counted:?}");
                assert!(counted.host_lists == 0 || placed.host_list_bytes > 0, "{counted:?}");
            }
        }
    }
    assert!(split >= 6, "{split} loaders have lists in both memories");
}

/// The loader's epoch 0 takes the transactions that it predicts, which are returned.
fn assert_predicted(made: &Made, dim: usize) -> Transactions {
    // Counts of another epoch, which differs, are not this one's.
    let (_, other) = made.epoch(1, dim);
    let (batches, stats) = made.epoch(0, dim);
    let predicted = made.placed.predicted.unwrap();
    assert_eq!(predicted.batches, batches.len() as u64);
    assert_eq!(predicted.transactions, stats.done.transactions, "{:?}", made.placed);
    let all = predicted.transactions.total();
    // Those of two epochs may add up to the same.
    assert!(other.done.transactions != predicted.transactions || all == 0, "epoch 1 is another");
    predicted.transactions
}

#[test]
fn presampling_predicts_the_transactions_that_kernels_count() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = Layout { dim: DIM, ..Layout::mixed(true) }.build();
    let (lists, rows, working) = sizes(&sample.open(), DIM);
    for tenths in [1, 3, 5, 7] {
        let memory = working + (lists + rows) * tenths / 10;
        let totals = PLACEMENTS.map(|placement| {
            let graph = sample.open();
            let made = Made::new(&device, graph, placement, memory, &options(true)).unwrap();
            assert_predicted(&made, DIM).total()
        });
        // A chunk, one part in 64, is what a choice among chunks may lose.
        let least = totals[1..].iter().min().unwrap();
        assert!(totals[0] <= least + least / 64, "{tenths} tenths: {totals:?}");
    }
}

#[test]
fn rows_on_storage_are_predicted_and_counted() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let dim = 2048;
    let sample = Layout { dim, ..Layout::mixed(true) }.build();
    let expected = of_cpu(&sample, 0);
    for placement in PLACEMENTS {
        let graph = sample.open();
        let (lists, _, working) = sizes(&graph, dim);
        let budget = graph.memory().budget().clone();
        // Rows are read in 16 MiB, which all of them are larger than.
        let others = budget.left() - 4 * lists - (18 << 20);
        let _others = budget.reserve(others, "others").unwrap();
        let memory = working + lists + (2 << 20);
        let made = Made::new(&device, graph, placement, memory, &options(true)).unwrap();
        assert!(made.placed.storage_rows > 0, "{:?}", made.placed);
        assert!(made.placed.device_bytes <= memory, "{:?} in {memory}", made.placed);
        let transactions = assert_predicted(&made, dim);
        assert!(transactions.storage_rows > 0, "{transactions:?}");
        assert!(made.epoch(0, dim).0 == expected, "{placement:?}");
    }
}

/// A graph whose lists, 2.4 MiB and more, and rows, 10 MiB, are larger than the memory of its tests.
fn large(directed: bool) -> Sample {
    let hub = (0..40_000).map(|i| (mix(i) % 10_000, 7));
    let edges = hub.chain((0..600_000).map(|i| (mix(i) % 6000, mix(i + (1 << 40)) % 9900)));
    let layout = Layout::mixed(directed);
    Layout { vertices: 10_000, edges: edges.collect(), dim: 256, ..layout }.build()
}

/// The graph of a sample on drives that the GPU reads by itself, as `engine` says, and `left` bytes of memory for a loader.
fn on_drives(sample: &Sample, engine: &str, left: u64) -> (Arc<Graph>, tiergraph_mem::Reservation) {
    let engine = engine.parse().unwrap();
    let graph = sample.open_as(&OpenOptions { engine, ..small() });
    let budget = graph.memory().budget().clone();
    let others = budget.reserve(budget.left() - left, "others").unwrap();
    (graph, others)
}

#[test]
fn lists_on_storage_are_sampled_and_counted_wherever_the_others_are() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = large(true);
    let dim = 256;
    let expected = of_cpu(&sample, 0);
    let (mut in_all, mut read) = (0, 0);
    for left in [5 << 20, 8 << 20] {
        let totals = PLACEMENTS.map(|placement| {
            let (graph, _others) = on_drives(&sample, "gpu:modelled:p5510*3", left);
            let (lists, _, working) = sizes(&graph, dim);
            // Pages and rows on their way, and a tenth of the lists and rows.
            let memory = working + (3 << 20) + (1 << 20);
            let made = Made::new(&device, graph, placement, memory, &options(true)).unwrap();
            let placed = &made.placed;
            assert!(placed.device_bytes <= memory, "{placement:?}: {placed:?} in {memory}");
            let [on_device, on_host, on_storage] =
                [placed.device_list_bytes, placed.host_list_bytes, placed.storage_list_bytes];
            assert_eq!(on_device + on_host + on_storage, lists, "{placement:?}: {placed:?}");
            in_all += u64::from(on_device > 0 && on_host > 0 && on_storage > 0);
            let counted = assert_predicted(&made, dim);
            assert!(counted.storage_lists == 0 || on_storage > 0, "{counted:?} of {placed:?}");
            read += u64::from(counted.storage_lists > 0);
            let (batches, stats) = made.epoch(0, dim);
            assert!(batches == expected, "{placement:?} {left}: {placed:?}");
            let is_read = counted.storage_lists + counted.storage_rows > 0;
            assert_eq!(stats.done.reads.bytes_ssd > 0, is_read, "{:?} of {placed:?}", stats.done);
            counted.total()
        });
        let least = totals[1..].iter().min().unwrap();
        assert!(totals[0] <= least + least / 64, "{left} bytes: {totals:?}");
    }
    assert!(in_all >= 2, "{in_all} loaders have lists in all memories");
    assert!(read >= 2, "{read} loaders read lists");
}

#[test]
fn rows_come_whoever_starts_their_reads() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let dim = 2048;
    let sample = Layout { dim, ..Layout::mixed(true) }.build();
    let expected = of_cpu(&sample, 0);
    let mut a_row = None;
    // The host's readers take 16 MiB.
    for (engine, left, way) in [
        ("gpu:modelled:p5510*2", 12, "the GPU"),
        ("gpu:coupled:modelled:p5510*2", 12, "warps of the GPU"),
        ("gpu:coupled", 12, "warps of the GPU"),
        ("gpu:coupled-cache:modelled:p5510*2", 12, "warps of the GPU that look rows up"),
        ("gpu:auto", 20, ""),
    ] {
        let (graph, _others) = on_drives(&sample, engine, left << 20);
        let memory = sizes(&graph, dim).2 + (3 << 20);
        let placement = Placement::Unified;
        let made = Made::new(&device, graph, placement, memory, &options(true)).unwrap();
        let placed = &made.placed;
        assert!(placed.storage_rows > 0, "{placed:?}");
        assert!(placed.storage_reads.unwrap().starts_with(way), "{engine}: {placed:?}");
        assert_eq!(placed.storage_rates.is_some(), way.is_empty(), "{placed:?}");
        if let Some(ReadRates { by_gpu, by_host }) = placed.storage_rates {
            let is_gpu = placed.storage_reads.unwrap().starts_with("the GPU");
            assert_eq!(is_gpu, by_gpu >= by_host, "{placed:?}");
            assert!(by_gpu.min(by_host) > 0.0, "{placed:?}");
        }
        let is_cached = engine.contains("cache");
        assert_eq!(placed.cached_rows.is_some(), is_cached, "{placed:?}");
        let (batches, stats) = made.epoch(0, dim);
        assert!(batches == expected, "{engine}: {placed:?}");
        let (read, counted) = (stats.done.reads.missed_rows, stats.done.transactions.storage_rows);
        assert!(read > 0, "{engine}");
        // Transactions count rows that are placed nowhere, of which a cache has some.
        match is_cached {
            false => assert_eq!(counted, read * *a_row.get_or_insert(counted / read), "{engine}"),
            true => assert!(counted > read * a_row.unwrap(), "{engine}: {counted}, {read} read"),
        }
    }
}

#[test]
fn epochs_in_turn_do_not_take_each_others_batches() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = Layout { dim: DIM, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let memory = sizes(&graph, DIM).2 + sizes(&graph, DIM).0;
    let made = Made::new(&device, graph, Placement::Unified, memory, &options(true)).unwrap();
    let expected = [of_cpu(&sample, 0), of_cpu(&sample, 1)];
    let mut epochs = [made.begun(0), made.begun(1)];
    for number in 0..expected[0].len() {
        for (epoch, expected) in epochs.iter_mut().zip(&expected) {
            assert!(made.next(epoch, DIM).as_ref() == Some(&expected[number]), "{number}");
        }
    }
    assert!(epochs.iter_mut().all(|epoch| made.next(epoch, DIM).is_none()));
    // One that is given up early leaves the loader to others.
    let mut begun = made.begun(0);
    assert!(made.next(&mut begun, DIM).as_ref() == Some(&expected[0][0]));
    drop(begun);
    assert!(made.epoch(1, DIM).0 == expected[1]);
}

#[test]
fn arrays_are_as_large_as_batches_like_them() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = Layout { dim: DIM, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let memory = sizes(&graph, DIM).2 + sizes(&graph, DIM).0;
    let made = Made::new(&device, graph, Placement::Unified, memory, &options(true)).unwrap();
    let largest = made.epoch(0, DIM).0.iter().map(|batch| batch.nodes.len()).max().unwrap();
    let vertices = made.graph.vertices();
    assert!(2 * largest < vertices);
    let expected = |epoch: &mut GpuEpoch<Buffers>| epoch.wanted().unwrap().unwrap();
    // Those of all rows have what was asked for, and say nothing of batches after them.
    let mut rows = GpuEpoch::<Buffers>::of_all_rows(&made.loader, vertices).unwrap();
    assert_eq!(expected(&mut rows), BatchSize { nodes: vertices, edges: 0 });
    while made.next(&mut rows, DIM).is_some() {}
    let nodes = expected(&mut made.begun(1)).nodes;
    assert!(nodes < 2 * largest, "room for {nodes} nodes, where batches have up to {largest}");
}

#[test]
fn damaged_pages_of_lists_end_the_epoch_and_name_the_page() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = large(false);
    let (graph, _others) = on_drives(&sample, "gpu", 5 << 20);
    let memory = sizes(&graph, 256).2 + (4 << 20);
    let placement = Placement::FEATURES_FIRST;
    let made = Made::new(&device, graph, placement, memory, &options(true)).unwrap();
    assert!(made.placed.storage_list_bytes > 0, "{:?}", made.placed);
    // Every page: whichever comes first is named.
    for entry in walk(sample.directory.path()).filter(|path| path.ends_with("out.rows")) {
        let mut bytes = std::fs::read(&entry).unwrap();
        bytes.chunks_mut(4096).for_each(|page| page[100] ^= 1);
        std::fs::write(&entry, bytes).unwrap();
    }
    let seeds = seeds();
    let mut epoch = GpuEpoch::<Buffers>::start(&made.loader, 0, (&seeds).into(), 0).unwrap();
    let error = loop {
        if let Err(error) = made.begin(&mut epoch, 256) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    assert!(error.to_string().contains("use page "), "{error}");
    assert!(error.to_string().contains("out.rows"), "{error}");
}

#[test]
fn damaged_rows_end_their_epoch_and_no_other() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let dim = 2048;
    let sample = Layout { dim, ..Layout::mixed(true) }.build();
    let expected = of_cpu(&sample, 0);
    let (graph, _others) = on_drives(&sample, "gpu", 12 << 20);
    let memory = sizes(&graph, dim).2 + (3 << 20);
    let made = Made::new(&device, graph, Placement::Unified, memory, &options(true)).unwrap();
    let file = walk(sample.directory.path()).find(|path| path.ends_with("x.rows")).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    // Every row, so that batches that are begun ahead are damaged, too.
    let mut damaged = bytes.clone();
    damaged.chunks_mut(4096).for_each(|page| page[100] ^= 1);
    for _ in 0..3 {
        std::fs::write(&file, &damaged).unwrap();
        let mut epoch = made.begun(0);
        let error = loop {
            made.begin(&mut epoch, dim).unwrap();
            match epoch.poll(Duration::from_millis(10)) {
                Ok(batch) => assert!(batch.is_none(), "a batch of damaged rows"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Format, "{error}");
        assert!(error.to_string().contains("x.rows"), "{error}");
        drop(epoch);
        std::fs::write(&file, &bytes).unwrap();
        assert!(made.epoch(0, dim).0 == expected, "the next epoch is as if nothing had been");
    }
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> impl Iterator<Item = std::path::PathBuf> + use<> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.into_iter()
}

#[test]
fn lists_that_fit_neither_memory_are_an_error() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let sample = Layout { dim: DIM, ..Layout::mixed(true) }.build();
    let graph = sample.open();
    let (lists, _, working) = sizes(&graph, DIM);
    let budget = graph.memory().budget().clone();
    let _others = budget.reserve(budget.left() - lists - lists / 2, "others").unwrap();
    let made = Made::new(&device, graph, Placement::Unified, working, &options(true));
    assert_eq!(made.err().unwrap().kind(), ErrorKind::Budget);
}

/// A graph whose rows take most of the memory of its tests, and most of whose lists no batch draws from.
fn of_few_draws(dim: usize) -> Sample {
    let edges = (0..80_000).map(|i| (mix(i) % 20_000, mix(i + (1 << 40)) % 20_000));
    let layout = Layout { dim, ..Layout::mixed(true) };
    Layout { vertices: 20_000, edges: edges.collect(), ..layout }.build()
}

#[test]
fn what_no_presampled_batch_met_is_expected_of_others() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let dim = 512;
    let sample = of_few_draws(dim);
    let (graph, _others) = on_drives(&sample, "gpu:modelled:p5510*2", 5 << 20);
    let memory = sizes(&graph, dim).2 + (2430 << 10);
    let plan = Placement::Unified;
    let made = Made::presampled(&device, graph, plan, memory, &options(true), 2).unwrap();
    assert!(made.placed.storage_rows > 0, "{:?}", made.placed);
    let (_, stats) = made.epoch(1, dim);
    let Transactions { storage_lists, storage_rows, .. } = stats.done.transactions;
    assert!(storage_lists < storage_rows / 20, "{:?} of {:?}", stats.done, made.placed);
}

#[test]
fn no_list_is_on_storage_where_memory_for_all_costs_next_to_nothing() {
    let Some((_alone, device)) = emulated_gpu() else { return };
    let dim = 512;
    let sample = of_few_draws(dim);
    // From too little memory for all rows that are wanted to enough for them and all lists.
    let placed: Vec<(u64, u64)> = (15_650..16_275)
        .step_by(25)
        .map(|left| {
            let (graph, _others) = on_drives(&sample, "gpu:modelled:p5510*2", left << 10);
            let memory = sizes(&graph, dim).2 + (2430 << 10);
            let plan = Placement::Unified;
            let made = Made::new(&device, graph, plan, memory, &options(true)).unwrap();
            let predicted = made.placed.predicted.unwrap().transactions.total();
            (made.placed.storage_list_bytes, predicted)
        })
        .collect();
    let fewest = placed.iter().map(|&(_, transactions)| transactions).min().unwrap();
    let most = |of: &dyn Fn(u64) -> bool| {
        placed.iter().filter(|(lists, _)| of(*lists)).map(|&(_, transactions)| transactions).max()
    };
    assert!(most(&|lists| lists > 0).is_some(), "lists that would take too much: {placed:?}");
    // Lists that no batch draws from take the place of rows, but of few.
    let in_memory = most(&|lists| lists == 0).unwrap();
    assert!(in_memory > fewest && in_memory <= fewest + fewest / 128, "{placed:?}");
}
