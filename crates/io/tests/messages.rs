//! Every message that this crate writes, whole. Those of failing drives are in `faults.rs`.

mod common;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use common::{PAGE, TestFile, run};
use tiergraph_io::engine::{ModelledDrive, Posix};
use tiergraph_io::{
    EngineChoice, EnginePool, FileId, FileSet, Pattern, Read, Wait, Workload, measure,
};
use tiergraph_mem::AlignedBuf;

/// The message of one read that cannot be done.
fn refused(test: &TestFile, read: Read) -> String {
    let mut engine = Posix::new(Arc::clone(&test.files), 1);
    let done = run(&mut engine, vec![read], Wait::One).remove(0);
    done.result.expect_err("the read cannot be done").to_string()
}

#[test]
fn reads_that_cannot_be_done() {
    let test = TestFile::new(32 * PAGE, 2, 4 * PAGE);
    let path = test.paths[0].display();
    assert_eq!(
        refused(&test, test.read(512, PAGE, 0)),
        format!(
            "cannot read `{path}`: expected multiples of `4.0 KiB`, got `4096` bytes at offset `512`"
        )
    );
    assert_eq!(
        refused(&test, test.read(3 * PAGE, 2 * PAGE, 0)),
        format!(
            "cannot read `{path}`: expected a read inside one stripe unit of `16.0 KiB`, got `8192` \
             bytes at offset `12288`"
        )
    );
    assert_eq!(
        refused(&test, Read { len: 2 * PAGE, ..test.read(0, PAGE, 0) }),
        format!(
            "cannot read `{path}`: expected at most the buffer's `4.0 KiB`, got `8192` bytes at \
             offset `0`"
        )
    );
    let mut two = FileSet::new();
    two.open(&test.paths[0]).unwrap();
    let second = two.open(&test.paths[0]).unwrap();
    let buffer = AlignedBuf::zeroed(PAGE).unwrap();
    assert_eq!(
        refused(
            &test,
            Read { file: second, offset: 0, len: PAGE, to: buffer.into(), at: 0, tag: 0 }
        ),
        "cannot read file `1`: expected one of the `1` files of the set"
    );
}

#[test]
fn files_that_cannot_be_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, short) = (directory.path().join("a.blocks"), directory.path().join("b.blocks"));
    let mut files = FileSet::new();
    assert_eq!(
        files.open(&missing).unwrap_err().to_string(),
        format!("cannot open `{}`: No such file or directory (os error 2)", missing.display())
    );
    fs::write(&missing, vec![0; PAGE]).unwrap();
    fs::write(&short, vec![0; 2 * PAGE]).unwrap();
    assert_eq!(
        files.open_striped(&[missing.clone(), short], PAGE as u64).unwrap_err().to_string(),
        format!(
            "cannot open `{}`: expected `8192` bytes on stripe `0` of a file of `12288`, got \
             `4096`\n\nhint: give the stripes in the order in which the graph was built",
            missing.display()
        )
    );
    assert_eq!(
        files.open_striped(&[missing], 1000).unwrap_err().to_string(),
        "cannot open a striped file: expected one path or more and a stripe unit of whole pages \
         of `4.0 KiB`, got 1 paths and `1000` bytes"
    );
    assert!(files.is_empty(), "what failed is not in the set");
}

#[test]
fn engines_and_drives_that_do_not_exist() {
    assert_eq!(
        "spdk".parse::<EngineChoice>().unwrap_err().to_string(),
        "cannot use the I/O engine `spdk`: expected one of `auto`, `uring`, `posix`, \
         `posix-pool`, `null`, `nvme:PCI-ADDRESS`, `passthrough:/dev/ng0n1`, `modelled:DRIVE*N`, \
         `gpu`, `gpu:PCI-ADDRESS`, `gpu:modelled:DRIVE*N`, `gpu:auto`, `gpu:coupled`, \
         `gpu:coupled-cache`"
    );
    for choice in [
        "auto",
        "uring",
        "posix",
        "null",
        "nvme:0000:01:00.0,0001:e1:00.1",
        "passthrough:/dev/ng0n1,/dev/nvme1n1",
        "modelled:p5510*12",
        "modelled:980pro*1:posix-pool",
        "gpu",
        "gpu:0000:01:00.0",
        "gpu:modelled:p5510*12",
        "gpu:auto",
        "gpu:coupled:modelled:p5510*12",
        "gpu:coupled-cache",
        "gpu:coupled-cache:modelled:p5510*12",
        "gpu:auto:0000:01:00.0,0000:02:00.0",
    ] {
        assert_eq!(choice.parse::<EngineChoice>().unwrap().to_string(), choice);
    }
    for drives in [
        "p5510*0",
        "p5510*x",
        "p5510*65",
        "p5510:nvme:0000:01:00.0",
        "p5510:passthrough:/dev/ng0n1",
        "p5510:modelled:p5510",
    ] {
        let error = format!("modelled:{drives}").parse::<EngineChoice>().unwrap_err().to_string();
        assert!(error.contains("`p5510*4:uring`"), "{error}");
    }
    for (drives, reason) in
        [("gpu:modelled:p5510*2:uring", "drives alone"), ("gpus", "one of `auto`")]
    {
        let error = drives.parse::<EngineChoice>().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let of_host = "gpu".parse::<EngineChoice>().unwrap().check_for_host().unwrap_err().to_string();
    assert!(
        of_host.contains("cannot use the I/O engine `gpu`: expected a loader or a graph on a GPU"),
        "{of_host}"
    );
    let unknown = "modelled:floppy".parse::<EngineChoice>().unwrap_err().to_string();
    assert!(unknown.contains("`floppy`: expected one of `980pro`"), "{unknown}");
    let address = "nvme:0000:01:00".parse::<EngineChoice>().unwrap_err().to_string();
    assert!(address.contains("PCI address `0000:01:00`"), "{address}");
    assert_eq!(
        "passthrough:ng0n1".parse::<EngineChoice>().unwrap_err().to_string(),
        "cannot use the NVMe drive `ng0n1`: expected the path of a device, such as `/dev/ng0n1`\n\n\
         hint: `ls /dev/ng*` names the devices of the drives that the kernel has"
    );
    assert_eq!(
        ModelledDrive::new(0.0, 1e6, Duration::ZERO).unwrap_err().to_string(),
        "cannot model a drive: expected at least `1` byte and `1` read a second, got `0` bytes, \
         `1000000` reads"
    );
}

#[test]
fn ceilings_that_cannot_be_measured() {
    let test = TestFile::new(32 * PAGE, 1, PAGE);
    let good = Workload {
        block_bytes: PAGE,
        depth: 1,
        threads: 1,
        pattern: Pattern::Sequential,
        duration: Duration::from_secs(1),
        bytes: 1,
    };
    let message = |files: &Arc<FileSet>, w: Workload| {
        let pool = EnginePool::new(Arc::clone(files), EngineChoice::Posix.factory(1), 1);
        let ids: Vec<FileId> = files.ids().collect();
        measure(&pool, &ids, &w).unwrap_err().to_string()
    };
    assert_eq!(
        message(&test.files, Workload { block_bytes: 1000, ..good }),
        "cannot measure the ceiling: expected blocks of whole pages of `4.0 KiB`, got `1000` bytes"
    );
    assert_eq!(
        message(&test.files, Workload { threads: 0, ..good }),
        "cannot measure the ceiling: expected a depth and a number of threads above 0, got depth \
         `1`, threads `0`"
    );
    assert_eq!(
        message(&Arc::new(FileSet::new()), good),
        "cannot measure the ceiling: expected a file that is not empty, got none"
    );
}
