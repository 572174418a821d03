//! Packed text gives what the text gives, or an error, and several files give the edges of all.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;

use common::{edges, file, message};
use lzma_rust2::{XzOptions, XzWriter};
use tiergraph_ingest::source::{OpenOptions, open, open_all};

const ENDS: [&str; 4] = ["gz", "zst", "xz", "bz2"];

fn packed(end: &str, text: &[u8]) -> Vec<u8> {
    match end {
        "gz" => {
            let mut writer =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        "zst" => {
            ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
        }
        "xz" => {
            let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        _ => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
    }
}

fn text(lines: u32) -> String {
    (0..lines).map(|i| format!("{i} {}\n", i.wrapping_mul(2_654_435_761) >> 8)).collect()
}

#[test]
fn packed_files_have_the_edges_of_their_text() {
    let dir = tempfile::tempdir().unwrap();
    let text = text(300_000);
    let plain = edges(&file(&dir, "a.txt", &text), &OpenOptions::default());
    for end in ENDS {
        let path = file(&dir, &format!("a.txt.{end}"), packed(end, text.as_bytes()));
        assert!(edges(&path, &OpenOptions::default()) == plain, "{end}");
        // By content alone, and of several parts one after the other.
        let (first, second) = text.split_at(text.len() / 3);
        let both = [packed(end, first.as_bytes()), packed(end, second.as_bytes())].concat();
        let path = file(&dir, &format!("{end}-without-an-end"), both);
        assert!(edges(&path, &OpenOptions::default()) == plain, "{end} of two parts");
    }
}

#[test]
fn names_of_packed_files_say_their_format() {
    let dir = tempfile::tempdir().unwrap();
    for end in ENDS {
        let path = file(&dir, &format!("a.wel.{end}"), packed(end, b"1 2 3\n"));
        assert!(open(&path, &OpenOptions::default()).unwrap().weighted(), "{end}");
        let path = file(&dir, &format!("a.graph.{end}"), packed(end, b"2 1\n2\n1\n"));
        assert_eq!(edges(&path, &OpenOptions::default()), [(1, 2)], "{end}");
        let path = file(&dir, &format!("a.npy.{end}"), packed(end, b"\x93NUMPY"));
        let said = message(&path, &OpenOptions::default());
        assert!(said.contains("got a packed binary file\n\nhint: unpack it first"), "{said}");
    }
}

#[test]
fn packed_files_that_are_cut_off_or_damaged_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = text(300_000);
    for end in ENDS {
        let whole = packed(end, text.as_bytes());
        for len in [whole.len() / 2, whole.len() - 3] {
            let path = file(&dir, &format!("cut.txt.{end}"), &whole[..len]);
            let said = message(&path, &OpenOptions::default());
            assert!(said.starts_with("cannot un"), "{end}: {said}");
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x10;
        let path = file(&dir, &format!("damaged.txt.{end}"), damaged);
        let said = message(&path, &OpenOptions::default());
        assert!(said.contains(&format!("damaged.txt.{end}`")), "{end}: {said}");
    }
}

#[test]
fn a_large_window_counts_before_it_is_filled() {
    let dir = tempfile::tempdir().unwrap();
    let held = |name: &str, bytes: Vec<u8>| {
        open(&file(&dir, name, bytes), &OpenOptions::default()).unwrap().held_bytes()
    };
    // What chunks of lines take, whatever they are unpacked from.
    let plain = held("a.txt", b"1 2\n".to_vec());
    assert_eq!(held("a.txt.gz", packed("gz", b"1 2\n")), plain);
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).unwrap();
    writer.write_all(b"1 2\n").unwrap();
    assert_eq!(held("a.txt.xz", writer.finish().unwrap()), plain + (9 << 20));
    assert!(held("a.txt.bz2", packed("bz2", b"1 2\n")) >= plain + (4 << 20));
    let path = file(&dir, "little.txt", "1 2\n");
    let mut source = open(&path, &OpenOptions::default()).unwrap();
    source.keep_within(64 << 20);
    assert!(source.held_bytes() <= 8 << 20 && source.held_bytes_at_most() == plain);
}

#[test]
fn several_files_have_the_edges_of_all_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [
        file(&dir, "0.csv", "src,dst,weight\n1,2,0.5\n"),
        file(&dir, "1.csv.gz", packed("gz", b"weight,src,dst\n2,3,4\n1,5,6\n")),
    ];
    let mut source = open_all(&paths, &OpenOptions::default()).unwrap();
    assert!(source.weighted());
    for _ in 0..2 {
        let all = common::drain(source.as_mut()).unwrap();
        assert_eq!(all, (vec![(1, 2), (3, 4), (5, 6)], vec![0.5, 2.0, 1.0]));
        source.restart().unwrap();
    }
    let refused = |other| {
        let error = open_all(&[paths[0].clone(), other], &OpenOptions::default()).err().unwrap();
        error.to_string().replace(&format!("{}/", dir.path().display()), "")
    };
    assert_eq!(
        refused(file(&dir, "2.csv", "1,2\n")),
        "cannot read several files as one graph `2.csv`: expected weights, as `0.csv` has, got none"
    );
    let metis = file(&dir, "3.graph", "2 1\n2\n1\n");
    assert!(refused(metis).contains("expected files of edges alone, got one that says"));
}
