//! Removal of what killed builds left beside a graph's place, and of stripes that no graph has any more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::manifest::Manifest;
use crate::place::Place;

/// The file in every stripe that holds the id of the build that it belongs to.
pub(crate) const BUILD_ID: &str = "build_id";

/// Removes what killed builds left beside `place`, stripes included; a graph that one had moved aside
/// goes back. What cannot be removed stays.
pub(crate) fn remove_leftovers(place: &Place) {
    for leftover in unlocked(place, "old") {
        // Killed between two renames, where the file system cannot exchange names.
        if place.path.exists() || fs::rename(&leftover, &place.path).is_err() {
            remove_whole(&leftover);
        }
    }
    unlocked(place, "building").iter().for_each(|leftover| remove_whole(leftover));
}

/// Removes the stripes of a replaced graph.
fn remove_stripes(replaced: &Manifest) {
    for stripe in &replaced.stripes {
        // Never more than what is provably its own.
        let own = fs::read_to_string(stripe.join(BUILD_ID)).is_ok_and(|id| id == replaced.build_id);
        if own {
            let _ = fs::remove_dir_all(stripe);
        }
    }
}

/// Hidden siblings of `place` in this role that no process has locked.
fn unlocked(place: &Place, role: &str) -> Vec<PathBuf> {
    let before = format!(".{}.{role}-", place.name);
    let is_one = |name: &str| {
        let process = name.strip_prefix(&before);
        process.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
    };
    let siblings = place.path.parent().map(fs::read_dir);
    let entries = siblings.into_iter().flatten().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_one));
    let free = |path: &PathBuf| File::open(path).is_ok_and(|dir| dir.try_lock().is_ok());
    named.map(|entry| entry.path()).filter(free).collect()
}

/// Removes a directory that is not, or no longer, at a graph's path, and the stripes that its manifest,
/// or those of the graphs in it, name. Best effort: what cannot be removed stays, and no error is
/// returned.
pub(crate) fn remove_whole(directory: &Path) {
    let parts = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    for graph in parts.chain([directory.to_owned()]) {
        if let Ok(manifest) = Manifest::read(&graph) {
            remove_stripes(&manifest);
        }
    }
    let _ = fs::remove_dir_all(directory);
}
