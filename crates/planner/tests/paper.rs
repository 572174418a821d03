//! The paper's setting in, the paper's conclusions out; and questions without an answer.
#![allow(clippy::unwrap_used)]

use tiergraph_core::ErrorKind;
use tiergraph_planner::{Bottleneck, Job, Parts, Plan, Question, plan};

/// A batch of Hyperion's GraphSAGE on rows of 4 KiB: 256 K of them from drives (figure 4), as many from the
/// host's memory as a third of that, and training that the link hides.
fn io_bound() -> Job {
    Job {
        batch_size: 8000,
        drive_bytes: 262_144.0 * 4096.0,
        drive_reads: 262_144.0,
        host_bytes: 87_381.0 * 4096.0,
        train_seconds: 0.015,
        prepare_seconds: 0.0,
        lookup_seconds: 0.0,
        drive_share: 1.0,
        is_on_gpu: true,
        row_bytes: 0.0,
        device_rows: 0.0,
        host_rows: 0.0,
        misses: Vec::new(),
    }
}

/// The same, of which a million rows were in the GPU's memory and two in the host's, of ten: half of what
/// batches want is in the first million, and the rest is wanted evenly.
fn with_memory() -> Job {
    Job {
        row_bytes: 4096.0,
        device_rows: 1e6,
        host_rows: 2e6,
        misses: vec![(0.0, 674_082.0), (1e6, 337_041.0), (10e6, 0.0)],
        // 262,143 miss both, and 74,898 are in the host's memory.
        drive_bytes: 262_143.0 * 4096.0,
        drive_reads: 262_143.0,
        host_bytes: 74_898.0 * 4096.0,
        ..io_bound()
    }
}

fn asked<'a>(
    job: &'a Job,
    parts: &'a Parts,
    machine: &'a str,
    gpu: &'a str,
    drives: &'a [String],
) -> Question<'a> {
    let (device_cache, host_cache, budget) = (None, None, None);
    Question { job, parts, machine, gpu, drives, device_cache, host_cache, budget }
}

fn p5510() -> Vec<String> {
    vec!["p5510".into()]
}

fn on_a(job: &Job) -> Plan {
    plan(&asked(job, &Parts::built_in().unwrap(), "a", "a100", &p5510())).unwrap()
}

#[test]
fn costs_are_those_of_the_papers_table() {
    let parts = Parts::built_in().unwrap();
    for (machine, gpu, dollars) in [("a", "a100", 48_971.0), ("b", "h800", 78_794.0)] {
        let planned = plan(&asked(&io_bound(), &parts, machine, gpu, &p5510())).unwrap();
        assert_eq!(planned.estimates.len(), 12);
        assert_eq!(planned.estimates[11].dollars, dollars);
    }
}

#[test]
fn drives_pay_until_the_link_is_full() {
    let planned = on_a(&io_bound());
    // Three quarters of all bytes come from drives, of 750 K rows a second each: 6.1 of them fill 25 GB/s.
    let limits: Vec<Bottleneck> = planned.estimates.iter().map(|e| e.bottleneck).collect();
    assert!(limits[..6].iter().all(|&limit| limit == Bottleneck::Drives), "{limits:?}");
    assert!(limits[6..].iter().all(|&limit| limit == Bottleneck::Link), "{limits:?}");
    // A drive is cheap beside the machine: the best is where one more brings nothing.
    assert_eq!(planned.best().drives, 7);
    assert_eq!(planned.one_more, Some(0.0));
    assert!(planned.limit.starts_with("The link to the GPU limits it"), "{}", planned.limit);
    // On PCIe 5.0 the same drives are never enough.
    let parts = Parts::built_in().unwrap();
    let planned = plan(&asked(&io_bound(), &parts, "b", "h800", &p5510())).unwrap();
    assert_eq!((planned.best().drives, planned.best().bottleneck), (12, Bottleneck::Drives));
    assert!(planned.limit.contains("every slot has one"), "{}", planned.limit);
    assert_eq!(planned.one_more, None);
}

#[test]
fn times_are_those_of_equation_4() {
    let job = Job { lookup_seconds: 0.001, ..io_bound() };
    for estimate in on_a(&job).estimates {
        let drives = f64::from(estimate.drives);
        let expected = 262_144.0 / (750e3 * drives) + 0.001;
        assert!((estimate.drive_seconds - expected).abs() < 1e-12, "{estimate:?}");
        let longest = estimate.drive_seconds.max(estimate.link_seconds).max(estimate.train_seconds);
        assert_eq!(estimate.batch_seconds, longest);
        assert_eq!(estimate.seeds_per_second, 8000.0 / longest);
        let worth = estimate.seeds_per_second / estimate.dollars;
        assert_eq!(estimate.seeds_per_second_and_dollar, worth);
    }
}

#[test]
fn the_best_is_no_worse_than_any_and_a_budget_is_kept() {
    let parts = Parts::built_in().unwrap();
    let dear = on_a(&io_bound()).estimates[3].dollars;
    let (job, drives) = (io_bound(), p5510());
    let question = Question { budget: Some(dear), ..asked(&job, &parts, "a", "a100", &drives) };
    let planned = plan(&question).unwrap();
    assert_eq!(planned.estimates.len(), 4);
    let worth = |e: &tiergraph_planner::Estimate| e.seeds_per_second_and_dollar;
    assert!(planned.estimates.iter().all(|e| worth(e) <= worth(planned.best())));
    assert_eq!(planned.one_more, None, "there is no money for it");
    assert!(planned.limit.contains("the budget pays for no more"), "{}", planned.limit);
}

#[test]
fn jobs_that_drives_do_not_limit_are_told_so() {
    let computing = on_a(&Job { train_seconds: 2.0, ..io_bound() });
    assert_eq!((computing.best().drives, computing.best().bottleneck), (1, Bottleneck::Training));
    assert!(computing.limit.starts_with("Training limits it"), "{}", computing.limit);
    let in_memory = on_a(&Job { drive_bytes: 0.0, drive_reads: 0.0, ..io_bound() });
    assert_eq!(in_memory.best().drives, 1);
    assert!(in_memory.limit.starts_with("Nothing is read from drives"), "{}", in_memory.limit);
    // Where the CPU trains, nothing crosses the link.
    let parts = Parts::built_in().unwrap();
    let on_cpu = Job { is_on_gpu: false, train_seconds: 0.2, ..io_bound() };
    let planned = plan(&asked(&on_cpu, &parts, "a", "none", &p5510())).unwrap();
    assert!(planned.estimates.iter().all(|e| e.link_seconds == 0.0));
}

#[test]
fn questions_without_an_answer_are_refused_in_words() {
    let parts = Parts::built_in().unwrap();
    let refused = |question: Question<'_>, words: &[&str]| {
        let error = plan(&question).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        words.iter().for_each(|word| assert!(error.to_string().contains(word), "{error}"));
    };
    let (job, drives) = (io_bound(), p5510());
    let good = || asked(&job, &parts, "a", "a100", &drives);
    refused(Question { budget: Some(20_000.0), ..good() }, &["$45583 or more", "got $20000"]);
    refused(Question { machine: "c", ..good() }, &["machine `c`", "`a`, `b`"]);
    refused(Question { gpu: "b200", ..good() }, &["GPU `b200`", "`a100`"]);
    let (floppy, t705) = (["floppy".into()], ["t705".into()]);
    refused(Question { drives: &floppy, ..good() }, &["`floppy`", "`p5510`"]);
    refused(Question { drives: &t705, ..good() }, &["Crucial T705", "its price"]);
    refused(Question { host_cache: Some(1e9), ..good() }, &["`misses`", "once more"]);
    for job in [
        Job { batch_size: 0, ..io_bound() },
        Job { train_seconds: 0.0, ..io_bound() },
        Job { train_seconds: f64::NAN, ..io_bound() },
        Job { host_bytes: -1.0, ..io_bound() },
        Job { drive_reads: 0.0, ..io_bound() },
        Job { drive_share: 0.0, ..io_bound() },
        Job { drive_share: 1.1, ..io_bound() },
        Job { misses: vec![(0.0, 2.0), (1.0, 3.0)], row_bytes: 1.0, ..io_bound() },
        Job { misses: vec![(1.0, 2.0)], row_bytes: 1.0, ..io_bound() },
        Job { misses: vec![(0.0, 2.0)], ..io_bound() },
    ] {
        refused(Question { job: &job, ..good() }, &["plan for a job's"]);
    }
}

#[test]
fn a_users_catalogue_is_read_or_refused_with_its_name() {
    let text = "dollars_per_kwh = 0.2\n[gpus.none]\nname = 'none'\ndollars = 0\nsource = 'x'\n\
                [machines.mine]\nname = 'mine'\ndollars = 1000\ndrive_slots = 2\nwatts = 100\n\
                link_bytes_per_second = 1e9\nsource = 'x'";
    let parts = Parts::parse(text, "mine.toml").unwrap();
    let machine = parts.machine("mine").unwrap();
    assert!((parts.electricity(machine) - 876.0).abs() < 1e-9);
    // The program's drives, and the user's own.
    let drive = "\n[drives.t705]\nname = 'cheap'\nbytes_per_second = 1e9\nlatency_us = 9\ndollars = 1\n\
                 source = 'x'\nreads_per_second = { 512 = 1000 }";
    let parts = Parts::parse(&format!("{text}{drive}"), "mine.toml").unwrap();
    assert_eq!(parts.drive("t705").unwrap().name, "cheap");
    assert_eq!(parts.drive("p5510").unwrap().dollars, Some(308.0));
    let error = Parts::parse("x = 1", "mine.toml").unwrap_err().to_string();
    assert!(error.contains("mine.toml"), "{error}");
}

#[test]
fn more_memory_misses_less() {
    let job = with_memory();
    let (device, host) = job.caches();
    assert_eq!((device, host), (4096e6, 8192e6));
    // As it is: nothing changes.
    assert_eq!(job.with_caches(device, host), Some(job.clone()));
    // A million rows more, of those wanted evenly: 37,449 fewer from drives, and as many more from the host.
    let more = job.with_caches(device, host + 4096e6).unwrap();
    assert!((job.drive_reads - more.drive_reads - 37_449.0).abs() < 0.1, "{more:?}");
    assert!((more.read_bytes() - 4096.0).abs() < 1e-6);
    assert!((more.host_bytes - job.host_bytes - 37_449.0 * 4096.0).abs() < 4096.0);
    // On the GPU, they cross the link no more.
    let more = job.with_caches(device + 4096e6, host).unwrap();
    assert!((job.drive_reads - more.drive_reads - 37_449.0).abs() < 0.1);
    assert!((more.host_bytes - job.host_bytes).abs() < 1e-3, "as many of the next two million");
    // All of it: no reads.
    let all = job.with_caches(10e6 * 4096.0, 1e12).unwrap();
    assert_eq!(
        (all.drive_reads, all.drive_bytes, all.host_bytes, all.host_rows),
        (0.0, 0.0, 0.0, 0.0)
    );
    // None of it, of a job that read nothing: a page a row.
    let small = Job { row_bytes: 512.0, ..all.clone() };
    let none = small.with_caches(0.0, 0.0).unwrap();
    assert_eq!((none.drive_reads, none.read_bytes()), (674_082.0, 4096.0));
    assert_eq!(io_bound().with_caches(1.0, 1.0), None);
}

#[test]
fn a_plan_says_what_memory_is_worth_and_buys_it_where_it_pays() {
    let planned = on_a(&with_memory());
    // The link limits the best: memory of the host's brings nothing, 10 GB of the GPU's some.
    let more = planned.more_memory.unwrap();
    assert!(more.host.abs() < 1e-9 && more.device > 0.2 && more.device < 0.4, "{more:?}");
    assert_eq!(on_a(&io_bound()).more_memory, None);
    assert_eq!(planned.best().host_cache_bytes, 8192e6);

    let drives = p5510();
    let text = include_str!("../parts.toml");
    let priced = text.replace("drive_slots = 12", "drive_slots = 1\nmemory_dollars_per_gib = 2.0");
    let parts = Parts::parse(&priced, "priced").unwrap();
    let job = with_memory();
    let question = asked(&job, &parts, "a", "a100", &drives);
    let planned = plan(&question).unwrap();
    // With one slot for a drive, memory for all rows is the way: 32 GiB, which is the next size.
    let best = planned.best();
    assert_eq!(best.device_cache_bytes + best.host_cache_bytes, 10e6 * 4096.0);
    assert!((best.dollars - 45_583.0 - 64.0).abs() < 1e-6, "{best:?}");
    // Not where the budget does not pay for it, nor where memory is said.
    let poor = Question { budget: Some(45_600.0), ..question.clone() };
    assert_eq!(plan(&poor).unwrap().best().host_cache_bytes, 8192e6);
    let said = Question { host_cache: Some(0.0), ..question };
    assert_eq!(plan(&said).unwrap().best().host_cache_bytes, 0.0);
}

#[test]
fn all_kinds_with_a_price_are_compared() {
    let parts = Parts::built_in().unwrap();
    let job = io_bound();
    let planned = plan(&asked(&job, &parts, "a", "a100", &[])).unwrap();
    let kinds: Vec<&str> = planned.kinds.iter().map(|kind| kind.drive.as_str()).collect();
    assert_eq!(kinds, ["980pro", "p5510"], "a third of the price, and more reads a second");
    assert_eq!(planned.kinds[0], *planned.best());
    let worth: Vec<f64> = planned.kinds.iter().map(|k| k.seeds_per_second_and_dollar).collect();
    assert!(worth[0] > worth[1]);
}

#[test]
fn a_share_of_the_drives_rate_and_slow_preparation_are_said() {
    let whole = on_a(&io_bound());
    let part = on_a(&Job { drive_share: 0.8, ..io_bound() });
    let (whole, part) = (whole.estimates[0].drive_seconds, part.estimates[0].drive_seconds);
    assert!((part - whole / 0.8).abs() < 1e-12);
    let slow = on_a(&Job { lookup_seconds: 1.0, ..io_bound() });
    assert!(slow.limit.starts_with("Preparing batches limits it"), "{}", slow.limit);
}
