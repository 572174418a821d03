//! Opening a directory in place of a file: it stands for the one graph of several files that it holds.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tiergraph_core::{Error, ErrorKind, Result};

use super::{bvgraph, graphalytics};

/// The suffix that WebGraph adds to the name of a graph whose arcs are reversed.
const TRANSPOSE: &str = "-t";

/// The path by which the graph in the directory `path` is opened, without an extension; `path` itself
/// where it is no directory.
///
/// # Errors
/// An I/O error; an input error where there is none, or more than one.
pub(super) fn graph_at(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() || bvgraph::has_properties(path) || graphalytics::is_data_set(path) {
        return Ok(path.to_path_buf());
    }
    let failed = |e| Error::io("list", path.display(), e);
    let mut graphs = BTreeSet::new();
    for entry in path.read_dir().map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let stem = file.with_extension("");
        let is_first = |extension| file.extension() == Some(OsStr::new(extension));
        if (is_first("graph") && bvgraph::has_properties(&stem))
            || (is_first("e") && graphalytics::is_data_set(&stem))
        {
            graphs.insert(stem);
        }
    }
    let is_transpose = |stem: &PathBuf| {
        let base = stem.to_str().and_then(|stem| stem.strip_suffix(TRANSPOSE));
        base.is_some_and(|base| graphs.contains(Path::new(base)))
    };
    let own: Vec<&PathBuf> = graphs.iter().filter(|stem| !is_transpose(stem)).collect();
    let refuse = |got: String, hint: String| {
        let error = Error::new(ErrorKind::Input, "read").object(path.display());
        error
            .expected("a file, or a directory with one BVGraph or LDBC data set")
            .got(got)
            .hint(hint)
    };
    match own[..] {
        [one] => Ok(one.clone()),
        [] => Err(refuse("a directory without any".into(), "name one of its files".into())),
        [first, ..] => Err(refuse(
            format!("a directory with {}", own.len()),
            format!("name one of them, such as `{}`", first.display()),
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_directory_stands_for_the_one_graph_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, make) = (directory.path(), |name: &str| {
            std::fs::write(directory.path().join(name), []).unwrap();
        });
        make("notes.txt");
        assert!(graph_at(path).unwrap_err().to_string().contains("a directory without any"));
        for name in ["a.graph", "a.properties", "a-t.graph", "a-t.properties", "b.graph"] {
            make(name);
        }
        assert_eq!(graph_at(path).unwrap(), path.join("a"));
        assert_eq!(graph_at(&path.join("notes.txt")).unwrap(), path.join("notes.txt"));
        make("c.v");
        make("c.e");
        let error = graph_at(path).unwrap_err().to_string();
        assert!(error.contains("a directory with 2") && error.contains("/a`"), "{error}");
    }
}
