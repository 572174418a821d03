//! Edge lists as people and tools write them are read as they mean them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Edges, drain, file};
use tiergraph_ingest::source::{OpenOptions, Weights, open};

/// The edges of a file, and what is said of it.
fn read(name: &str, content: impl AsRef<[u8]>, options: &OpenOptions) -> (Edges, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let mut source = open(&file(&dir, name, content), options).unwrap();
    let edges = drain(source.as_mut()).unwrap();
    source.restart().unwrap();
    assert_eq!(drain(source.as_mut()).unwrap(), edges, "the second pass differs");
    (edges, source.notes())
}

fn edges(name: &str, content: impl AsRef<[u8]>) -> Edges {
    read(name, content, &OpenOptions::default()).0
}

fn notes(content: &str) -> usize {
    read("edges.txt", content, &OpenOptions::default()).1.len()
}

fn weighted() -> Edges {
    (vec![(1, 2), (3, 4)], vec![0.5, 2.0])
}

#[test]
fn weights_are_found_by_name_and_ends_too() {
    for content in [
        "source,target,weight\n1,2,0.5\n3,4,2\n",
        "src,dst,weight\n1,2,0.5\n3,4,2\n",
        "Weight;Target;Source\n0.5;2;1\n2;4;3\n",
        ",from,to,cost\n0,1,2,0.5\n1,3,4,2\n",
        "\"\",\"u\",\"v\",\"w\"\n\"1\",1,2,0.5\n\"2\",3,4,2\n",
        ":START_ID(Place),name,:END_ID(Place),distance:float\n1,\"a, b\",2,0.5\n3,c,4,2\n",
        "# a graph\n# FromNodeId\tToNodeId\tWeight\n1\t2\t0.5\n3\t4\t2\n",
        "node1\tnode2\tvalue\tthe kind\n1\t2\t0.5\ta b\n3\t4\t2\tc\n",
    ] {
        assert_eq!(edges("edges.csv", content), weighted(), "{content}");
        assert_eq!(notes(content), 0, "{content}");
    }
}

#[test]
fn a_third_column_is_used_or_named() {
    for content in ["1,2,0.5\n3,4,2\n", "1 2 0.5\n3 4 2.0\n", "1\t2\t5e-1\r\n3\t4\t2\r\n"] {
        assert_eq!(edges("edges.txt", content), weighted(), "{content}");
        assert_eq!(notes(content), 1, "{content}");
    }
    assert_eq!(edges("edges.txt", "1 2 5\n").1, [5.0]);
    for content in [
        // Times, signs, and more columns than weights have.
        "1 2 1217567877\n3 4 1217573801\n",
        "1 2 -1\n3 4 1\n",
        "1,2,5,978300760\n3,4,3,978302109\n",
        "1 2 {'weight': 0.5}\n3 4 {'weight': 2}\n",
        "src,dst,rating\n1,2,0.5\n3,4,2\n",
    ] {
        assert_eq!(edges("edges.txt", content), (vec![(1, 2), (3, 4)], vec![]), "{content}");
        assert_eq!(notes(content), 1, "{content}");
    }
    for content in
        ["1 2 {}\n3 4 {}\n", "1 2 friend\n3 4 foe\n", "1 2 # first\n3 4\n", "1,2,\n3,4,\n"]
    {
        assert_eq!(edges("edges.txt", content), (vec![(1, 2), (3, 4)], vec![]), "{content}");
        assert_eq!(notes(content), 0, "{content}");
    }
    let ascending: String = (0..200).map(|i| format!("{i} {} {i}\n", i + 1)).collect();
    assert!(edges("edges.txt", &ascending).1.is_empty());
}

#[test]
fn formats_with_weights_have_them_without_a_word() {
    for name in ["edges.wel", "edges.e"] {
        let options =
            OpenOptions { format: Some("text".parse().unwrap()), ..OpenOptions::default() };
        let (found, notes) = read(name, "1 2 0.5\n3 4 2\n", &options);
        assert_eq!((found, notes), (weighted(), vec![]), "{name}");
    }
    assert_eq!(edges("edges.e", "1 2\n3 4\n"), (vec![(1, 2), (3, 4)], vec![]));
}

#[test]
fn columns_can_be_chosen() {
    let chosen = |columns: &str, weights| {
        let columns = Some(columns.split(',').map(str::to_owned).collect());
        let options = OpenOptions { columns, weights, ..OpenOptions::default() };
        read("edges.csv", "a,b,c,d\n9,1,0.5,2\n9,3,2,4\n", &options).0
    };
    assert_eq!(chosen("b,d,c", Weights::Auto), weighted());
    assert_eq!(chosen("b,d", Weights::Name("c".into())), weighted());
    assert_eq!(chosen("d,b", Weights::Auto), (vec![(2, 1), (4, 3)], vec![]));
    let options =
        OpenOptions { columns: Some(vec!["2".into(), "1".into()]), ..OpenOptions::default() };
    assert_eq!(read("edges.csv", "2,1\n4,3\n", &options).0.0, [(1, 2), (3, 4)]);
}

#[test]
fn without_weights_only_the_ids_of_a_line_are_read() {
    let options = OpenOptions { weights: Weights::Ignore, ..OpenOptions::default() };
    for content in ["1 2 3 4 5 6\n3 4\n", "source,target,weight\n1,2,0.5\n3,4,2\n"] {
        assert_eq!(read("edges.txt", content, &options), ((vec![(1, 2), (3, 4)], vec![]), vec![]));
    }
}

#[test]
fn line_ends_and_marks_of_other_systems_are_read() {
    let plain = (vec![(1, 2), (3, 4), (5, 6)], vec![]);
    for content in [
        "1 2\r3 4\r5 6",
        "1 2\r3 4\r5 6\r",
        "# one\r1,2\r\r3,4\r5,6\n",
        "\u{feff}1 2\n3 4\n5 6\n",
        "\u{feff}source,target\r\n1,2\r\n3,4\r\n5,6\r\n",
        "\u{feff}# c\r1 2\r3 4\r5 6\r",
    ] {
        assert_eq!(edges("edges.txt", content), plain, "{content:?}");
    }
    let long = "1 2\r".repeat(5 << 20);
    assert_eq!(edges("edges.txt", long).0.len(), 5 << 20);
}
