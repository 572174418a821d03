//! Matrix Market, METIS and DIMACS: what they say, and what is refused with file and line.
#![allow(clippy::unwrap_used)]

mod common;

use common::{drain, file, message};
use tiergraph_ingest::source::{Format, OpenOptions, Weights, open};

/// A file's edges with their weights, whether it says that they have a direction, and its vertices.
type Read = (Vec<(u64, u64)>, Vec<f64>, Option<bool>, u64);

fn read(name: &str, content: &str) -> Read {
    let dir = tempfile::tempdir().unwrap();
    let mut source = open(&file(&dir, name, content), &OpenOptions::default()).unwrap();
    let directed = source.directed();
    let vertices = source.vertices().unwrap().unwrap();
    assert_eq!(vertices, (1..=vertices.len() as u64).collect::<Vec<_>>());
    let (edges, weights) = drain(source.as_mut()).unwrap();
    source.restart().unwrap();
    assert_eq!(drain(source.as_mut()).unwrap(), (edges.clone(), weights.clone()), "read again");
    (edges, weights, directed, vertices.len() as u64)
}

const GENERAL: &str =
    "%%MatrixMarket matrix coordinate real general\n% why\n3 3 2\n1 2 0.5\n3 1 7\n";
const ROADS: &str = "c roads\np sp 3 2\nc arcs\na 1 2 7\na 2 3 1\n";
const WEIGHTED: &str = "% a triangle\n3 3 001\n2 5 3 6\n1 5 3 7\n1 6 2 7\n";

#[test]
fn matrices_of_coordinates() {
    let edges = vec![(1, 2), (3, 1)];
    assert_eq!(read("a.mtx", GENERAL), (edges.clone(), vec![0.5, 7.0], None, 3));
    // By its content, too, with the line ends of another system.
    assert_eq!(read("a.txt", &GENERAL.replace('\n', "\r\n")).0, edges);
    let pattern = "%%matrixmarket Matrix Coordinate Pattern Symmetric\n\n3 3 3\n2 1\n3 3\n3 2\n";
    assert_eq!(read("a.mtx", pattern), (vec![(2, 1), (3, 3), (3, 2)], vec![], Some(false), 3));
}

#[test]
fn lines_of_neighbours() {
    let (edges, weights, directed, vertices) = read("a.graph", WEIGHTED);
    assert_eq!(edges, [(1, 2), (1, 3), (2, 3)]);
    assert_eq!((weights, directed, vertices), (vec![5.0, 6.0, 7.0], Some(false), 3));
    // A size and two weights of each vertex; vertex 2 has no neighbours.
    let sized = "3 1 110 2\n9 1 1 3\n9 1 1\n9 1 1 1\n\n";
    assert_eq!(read("a.metis", sized).0, [(1, 3)]);
    assert_eq!(read("a.graph", "3 1\n2\n1\n\n"), (vec![(1, 2)], vec![], Some(false), 3));
}

#[test]
fn arcs_and_edges_of_challenges() {
    let arcs = (vec![(1, 2), (2, 3)], vec![7.0, 1.0], Some(true), 3);
    assert_eq!(read("a.gr", ROADS), arcs);
    assert_eq!(read("a.txt", ROADS), arcs);
    let coloring = "p col 3 2\nn 1 4\ne 1 2\ne 3 1\n";
    assert_eq!(read("a.col", coloring), (vec![(1, 2), (3, 1)], vec![], Some(false), 3));
    assert_eq!(read("a.gr", "p tw 4 1\n4 2\n"), (vec![(4, 2)], vec![], Some(false), 4));
}

/// What reading `content` in a format is refused by, after the name.
fn refused(format: Format, content: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
    message(&file(&dir, "a", content), &options)
}

#[test]
fn what_is_malformed_is_refused_with_its_line() {
    use Format::{Dimacs, MatrixMarket, Metis};
    let mtx = "%%MatrixMarket matrix coordinate pattern general\n";
    let line = |line: u32, expected: &str, got: &str| {
        format!("cannot read line {line} of `a`: expected {expected}, got {got}")
    };
    let all = |expected: &str, got: &str| {
        format!("cannot read all of `a`: expected {expected}, got {got}")
    };
    let banner = "`%%MatrixMarket matrix coordinate FIELD SYMMETRY` on line 1";
    let sizes = "the rows, as many columns, and the entries";
    let metis = "the vertices, the edges, and perhaps a format such as 001 or 011";
    let dimacs = "`p`, a kind, the vertices and the edges";
    for (format, content, expected) in [
        (MatrixMarket, "3 3 1\n1 2\n".into(), line(1, banner, "`3 3 1`")),
        (
            MatrixMarket,
            "%%MatrixMarket matrix array real general\n2 2\n".into(),
            line(1, banner, "`%%matrixmarket matrix array real general`"),
        ),
        (
            MatrixMarket,
            mtx.replace("pattern", "complex") + "1 1 0\n",
            line(1, "the field `real`, `integer` or `pattern`", "`complex`"),
        ),
        (
            MatrixMarket,
            mtx.replace("general", "hermitian") + "1 1 0\n",
            line(1, "`general`, `symmetric` or `skew-symmetric`", "`hermitian`"),
        ),
        (MatrixMarket, mtx.to_owned() + "3 3\n", line(2, sizes, "`3 3`")),
        (MatrixMarket, mtx.to_owned() + "3 3 1\n1 4\n", line(3, "a vertex from 1 to 3", "`4`")),
        (MatrixMarket, mtx.to_owned() + "3 3 1\n0 1\n", line(3, "a vertex from 1 to 3", "`0`")),
        (
            MatrixMarket,
            mtx.to_owned() + "3 3 1\n1\n",
            line(3, "a vertex from 1 to 3", "the end of the line"),
        ),
        (MatrixMarket, mtx.to_owned() + "3 3 1\n1 2 5\n", line(3, "the end of the line", "`5`")),
        (MatrixMarket, mtx.to_owned() + "3 3 2\n1 2\n", all("2 edges, as its header says", "1")),
        (
            MatrixMarket,
            mtx.replace("pattern", "real") + "2 2 1\n1 2 heavy\n",
            line(3, "a number", "`heavy`"),
        ),
        (
            MatrixMarket,
            mtx.to_owned() + "9999999999 9999999999 1\n1 2\n",
            line(2, "at most 2^32 - 1 vertices", "9999999999 of them"),
        ),
        (Metis, "3\n2\n1\n".into(), line(1, metis, "`3`")),
        (Metis, "3 1 7\n2\n1\n\n".into(), line(1, metis, "`7`")),
        (Metis, "3 1\n2\n1\n".into(), all("3 lines of neighbours", "2")),
        (
            Metis,
            "2 1\n2\n\n".into(),
            all("every edge from both ends, with the same weight", "edges from one end only"),
        ),
        (
            Metis,
            "2 1 001\n2 5\n1 6\n".into(),
            all("every edge from both ends, with the same weight", "edges from one end only"),
        ),
        (Metis, "2 2\n2\n1\n".into(), all("2 edges, as its header says", "1")),
        (Metis, "2 1\n2\n1\n1\n".into(), line(4, "the end after 2 lines of neighbours", "`1`")),
        (Metis, "2 1 001\n2\n1 5\n".into(), line(2, "a number", "the end of the line")),
        (Metis, "2 1 100\n\n4 1\n".into(), line(2, "a number", "the end of the line")),
        (Dimacs, "a 1 2 3\n".into(), line(1, dimacs, "`a 1 2 3`")),
        (Dimacs, "p sp three 1\n".into(), line(1, dimacs, "`p sp three 1`")),
        (
            Dimacs,
            "p sp 2 1\nb 1 2 3\n".into(),
            line(2, "a line that begins with `a` or `e`", "`b`"),
        ),
        (Dimacs, "p sp 2 1\na 1 2\n".into(), line(2, "a number", "the end of the line")),
        (Dimacs, "p tw 2 1\n1 2 3\n".into(), line(2, "the end of the line", "`3`")),
        (Dimacs, "p tw 2 2\n1 2\n".into(), all("2 edges, as its header says", "1")),
    ] {
        assert_eq!(refused(format, &content), expected, "{content:?}");
    }
    let square = refused(MatrixMarket, &(mtx.to_owned() + "3 4 1\n1 2\n"));
    assert_eq!(
        square,
        line(2, "a square matrix, of edges between vertices", "3 rows and 4 columns")
            + "\n\nhint: of a bipartite graph, number the columns after the rows, an edge a line"
    );
    let negative = refused(MatrixMarket, &(mtx.replace("pattern", "real") + "2 2 1\n1 2 -1\n"));
    assert_eq!(
        negative,
        line(3, "a weight of 0 or more", "`-1`")
            + "\n\nhint: `--weights none` reads the edges without weights"
    );
}

#[test]
fn weights_are_left_out_where_none_are_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { weights: Weights::Ignore, ..OpenOptions::default() };
    let content = GENERAL.replace("0.5", "-0.5");
    let mut source = open(&file(&dir, "a.mtx", content), &options).unwrap();
    assert!(!source.weighted());
    assert_eq!(drain(source.as_mut()).unwrap(), (vec![(1, 2), (3, 1)], vec![]));
}
