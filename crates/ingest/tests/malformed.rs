//! Every malformed input is refused by a message that says where and why.
#![allow(clippy::unwrap_used)]

mod common;

use common::{file, message};
use tiergraph_ingest::source::{Format, OpenOptions, Weights};

fn text(content: &str, weights: Weights) -> String {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { weights, format: Some(Format::Text), ..OpenOptions::default() };
    message(&file(&dir, "edges.txt", content), &options)
}

fn pairs(content: &str) -> String {
    text(content, Weights::Auto)
}

#[test]
fn ids_of_edge_lists() {
    assert_eq!(
        pairs("# c\n1 2\n3 -4\n"),
        "cannot read line 3 of `edges.txt`: expected an unsigned 64-bit integer in column 2, got \
         `-4`"
    );
    assert_eq!(
        pairs("src,dst\n\n1,2\n7,x\n"),
        "cannot read line 4 of `edges.txt`: expected an unsigned 64-bit integer in column 2, got \
         `x`\n\nhint: `--ids names` reads ids that are names"
    );
    assert_eq!(
        pairs("18446744073709551616 1\n"),
        "cannot read line 1 of `edges.txt`: expected an unsigned 64-bit integer in column 1, got \
         `18446744073709551616`"
    );
    assert_eq!(
        pairs("1 2\n3\n"),
        "cannot read line 2 of `edges.txt`: expected a target id in column 2, got `3`"
    );
    assert_eq!(
        pairs("1,2\n3 4\n"),
        "cannot read line 2 of `edges.txt`: expected an unsigned 64-bit integer in column 1, got \
         `3 4`"
    );
    assert_eq!(
        pairs("1 2.5\n"),
        "cannot read line 1 of `edges.txt`: expected an unsigned 64-bit integer in column 2, got \
         `2.5`"
    );
}

#[test]
fn weights_of_edge_lists() {
    for (bad, got) in [("nan", "nan"), ("-0.5", "-0.5"), ("inf", "inf"), ("heavy", "heavy")] {
        assert_eq!(
            text(&format!("1 2 3\n4 5 {bad}\n"), Weights::Column(3)),
            format!(
                "cannot read line 2 of `edges.txt`: expected a weight of 0 or more in column 3, \
                 got `{got}`\n\nhint: `--weights none` reads only the ids"
            )
        );
    }
    assert_eq!(
        text("1 2 3\n4 5\n", Weights::Column(3)),
        "cannot read line 2 of `edges.txt`: expected a weight of 0 or more in column 3, got `4 5`\n\n\
         hint: `--weights none` reads only the ids"
    );
}

#[test]
fn the_line_is_right_beyond_the_first_part_and_chunk() {
    // Parts of a chunk are scanned by different threads, and 24 MB are several chunks.
    for lines in [100_000, 2_000_000] {
        let mut content = "123456 7890\n".repeat(lines);
        content.push_str("5 six\n");
        assert_eq!(
            pairs(&content),
            format!(
                "cannot read line {} of `edges.txt`: expected an unsigned 64-bit integer in \
                 column 2, got `six`\n\nhint: `--ids names` reads ids that are names",
                lines + 1
            )
        );
    }
}

#[test]
fn pair_files_and_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions::default();
    assert_eq!(
        message(&file(&dir, "a.u32", [0; 12]), &options),
        "cannot read `a.u32`: expected pairs of 8 bytes, got 12 bytes"
    );
    let npy = |descr: &str, shape: &str, data: &[u8]| {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        message(&file(&dir, "a.npy", bytes), &options)
    };
    assert_eq!(
        npy("<f4", "(1, 2)", &[0; 8]),
        "cannot read `a.npy`: expected an array of integers, got the type '<f4'"
    );
    assert_eq!(
        npy("<i4", "(6,)", &[0; 24]),
        "cannot read `a.npy`: expected the shape (E, 2) or (2, E), got (6,)"
    );
    assert_eq!(
        npy("<i4", "(3, 2)", &[0; 20]),
        "cannot read `a.npy`: expected 3 edges of 8 bytes after the header, got 20 bytes"
    );
    assert_eq!(
        npy("|i1", "(3, 2)", &[1, 2, 3, 0xfe, 5, 6]),
        "cannot read edge 1 of `a.npy`: expected ids of 0 or more, got `-2`"
    );
}

#[test]
fn adjacency_lists() {
    let dir = tempfile::tempdir().unwrap();
    let read = |format, content: &str, directed| {
        let options = OpenOptions { format: Some(format), directed, ..OpenOptions::default() };
        message(&file(&dir, "lines", content), &options)
    };
    assert_eq!(
        read(Format::Adjacency, "1 2\n2 1 x\n", None),
        "cannot read line 2 of `lines`: expected an unsigned 64-bit integer, got `x`"
    );
    assert_eq!(
        read(Format::Adjacency, "1 2\n2 3\n3 2\n", Some(false)),
        "cannot read all of `lines`: expected every edge of an undirected list from both ends, \
         got edges from one end only"
    );
    assert_eq!(
        read(Format::AsciiGraph, "2\n1\n2\n", None),
        "cannot read line 3 of `lines`: expected a vertex below 2, got `2`"
    );
    assert_eq!(
        read(Format::AsciiGraph, "3\n1\n\n", None),
        "cannot read all of `lines`: expected 3 lines of successors, got 2"
    );
    assert_eq!(
        read(Format::AsciiGraph, "1\n\n0\n", None),
        "cannot read line 3 of `lines`: expected the end after 1 lines of successors, got `0`"
    );
    assert_eq!(
        read(Format::AsciiGraph, "n\n", None),
        "cannot read line 1 of `lines`: expected the number of vertices, got `n`"
    );
}

#[test]
fn bvgraphs() {
    let dir = tempfile::tempdir().unwrap();
    let read = |properties: &str, graph: &[u8]| {
        let properties = format!("graphclass=it.unimi.dsi.webgraph.BVGraph\n{properties}");
        file(&dir, "g.properties", properties);
        message(&file(&dir, "g.graph", graph), &OpenOptions::default())
    };
    assert_eq!(
        read("nodes=4\n", &[]),
        "cannot read `arcs` in `g.properties`: expected a number, got nothing"
    );
    assert_eq!(
        read("nodes=4\narcs=1\n", &[]),
        "cannot decode bit 0 of `g.graph`: expected more bits, got the end of the file"
    );
    assert_eq!(
        read("nodes=4\narcs=1\n", &[0xf0]),
        "cannot read all of `g.graph`: expected 1 arcs, got 0"
    );
    // γ(1) = 010 for the outdegree, then 01: a reference by 1 from vertex 0.
    assert_eq!(
        read("nodes=4\narcs=1\n", &[0b0100_1000]),
        "cannot decode bit 5 of `g.graph`: expected a reference into the window, got 1 at vertex 0"
    );
}

#[test]
fn formats_that_are_not_supported() {
    let dir = tempfile::tempdir().unwrap();
    let formats = "expected one of `text`, `u32`, `u64`, `npy`, `graphalytics`, `adjacency`, \
                   `ascii-graph`, `bvgraph`, `matrix-market`, `metis`, `dimacs`, `sg`, `wsg`";
    let read = |name, content: &[u8]| message(&file(&dir, name, content), &OpenOptions::default());
    let refuses = |name, content: &[u8], got: &str, hint: &str| {
        let expected =
            format!("cannot find the format of `{name}`: {formats}, got {got}\n\nhint: {hint}");
        assert_eq!(read(name, content), expected);
        // What is evidently something else is no text, even if somebody says so.
        let text = OpenOptions { format: Some(Format::Text), ..OpenOptions::default() };
        message(&file(&dir, name, content), &text)
    };
    let text = OpenOptions { format: Some(Format::Text), ..OpenOptions::default() };
    for (name, content, format) in [
        (
            "a.txt",
            &b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"[..],
            "matrix-market",
        ),
        ("a.graph", b"2 1\n2\n1\n", "metis"),
        ("a.txt", b"c roads\np sp 3 2\na 1 2 7\na 2 3 1\n", "dimacs"),
    ] {
        assert_eq!(
            message(&file(&dir, name, content), &text),
            format!(
                "cannot find the format of `{name}`: {formats}, got lines of the format \
                 `{format}`\n\nhint: `--format {format}` reads them"
            )
        );
    }
    for (content, got, hint) in [
        (&b"PAR1...."[..], "Parquet", "give it a name that ends in `.parquet`"),
        (
            b"ORC....",
            "ORC",
            "in Python: `pyarrow.parquet.write_table(pyarrow.orc.read_table(FILE), 'edges.parquet')`",
        ),
        (
            &[1, 0, 0, 0],
            "bytes that are not text",
            "`--format u32` or `--format u64` reads pairs of binary ids",
        ),
    ] {
        assert_eq!(refuses("a.bin", content, got, hint), read("a.bin", content));
    }
    assert_eq!(
        read("a.txt", b"1 2\n2 3 4\n3 1\n4 1\n"),
        format!(
            "cannot find the format of `a.txt`: {formats}, got lines of numbers of which some \
             have more columns than others\n\n\
             hint: `--format adjacency` if a line is a vertex and its neighbours, `--weights none` if \
             only the columns of ids are to be read"
        )
    );
    assert_eq!(
        read("a.u32.gz", &[0; 8]),
        format!(
            "cannot find the format of `a.u32.gz`: {formats}, got a packed binary file\n\n\
             hint: unpack it first: `gunzip --keep`"
        )
    );
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let directory = message(&dir.path().join("sub"), &OpenOptions::default());
    assert_eq!(
        directory,
        "cannot read `sub`: expected a file, or a directory with one BVGraph or LDBC data set, got \
         a directory without any\n\nhint: name one of its files"
    );
    let missing = message(&dir.path().join("none.txt"), &OpenOptions::default());
    assert_eq!(missing, "cannot read `none.txt`: No such file or directory (os error 2)");
    assert_eq!(
        "edgelist".parse::<Format>().unwrap_err().to_string(),
        format!("cannot use the format `edgelist`: {formats}")
    );
}

/// What is said of lines that do not have an edge each.
#[test]
fn lines_of_edge_lists() {
    let fields = "\n\nhint: `--format adjacency` if a line is a vertex and its neighbours, `--weights \
                  none` if only the columns of ids are to be read";
    assert_eq!(
        pairs("1 2\n3 4\n5 6 7\n"),
        format!("cannot read line 3 of `edges.txt`: expected 2 fields, as before, got 3{fields}")
    );
    assert_eq!(
        pairs("src,dst,x\n1,2,a\n3,4\n"),
        format!("cannot read line 3 of `edges.txt`: expected 3 fields, as before, got 2{fields}")
    );
    assert_eq!(
        pairs("1,2,0.5\n3,4,0.5,6\n"),
        format!("cannot read line 2 of `edges.txt`: expected 3 fields, as before, got 4{fields}")
    );
    assert_eq!(
        pairs("src,dst,x\n1,2,3,4\n"),
        "cannot read line 2 of `edges.txt`: expected 3 fields, as the header has, got 4"
    );
    assert_eq!(
        pairs("1 2 3 4 5 6"),
        "cannot read `edges.txt`: expected an edge a line, got 6 numbers on its only line\n\n\
         hint: `--format adjacency` if they are a vertex and its neighbours, `--weights none` if only \
         the first two count"
    );
    let endless = "1 2 ".repeat(1 << 19);
    let long =
        "cannot read lines of `edges.txt`: expected lines of at most `1.0 MiB`, got a longer one";
    assert_eq!(pairs(&endless), long);
    assert_eq!(pairs(&format!("1 2\n{}", endless.repeat(5))), long);
    let late = format!("{}5 6\r7 8\n", "1 2\r\n".repeat(1 << 19));
    assert_eq!(
        pairs(&late),
        "cannot read line 524289 of `edges.txt`: expected line feeds at the ends of lines, got a \
         carriage return alone"
    );
}

#[test]
fn text_in_other_encodings() {
    let dir = tempfile::tempdir().unwrap();
    let utf16: Vec<u8> = "\u{feff}1 2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for format in [None, Some(Format::Text), Some(Format::Adjacency)] {
        let options = OpenOptions { format, ..OpenOptions::default() };
        assert_eq!(
            message(&file(&dir, "edges.txt", &utf16), &options),
            "cannot read `edges.txt`: expected text in UTF-8 or ASCII, got UTF-16\n\n\
             hint: convert it first: `iconv --from-code UTF-16 --to-code UTF-8`"
        );
    }
}

#[test]
fn columns_that_are_not_there() {
    let read = |content: &str, columns: &str| {
        let dir = tempfile::tempdir().unwrap();
        let columns = Some(columns.split(',').map(str::to_owned).collect());
        let options = OpenOptions { columns, ..OpenOptions::default() };
        message(&file(&dir, "edges.csv", content), &options)
    };
    assert_eq!(
        read("src,dst\n1,2\n", "src,src"),
        "cannot choose columns of `edges.csv`: expected each column once, got `src` twice"
    );
    assert_eq!(
        read("1,2\n", "1,3"),
        "cannot find the edges in `edges.csv`: expected a column `3`, got columns 1 to 2 without names\n\n\
         hint: `--columns SRC,DST` names the columns"
    );
}
