//! A graph appears whole or not at all, and what is no graph says so.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod sample;

use std::fs;
use std::path::Path;

use tiergraph_core::ErrorKind;
use tiergraph_format::directory::{Existing, GraphDir};
use tiergraph_format::flat::{self, FlatWriter};
use tiergraph_format::manifest::{FORMAT_VERSION, MANIFEST, Manifest};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dropped_building_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let stripe = dir.path().join("ssd");
    fs::create_dir(&stripe).unwrap();
    let stripes = [stripe.clone()];
    let building = GraphDir::create(&dir.path().join("g.tg"), Existing::Refuse, &stripes).unwrap();
    sample::fill(&building, 1).unwrap();
    assert_eq!(names(dir.path()).len(), 2);
    drop(building);
    assert_eq!(names(dir.path()), ["ssd"]);
    assert!(names(&stripe).is_empty());
}

#[test]
fn what_a_killed_build_left_is_removed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (path, ssd) = (dir.path().join("g.tg"), dir.path().join("ssd"));
    fs::create_dir(&ssd).unwrap();
    let stripes = [ssd.clone()];
    let killed = GraphDir::create(&path, Existing::Refuse, &stripes).unwrap();
    let begun = names(dir.path());
    // Its files stay, its locks do not: what the system makes of a process that it kills.
    let left = [dir.path(), &ssd].map(|dir| dir.join(names(dir).swap_remove(0)));
    let aside = left.clone().map(|path| path.with_extension("aside"));
    left.iter().zip(&aside).for_each(|(from, to)| fs::rename(from, to).unwrap());
    drop(killed);
    left.iter().zip(&aside).for_each(|(to, from)| fs::rename(from, to).unwrap());
    let other = dir.path().join(".g.tg.building-2");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("out.rows"), "rows").unwrap();
    // One is being written, others only look alike.
    let live = dir.path().join(".g.tg.building-1");
    fs::create_dir(&live).unwrap();
    let lock = fs::File::open(&live).unwrap();
    lock.lock().unwrap();
    let alike = [".g.tg.building-", ".g.tg.building-1a", ".h.tg.building-2"];
    alike.iter().for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());

    let building = GraphDir::create(&path, Existing::Refuse, &stripes).unwrap();
    assert_eq!(names(&left[0]), Vec::<String>::new(), "it was made anew");
    let again = GraphDir::create(&path, Existing::Refuse, &stripes).unwrap_err();
    assert!(again.to_string().starts_with("cannot create `"), "{again}");
    drop(building);
    let kept = [&alike[..], &[".g.tg.building-1", "ssd"]].concat();
    let mut kept: Vec<String> = kept.into_iter().map(str::to_owned).collect();
    kept.sort();
    assert_eq!((names(dir.path()), names(&ssd).len(), begun.len()), (kept, 0, 2));
}

#[test]
fn a_committed_graph_opens_with_its_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let built = sample::build(&dir.path().join("g.tg"), &[], 1);
    let opened = GraphDir::open(&dir.path().join("g.tg")).unwrap();
    assert_eq!(opened.manifest(), built.manifest());
    assert_eq!(names(dir.path()), ["g.tg"]);
    assert_eq!(opened.paths("out.rows").unwrap(), [built.path().join("out.rows")]);
    let e = opened.paths("in.rows").unwrap_err().to_string();
    assert!(e.ends_with("expected one of out.blocks, out.degrees, out.index, out.rows"), "{e}");
}

#[test]
fn replacing_moves_the_stripes_too() {
    let dir = tempfile::tempdir().unwrap();
    let ssds = ["a", "b", "c"].map(|name| dir.path().join(name));
    ssds.iter().for_each(|ssd| fs::create_dir(ssd).unwrap());
    let path = dir.path().join("g.tg");
    let first = sample::build(&path, &ssds, 1);
    let whole: Vec<u8> = fs::read(&first.paths("out.blocks").unwrap()[1]).unwrap();
    assert_eq!(u64::from_le_bytes(whole[8..16].try_into().unwrap()), 1, "block 1 on stripe 1");
    let second = sample::build(&path, &ssds[..1], 2);
    let id = &second.manifest().build_id;
    assert_eq!(names(&ssds[0]), [format!("g.tg.stripe0-{id}")]);
    assert!(names(&ssds[1]).is_empty() && names(&ssds[2]).is_empty(), "old stripes are removed");
    assert_eq!(GraphDir::open(&path).unwrap().manifest(), second.manifest());
    assert_ne!(first.manifest().build_id, second.manifest().build_id);
}

#[test]
fn a_stripe_of_another_build_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[dir.path().to_owned()], 1);
    let stripe = &graph.manifest().stripes[0];
    fs::write(stripe.join("build_id"), "0123").unwrap();
    assert_eq!(
        GraphDir::open(graph.path()).unwrap_err().to_string(),
        format!(
            "cannot open `{}`: expected a stripe of build {}, got one of build 0123\n\nhint: the \
             stripes are of different graphs: rebuild the graph",
            stripe.display(),
            graph.manifest().build_id
        )
    );
}

#[test]
fn an_existing_graph_is_kept_unless_it_may_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.tg");
    sample::build(&path, &[], 1);
    let e = GraphDir::create(&path, Existing::Refuse, &[]).unwrap_err();
    assert_eq!(
        e.to_string(),
        format!(
            "cannot create `{}`: expected nothing at this path, got a graph\n\nhint: \
             `--overwrite` replaces it",
            path.display()
        )
    );
    let other = dir.path().join("photos");
    fs::create_dir(&other).unwrap();
    let e = GraphDir::create(&other, Existing::Replace, &[]).unwrap_err();
    assert!(e.to_string().contains("got something that is no graph"), "{e}");
}

#[test]
fn a_failed_commit_restores_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.tg");
    let stripes = [dir.path().join("a"), dir.path().join("b")];
    stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
    let old = sample::build(&path, &stripes, 1);
    let building = GraphDir::create(&path, Existing::Replace, &stripes).unwrap();
    let manifest = sample::fill(&building, 2).unwrap();
    // The stripes are moved first and succeed; the directory can no longer be moved aside.
    let aside = dir.path().join(format!(".g.tg.old-{}", std::process::id()));
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("in the way"), "").unwrap();
    let e = building.commit(manifest).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io);
    assert_eq!(GraphDir::open(&path).unwrap().manifest(), old.manifest());
    let id = &old.manifest().build_id;
    assert_eq!(names(&stripes[1]), [format!("g.tg.stripe1-{id}")]);
}

#[test]
fn what_is_no_graph_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("edges.txt");
    fs::write(&file, "0 1").unwrap();
    for (path, got) in [
        (dir.path().join("missing.tg"), "nothing there"),
        (file, "a file"),
        (dir.path().to_owned(), "a directory without `manifest.json`"),
    ] {
        assert_eq!(
            GraphDir::open(&path).unwrap_err().to_string(),
            format!(
                "cannot open `{}`: expected a graph directory, got {got}\n\nhint: `tiergraph \
                 build` or `tiergraph generate` makes one",
                path.display()
            )
        );
    }
}

#[test]
fn an_unknown_version_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut manifest = sample::manifest(Default::default());
    manifest.format_version = FORMAT_VERSION + 8;
    manifest.write(dir.path()).unwrap();
    let e = Manifest::read(dir.path()).unwrap_err();
    assert_eq!(
        e.to_string(),
        format!(
            "cannot open `{}`: expected format version 1 or 2, got version 10\n\nhint: open the graph \
             with the version of tiergraph that built it",
            dir.path().join(MANIFEST).display()
        )
    );
}

#[test]
fn a_manifest_cannot_name_files_outside_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let graph = sample::build(&dir.path().join("g.tg"), &[], 1);
    let entry = graph.entry("out.degrees").unwrap().clone();
    for name in ["../escape", "/etc/hosts", "..", "", "a/b", MANIFEST] {
        let files = [(name.to_owned(), entry.clone())].into();
        let e = sample::manifest(files).write(dir.path()).unwrap_err();
        assert!(e.to_string().ends_with(&format!("a file named `{name}`")), "{e}");
    }
}

#[test]
fn long_arrays_are_checked_by_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user.ids");
    let values: Vec<u64> = (0..300_000).map(|i| i * i).collect();
    let mut writer = FlatWriter::create(&path).unwrap();
    values.chunks(1013).try_for_each(|part| writer.extend(part)).unwrap();
    let entry = writer.finish().unwrap();
    assert_eq!((entry.bytes, entry.blocks, entry.chunks.len()), (2_400_000, 3, 3));
    assert_eq!(flat::read::<u64>(&path, &entry).unwrap(), values);
    let chunk: Vec<u64> = flat::read_chunk(&path, &entry, 2).unwrap();
    assert_eq!(chunk, values[2 * (1 << 17)..]);
}

mod parsing {
    use proptest::prelude::*;
    use tiergraph_format::manifest::Manifest;

    proptest! {
        #[test]
        fn garbage_manifests_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(Manifest::parse(&bytes, "manifest.json").is_err());
        }
    }
}
