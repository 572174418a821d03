//! Vertices found by the user's ids.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Layout, PACKED, Sample, cold, mix};

/// Many ids, some of them several times, are found as each is alone; of none there is none, and one that the graph
/// does not have is named.
#[test]
fn many_ids_are_found_like_one() {
    let sample = Sample::new(Layout { edges: 50_000, ..PACKED });
    let graph = sample.open(&cold(2)).unwrap();
    assert!(graph.order().is_reordered() && graph.ids().are_own());
    let all = graph.ids().all().unwrap().unwrap();
    // Among all, and within a part of them.
    for (from, to) in [(0, all.len()), (100, 1100)] {
        let some = |i: u64| all[from + mix(i) as usize % (to - from)];
        let ids: Vec<u64> = (0..3000).map(some).collect();
        let found = graph.ids().find(&ids).unwrap();
        for (id, &vertex) in ids.iter().zip(&found).step_by(101) {
            assert_eq!(graph.ids().find(&[*id]).unwrap(), [vertex]);
        }
        assert_eq!(graph.ids().of(&found).unwrap(), ids);
    }
    assert!(graph.ids().find(&[]).unwrap().is_empty());
    let absent = all[all.len() - 1] + 1;
    let many: Vec<u64> = all.iter().copied().chain([absent]).collect();
    let error = graph.ids().find(&many).unwrap_err().to_string();
    assert!(error.contains(&absent.to_string()), "{error}");
}
