//! A flipped bit, a cut file, a missing file: an error of the right kind or the right answer,
//! never a wrong one.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Job, Layout, PACKED, Sample, cold, mix, sound_answers};
use tiergraph_core::{Error, ErrorKind};
use tiergraph_format::manifest::Codec;
use tiergraph_format::tiles::TilesIndex;
use tiergraph_graph::{Direction, Graph, NearLists, NextPass, OpenOptions};

/// Every file of a graph, stripes included.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

/// What became of the jobs over one damaged graph.
#[derive(Default)]
struct Outcomes {
    refused: usize,
    failed: usize,
    right: usize,
}

/// Runs every job over the damaged graph.
fn judge(
    sample: &Sample,
    options: &OpenOptions,
    jobs: &[Job],
    expected: &[Vec<f64>],
    what: &str,
    kinds: &[ErrorKind],
    outcomes: &mut Outcomes,
) {
    let graph = match sample.open(options) {
        Ok(graph) => graph,
        Err(e) => {
            assert!(kinds.contains(&e.kind()), "{what}: {e:?}");
            outcomes.refused += 1;
            return;
        }
    };
    for (job, expected) in jobs.iter().zip(expected) {
        match job.run(&graph) {
            Ok(answer) => {
                assert!(job.agree(&answer, expected), "{what}: {job:?} gives a wrong answer");
                outcomes.right += 1;
            }
            Err(e) => {
                assert!(kinds.contains(&e.kind()), "{what}: {job:?}: {e:?}");
                outcomes.failed += 1;
            }
        }
    }
}

/// Bytes to damage: the start of each page and some inside, in files of any length.
fn positions(bytes: usize, seed: u64) -> Vec<usize> {
    let random = (0..14).map(|i| mix(seed * 1000 + i) as usize % bytes);
    let starts = (0..bytes).step_by(4096).take(6).map(|page| page + mix(seed) as usize % 64);
    random.chain(starts).filter(|&at| at < bytes).collect()
}

fn flip_bits(layout: Layout) {
    let sample = Sample::new(layout);
    let jobs = Job::all(layout.codec);
    let expected = sound_answers(&sample, &jobs);
    let mut hit = Vec::new();
    for (seed, file) in (1u64..).zip(files(sample.directory.path())) {
        let sound = fs::read(&file).unwrap();
        let mut outcomes = Outcomes::default();
        for at in if sound.is_empty() { Vec::new() } else { positions(sound.len(), seed) } {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (mix(at as u64) % 8);
            fs::write(&file, &damaged).unwrap();
            let what = format!("{} with byte {at} flipped", file.display());
            let options = OpenOptions { residency: Some(at % 2 == 0), ..cold(1) };
            let kinds = [ErrorKind::Format];
            judge(&sample, &options, &jobs, &expected, &what, &kinds, &mut outcomes);
        }
        fs::write(&file, &sound).unwrap();
        hit.push((file, outcomes));
    }
    for (file, outcomes) in &hit {
        let name = file.file_name().unwrap().to_string_lossy();
        // What nothing reads cannot be found damaged.
        let read = !matches!(&*name, "build.id" | ".build_id" | "build_id")
            && (layout.directed || !name.starts_with("in."));
        let seen = outcomes.refused + outcomes.failed;
        println!("{name}: {seen} errors, {} right answers", outcomes.right);
        assert!(seen > 0 || !read, "no damage of {name} was seen");
    }
    assert_eq!(sound_answers(&sample, &jobs[1..]), expected[1..]);
}

#[test]
fn flipped_bits_of_packed_graphs() {
    flip_bits(PACKED);
    flip_bits(Layout { directed: false, ..PACKED });
}

#[test]
fn a_block_that_stays_is_checked_with_what_is_not_selected() {
    let sample = Sample::new(PACKED);
    let graph = sample.open(&OpenOptions { residency: Some(true), ..cold(1) }).unwrap();
    let (segments, block_bytes) = (graph.tiles().segments(), graph.block_bytes() as u64);
    let later = segments.windows(2).find(|pair| pair[0].block == pair[1].block).unwrap()[1];
    let path = sample.path.join("tiles.blocks");
    let mut bytes = fs::read(&path).unwrap();
    bytes[(u64::from(later.block) * block_bytes) as usize + later.offset as usize] ^= 1;
    fs::write(&path, &bytes).unwrap();
    graph.memory().plan_residency();
    let pass = |selects_later: bool| {
        let of_block = |e: &TilesIndex| e.block == later.block;
        let selection =
            graph.tiles().select(|e| of_block(e) && (selects_later || e.offset < later.offset));
        assert_eq!(selection.bytes(), block_bytes, "the block is read as a whole");
        graph.tiles().pass((&selection, NextPass::Unknown), |_| (), |(), _, _| Ok(()), |()| Ok(()))
    };
    for selects_later in [false, true, false] {
        let error = pass(selects_later).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert!(error.to_string().contains("tiles.blocks"), "{error}");
        assert!(!graph.tiles().is_resident(&later), "what is damaged does not stay");
    }
}

/// Blocks that are taken as they come: an error or another answer, but nothing breaks.
fn flip_bits_unchecked(layout: Layout) {
    let sample = Sample::new(layout);
    let jobs = Job::all(layout.codec);
    let blocks = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".blocks") || name == "out.rows" || name == "in.rows"
    };
    let mut answers = 0;
    for (seed, file) in (1u64..).zip(files(sample.directory.path()).into_iter().filter(blocks)) {
        let sound = fs::read(&file).unwrap();
        for at in positions(sound.len(), seed) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (mix(at as u64) % 8);
            fs::write(&file, &damaged).unwrap();
            let options = OpenOptions { unchecked: true, ..cold(1) };
            let graph = sample.open(&options).unwrap();
            for job in &jobs {
                match job.run(&graph) {
                    Ok(_) => answers += 1,
                    // Ids of 64 bits that are too large are the input's.
                    Err(e) => assert!(
                        matches!(e.kind(), ErrorKind::Format | ErrorKind::Input),
                        "byte {at}: {e:?}"
                    ),
                }
            }
        }
        fs::write(&file, &sound).unwrap();
    }
    assert!(answers > 0, "every damage was seen, so something was checked");
}

#[test]
fn flipped_bits_of_unchecked_graphs() {
    flip_bits_unchecked(PACKED);
    flip_bits_unchecked(Layout { directed: false, ..PACKED });
    flip_bits_unchecked(Layout { codec: Codec::Raw, ..PACKED });
}

/// The bytes of `file`, each 4 KiB page with another checksum, which are its first bytes.
fn with_other_checksums(file: &Path) -> Vec<u8> {
    let mut pages = fs::read(file).unwrap();
    pages.chunks_mut(4096).for_each(|page| page[0] ^= 1);
    pages
}

#[test]
fn unchecked_passes_over_rows_do_not_look_at_checksums() {
    let sample = Sample::new(PACKED);
    let jobs = [Job::Neighbors(Direction::Out), Job::Neighbors(Direction::In), Job::Hops];
    let expected = sound_answers(&sample, &jobs);
    for name in ["out.rows", "in.rows"] {
        let file = sample.path.join(name);
        fs::write(&file, with_other_checksums(&file)).unwrap();
    }
    for residency in [false, true] {
        let options = OpenOptions { residency: Some(residency), ..cold(1) };
        let checked = jobs[0].run(&sample.open(&options).unwrap());
        assert_eq!(checked.unwrap_err().kind(), ErrorKind::Format);
        let graph = sample.open(&OpenOptions { unchecked: true, ..options }).unwrap();
        for (job, expected) in jobs.iter().zip(&expected) {
            assert_eq!(&job.run(&graph).unwrap(), expected, "{job:?}");
        }
    }
}

/// Reads single pages, of a graph of which a search has few vertices a level.
#[test]
fn unchecked_lists_of_few_vertices_do_not_look_at_checksums() {
    let sample = Sample::new(PACKED);
    let file = sample.path.join("out.rows");
    let of_first = |graph: &Graph| {
        let mut lists = NearLists::new(graph, Direction::Out, 16 << 20)?.unwrap();
        let mut neighbors = Vec::new();
        lists.visit(&[0, 1, 2], |v, u| neighbors.push((v, u)))?;
        Ok::<_, Error>(neighbors)
    };
    let expected = of_first(&sample.open(&cold(1)).unwrap()).unwrap();
    assert!(!expected.is_empty());
    fs::write(&file, with_other_checksums(&file)).unwrap();
    assert_eq!(of_first(&sample.open(&cold(1)).unwrap()).unwrap_err().kind(), ErrorKind::Format);
    let options = OpenOptions { unchecked: true, ..cold(1) };
    assert_eq!(of_first(&sample.open(&options).unwrap()).unwrap(), expected);
}

#[test]
fn flipped_bits_of_striped_graphs() {
    flip_bits(Layout { stripes: 2, block_bytes: 4096, ..PACKED });
}

#[test]
fn flipped_bits_of_raw_graphs() {
    flip_bits(Layout { codec: Codec::Raw, ..PACKED });
    flip_bits(Layout { codec: Codec::Raw, stripes: 3, directed: false, ..PACKED });
}

/// A search over many blocks of which it reads a few pages at a time.
#[test]
fn flipped_bits_of_pages_that_are_read_alone() {
    let layout = Layout { block_bytes: 128 << 10, edges: 60_000, ..PACKED };
    let sample = Sample::new(layout);
    let jobs = [Job::Hops, Job::Distances];
    let expected = sound_answers(&sample, &jobs);
    let file = sample.path.join("tiles.blocks");
    let sound = fs::read(&file).unwrap();
    let mut outcomes = Outcomes::default();
    for i in 0..40 {
        let at = mix(i) as usize % sound.len();
        let mut damaged = sound.clone();
        damaged[at] ^= 4;
        fs::write(&file, &damaged).unwrap();
        let what = format!("tiles.blocks with byte {at} flipped");
        let kinds = [ErrorKind::Format];
        judge(&sample, &cold(2), &jobs, &expected, &what, &kinds, &mut outcomes);
    }
    assert!(outcomes.failed > 0, "no damage was seen");
}

#[test]
fn cut_and_missing_files_are_named() {
    for layout in [PACKED, Layout { stripes: 2, ..PACKED }, Layout { codec: Codec::Raw, ..PACKED }]
    {
        let sample = Sample::new(layout);
        let jobs = Job::all(layout.codec);
        let expected = sound_answers(&sample, &jobs);
        for file in files(sample.directory.path()) {
            let sound = fs::read(&file).unwrap();
            let cuts = [Some(0), Some(sound.len() / 2), Some(sound.len().saturating_sub(1)), None];
            for cut in cuts {
                match cut {
                    Some(len) => fs::write(&file, &sound[..len]).unwrap(),
                    None => fs::remove_file(&file).unwrap(),
                }
                let what = format!("{} cut to {cut:?}", file.display());
                // A directory without a manifest is no graph.
                let kinds = match file.ends_with("manifest.json") && cut.is_none() {
                    true => [ErrorKind::Input, ErrorKind::Input],
                    false => [ErrorKind::Format, ErrorKind::Io],
                };
                let mut outcomes = Outcomes::default();
                let options = cold(1);
                judge(&sample, &options, &jobs, &expected, &what, &kinds, &mut outcomes);
                if let Err(e) = sample.open(&options) {
                    let name = file.file_name().unwrap().to_string_lossy().into_owned();
                    let message = e.to_string();
                    // A directory without its own manifest or build id is named itself.
                    let directory = file.parent().unwrap().display().to_string();
                    let named = message.contains(&name) || message.contains(&directory);
                    assert!(named, "{what}: {message}");
                }
            }
            fs::write(&file, &sound).unwrap();
        }
    }
}
