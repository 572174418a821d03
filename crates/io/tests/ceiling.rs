//! The ceiling counts what was read, and ends.

mod common;

use std::time::Duration;

use common::{PAGE, TestFile};
use tiergraph_core::Result;
use tiergraph_io::{Ceiling, EngineChoice, EnginePool, Pattern, Workload};

fn measure(test: &TestFile, engine: EngineChoice, workload: &Workload) -> Result<Ceiling> {
    let pool = EnginePool::new(std::sync::Arc::clone(&test.files), engine.factory(4), 2);
    tiergraph_io::measure(&pool, &[test.file], workload)
}

fn workload(pattern: Pattern) -> Workload {
    Workload {
        block_bytes: 4 * PAGE,
        depth: 4,
        threads: 2,
        pattern,
        duration: Duration::from_secs(30),
        bytes: 60 * PAGE as u64,
    }
}

#[test]
fn a_limit_of_bytes_is_kept_by_all_threads_together() {
    // 15 whole blocks: the limit reads each once.
    let test = TestFile::new(60 * PAGE, 3, 4 * PAGE);
    for engine in [EngineChoice::Auto, EngineChoice::Posix, EngineChoice::Null] {
        for pattern in [Pattern::Sequential, Pattern::Random] {
            let ceiling: Ceiling = measure(&test, engine.clone(), &workload(pattern)).unwrap();
            assert_eq!(ceiling.bytes, 60 * PAGE as u64, "{ceiling:?}");
            assert!((ceiling.bandwidth * ceiling.seconds - ceiling.bytes as f64).abs() < 1.0);
            assert!((ceiling.iops * ceiling.seconds - 15.0).abs() < 1e-6);
            assert_eq!((ceiling.depth, ceiling.threads), (4, 2));
        }
    }
}

#[test]
fn a_limit_of_time_ends_a_measurement_that_could_go_on() {
    let test = TestFile::new(61 * PAGE, 1, PAGE);
    let limits = Workload {
        duration: Duration::from_millis(50),
        bytes: u64::MAX,
        ..workload(Pattern::Sequential)
    };
    let ceiling = measure(&test, EngineChoice::Auto, &limits).unwrap();
    assert!(ceiling.bytes > 61 * PAGE as u64, "it starts again at the end: {ceiling:?}");
}

#[test]
fn a_block_across_stripes_is_an_error_of_the_measurement() {
    let test = TestFile::new(60 * PAGE, 3, 2 * PAGE);
    let error = measure(&test, EngineChoice::Auto, &workload(Pattern::Random)).unwrap_err();
    assert!(error.to_string().contains("inside one stripe unit of `8.0 KiB`"), "{error}");
}
