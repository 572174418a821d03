//! The paper's setting in, the paper's conclusions out; and questions without an answer.
#![allow(clippy::unwrap_used)]

use tiergraph_core::ErrorKind;
use tiergraph_planner::{Bottleneck, Job, Parts, Plan, Question, plan};

/// A batch of Hyperion's GraphSAGE on rows of 4 KiB: 256 K of them from drives (figure 4), as many from the
/// host's memory as a third of that, and training that the link hides.
const IO_BOUND: Job = Job {
    batch_size: 8000,
    drive_bytes: 262_144.0 * 4096.0,
    drive_reads: 262_144.0,
    host_bytes: 87_381.0 * 4096.0,
    train_seconds: 0.015,
    lookup_seconds: 0.0,
    is_on_gpu: true,
};

fn asked<'a>(job: &'a Job, parts: &'a Parts, machine: &'a str, gpu: &'a str) -> Question<'a> {
    Question { job, parts, machine, gpu, drive: "p5510", budget: None }
}

fn on_a(job: &Job) -> Plan {
    plan(&asked(job, &Parts::built_in().unwrap(), "a", "a100")).unwrap()
}

#[test]
fn costs_are_those_of_the_papers_table() {
    let parts = Parts::built_in().unwrap();
    for (machine, gpu, dollars) in [("a", "a100", 48_971.0), ("b", "h800", 78_794.0)] {
        let planned = plan(&asked(&IO_BOUND, &parts, machine, gpu)).unwrap();
        assert_eq!(planned.estimates.len(), 12);
        assert_eq!(planned.estimates[11].dollars, dollars);
    }
}

#[test]
fn drives_pay_until_the_link_is_full() {
    let planned = on_a(&IO_BOUND);
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
    let planned = plan(&asked(&IO_BOUND, &parts, "b", "h800")).unwrap();
    assert_eq!((planned.best().drives, planned.best().bottleneck), (12, Bottleneck::Drives));
    assert!(planned.limit.contains("every slot has one"), "{}", planned.limit);
    assert_eq!(planned.one_more, None);
}

#[test]
fn times_are_those_of_equation_4() {
    let job = Job { lookup_seconds: 0.001, ..IO_BOUND };
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
    let dear = on_a(&IO_BOUND).estimates[3].dollars;
    let question = Question { budget: Some(dear), ..asked(&IO_BOUND, &parts, "a", "a100") };
    let planned = plan(&question).unwrap();
    assert_eq!(planned.estimates.len(), 4);
    let worth = |e: &tiergraph_planner::Estimate| e.seeds_per_second_and_dollar;
    assert!(planned.estimates.iter().all(|e| worth(e) <= worth(planned.best())));
    assert_eq!(planned.one_more, None, "there is no money for it");
    assert!(planned.limit.contains("the budget pays for no more"), "{}", planned.limit);
}

#[test]
fn jobs_that_drives_do_not_limit_are_told_so() {
    let computing = on_a(&Job { train_seconds: 2.0, ..IO_BOUND });
    assert_eq!((computing.best().drives, computing.best().bottleneck), (1, Bottleneck::Training));
    assert!(computing.limit.starts_with("Training limits it"), "{}", computing.limit);
    let in_memory = on_a(&Job { drive_bytes: 0.0, drive_reads: 0.0, ..IO_BOUND });
    assert_eq!(in_memory.best().drives, 1);
    assert!(in_memory.limit.starts_with("Nothing is read from drives"), "{}", in_memory.limit);
    // Where the CPU trains, nothing crosses the link.
    let parts = Parts::built_in().unwrap();
    let on_cpu = Job { is_on_gpu: false, train_seconds: 0.2, ..IO_BOUND };
    let planned = plan(&asked(&on_cpu, &parts, "a", "none")).unwrap();
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
    let good = || asked(&IO_BOUND, &parts, "a", "a100");
    refused(Question { budget: Some(20_000.0), ..good() }, &["$45583 or more", "got $20000"]);
    refused(Question { machine: "c", ..good() }, &["machine `c`", "`a`, `b`"]);
    refused(Question { gpu: "b200", ..good() }, &["GPU `b200`", "`a100`"]);
    refused(Question { drive: "floppy", ..good() }, &["`floppy`", "`p5510`"]);
    refused(Question { drive: "t705", ..good() }, &["Crucial T705", "its price"]);
    for job in [
        Job { batch_size: 0, ..IO_BOUND },
        Job { train_seconds: 0.0, ..IO_BOUND },
        Job { train_seconds: f64::NAN, ..IO_BOUND },
        Job { host_bytes: -1.0, ..IO_BOUND },
        Job { drive_reads: 0.0, ..IO_BOUND },
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
