//! Edges between names: what numbers they get, what the graph keeps, and what is refused.
#![allow(clippy::unwrap_used)]

mod common;

use common::{drain, file, message};
use tiergraph_core::{Cancel, ErrorKind, Silent};
use tiergraph_format::directory::GraphDir;
use tiergraph_format::flat;
use tiergraph_format::names::{ENDS_FILE, PLACES_FILE, TEXT_FILE, hash, number_in};
use tiergraph_ingest::Names;
use tiergraph_ingest::build::{BuildOptions, Ids, build};
use tiergraph_ingest::source::{OpenOptions, Weights, open};

fn named() -> OpenOptions {
    OpenOptions { names: Some(Names::default()), ..OpenOptions::default() }
}

/// The edges of a text by names, and the weights.
fn read(content: &str, options: &OpenOptions) -> (Vec<(String, String)>, Vec<f64>) {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "edges.txt", content);
    let mut source = open(&path, options).unwrap();
    let (edges, weights) = drain(source.as_mut()).unwrap();
    let names = source.names().unwrap();
    let graph = dir.path().join("g.tg");
    source.restart().unwrap();
    build(source.as_mut(), &graph, &BuildOptions::default(), &Silent, &Cancel::default()).unwrap();
    assert_eq!(names.count(), 0, "what is written is let go of");
    let stored = stored(&graph);
    let name = |id: u64| stored[id as usize].clone();
    (edges.into_iter().map(|(src, dst)| (name(src), name(dst))).collect(), weights)
}

/// The names of a graph, each of which the table finds.
fn stored(path: &std::path::Path) -> Vec<String> {
    let dir = GraphDir::open(path).unwrap();
    let array = |name: &str| (path.join(name), dir.entry(name).unwrap().clone());
    let (text, ends, places) = (array(TEXT_FILE), array(ENDS_FILE), array(PLACES_FILE));
    let text: Vec<u8> = flat::read(&text.0, &text.1).unwrap();
    let ends: Vec<u64> = flat::read(&ends.0, &ends.1).unwrap();
    let places: Vec<u64> = flat::read(&places.0, &places.1).unwrap();
    assert_eq!(ends.len() as u64, dir.manifest().vertices);
    let mut start = 0;
    let names: Vec<String> = ends
        .iter()
        .map(|&end| {
            let name = String::from_utf8(text[start..end as usize].to_vec()).unwrap();
            start = end as usize;
            name
        })
        .collect();
    for (number, name) in names.iter().enumerate() {
        let hash = hash(name.as_bytes());
        let from = hash as usize & (places.len() - 1);
        let found = (from..from + places.len())
            .map(|at| places[at & (places.len() - 1)])
            .take_while(|&place| place != 0)
            .any(|place| number_in(place, hash) == Some(number as u32));
        assert!(found, "{name}");
    }
    names
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(a, b)| (a.into(), b.into())).collect()
}

#[test]
fn names_are_read_in_the_dialects_of_tables() {
    for (content, expected) in [
        ("alice bob\nbob\tcarol\n", &[("alice", "bob"), ("bob", "carol")][..]),
        ("source,target\na b,c\n", &[("a b", "c")]),
        ("a\tb c\nb c\td\r\n", &[("a", "b c"), ("b c", "d")]),
        ("\"x, y\",z\n", &[("x, y", "z")]),
        ("\"say \"\"a, b\"\"\",z\nz,\"\"\"\"\n", &[("say \"a, b\"", "z"), ("z", "\"")]),
        ("1;1.0\n01;1\n", &[("1", "1.0"), ("01", "1")]),
        ("# a comment\n\n#b c\nd #e\n#f d\n", &[("d", "#e"), ("#f", "d")]),
        ("Zürich,東京\n", &[("Zürich", "東京")]),
        ("a|b|", &[("a", "b")]),
    ] {
        assert_eq!(read(content, &named()).0, pairs(expected), "{content:?}");
    }
}

#[test]
fn columns_and_weights_are_chosen_as_among_numbers() {
    let (edges, weights) = read(
        "who,whom,since,weight\na,b,x,2\nb,a,y,0.5\n",
        &OpenOptions {
            columns: Some(vec!["whom".into(), "who".into(), "weight".into()]),
            ..named()
        },
    );
    assert_eq!((edges, weights), (pairs(&[("b", "a"), ("a", "b")]), vec![2.0, 0.5]));
    assert_eq!(read("a b 3\n", &named()).1, [3.0]);
}

#[test]
fn comments_that_may_be_names_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "t.txt", "#a b\n#c d\nx y\n");
    let notes = open(&path, &named()).unwrap().notes();
    assert!(notes[0].starts_with("2 lines of `") && notes[0].contains("comments"), "{notes:?}");
}

#[test]
fn malformed_lines_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = |content: &str| message(&file(&dir, "t.txt", content), &named());
    assert_eq!(
        said("a,b\nc,\n"),
        "cannot read line 2 of `t.txt`: expected a target id in column 2, got `c,`"
    );
    assert_eq!(
        said("a,b\n,c\n"),
        "cannot read line 2 of `t.txt`: expected a name in column 1, got ``"
    );
    assert_eq!(
        said("a,b\n\"\",c\n"),
        "cannot read line 2 of `t.txt`: expected a name in column 1, got `\\\"\\\"`"
    );
    assert!(
        said("a,b\nc,d,e\n").contains("line 2 of `t.txt`: expected 2 fields, as before, got 3")
    );
    let weighted = OpenOptions { weights: Weights::Column(3), ..named() };
    let said = message(&file(&dir, "t.txt", "a b 1\nc d x\n"), &weighted);
    assert!(
        said.contains("line 2 of `t.txt`: expected a weight of 0 or more in column 3"),
        "{said}"
    );
    let path = file(&dir, "bytes.txt", b"a b\nc \xff\xfe\n");
    let said = message(&path, &named());
    assert!(said.contains("read line 2 of `bytes.txt`: expected a name in UTF-8"), "{said}");
    let numbers = message(&file(&dir, "t.txt", "alice bob\ncarol dave\n"), &OpenOptions::default());
    assert!(numbers.ends_with("hint: `--ids names` reads ids that are names"), "{numbers}");
    let npy = file(&dir, "a.u32", [0; 8]);
    assert!(message(&npy, &named()).contains("expected a table or text, for `--ids names`"));
}

#[test]
fn a_build_of_names_keeps_within_its_budget_and_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let long: String = (0..60_000).map(|i| format!("{i:0200} {:0200}\n", i + 1)).collect();
    let path = file(&dir, "long.txt", long);
    let attempt = |memory: u64| {
        let mut source = open(&path, &named()).unwrap();
        let options = BuildOptions { memory: Some(memory), ..BuildOptions::default() };
        let to = dir.path().join(format!("{memory}.tg"));
        build(source.as_mut(), &to, &options, &Silent, &Cancel::default())
    };
    let error = attempt(8 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget);
    assert!(error.to_string().contains("the names of vertices"), "{error}");
    assert_eq!(attempt(64 << 20).unwrap().vertices, 60_001);
}

#[test]
fn names_that_were_asked_for_and_are_not_there_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, "a.txt", "1 2\n");
    let mut source = open(&path, &OpenOptions::default()).unwrap();
    let options = BuildOptions { ids: Ids::Names, ..BuildOptions::default() };
    let to = dir.path().join("g.tg");
    let error = build(source.as_mut(), &to, &options, &Silent, &Cancel::default()).unwrap_err();
    assert!(error.to_string().contains("expected text or a table, got numbers"), "{error}");
}
