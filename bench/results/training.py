"""Tables of what the scripts measure that sample, gather and train on a CPU."""

from __future__ import annotations

import statistics

from runs import Run
from tables import Record, Table, median, middle, percent

GB = 1e9
MB = 1e6
PAGE_BYTES = 4096
FLOAT_BYTES = 4


def out_of_core(run: Run) -> list[Table]:
    """An epoch beside memory maps, in a cgroup."""
    done = run.results
    rows = []
    for name, runs in done["runs"].items():
        seconds = median([epoch_seconds(r) for r in runs])
        share = median([r.get("share", 1.0) for r in runs])
        read = median([r["bytes_ssd"] / MB for r in runs if "bytes_ssd" in r])
        rows.append([name, seconds, percent(share), read])
    header = ["", "s an epoch", "of it measured", "MB read"]
    title = (
        f"An epoch over {done['feature_bytes'] / 2**30:.0f} GiB of features in a cgroup of "
        f"{done['limit_bytes'] / 2**20:.0f} MiB, RMAT-{run.configuration['scale']}"
    )
    note = (
        "`map` is a memory map as it comes, when the kernel reads ahead at every fault and the "
        "cgroup has no room for that; `no read-ahead` is `MADV_RANDOM`. Where the limit ended an "
        "epoch, its seconds are in proportion to the batches done."
    )
    return [Table(title, header, rows, note)]


def epoch_seconds(record: Record) -> float:
    """Seconds of a whole epoch, in proportion where the limit ended it."""
    return float(record["seconds"] / record.get("share", 1.0))


def sampling(run: Run) -> list[Table]:
    """Sampling beside GraphBolt, in memory."""
    rows = []
    for size in dict.fromkeys(r["batch_size"] for r in run.results["runs"]):
        ours, theirs = (sampling_speed(run, size, name) for name in ("tiergraph", "graphbolt"))
        rows.append([size, ours, theirs, ours and theirs and ours / theirs])
    version = run.results["graphbolt"]["dgl"]
    header = ["batch size", "tiergraph", f"GraphBolt of DGL {version}", "times faster"]
    title = "Sampling [25, 10] with de-duplication, in memory, M edges/s"
    return [Table(f"{title}, RMAT-{run.configuration['scale']}", header, rows)]


def sampling_speed(run: Run, size: int, name: str) -> float | None:
    """Millions of edges a second of one engine at one batch size."""
    runs = [r[name] for r in run.results["runs"] if r["batch_size"] == size and name in r]
    return median([r["edges"] / r["seconds"] / MB for r in runs])


def gather(run: Run) -> list[Table]:
    """Gathering rows beside PyTorch's indexing, in memory."""
    ours, theirs = (median(run.results[name]) for name in ("tiergraph", "torch"))
    if not ours or not theirs:
        return []
    title = f"Gathering rows of 512 bytes, in memory, RMAT-{run.configuration['scale']}"
    header = ["tiergraph GB/s", "PyTorch's indexing GB/s", "times faster"]
    return [Table(title, header, [[ours / GB, theirs / GB, ours / theirs]])]


def memory(run: Run) -> list[Table]:
    """What a loader's process takes, beside what it was given."""
    given = run.results["memory_bytes"]
    rows = [
        [r["window"], given / MB, r["peak_bytes"] / MB, percent(r["peak_bytes"] / given)]
        for r in run.results["runs"]
        if "peak_bytes" in r
    ]
    header = ["window", "`memory=` MB", "cgroup's peak MB", "share"]
    features = run.results["feature_bytes"] / 2**20
    return [Table(f"A loader over {features:,.0f} MiB of features", header, rows)]


def reading_bound(run: Run) -> list[Table]:
    """Epochs that keep nothing and train nothing, beside bare reads."""
    done = run.results["runs"]
    ours = [r["run"]["bytes_ssd"] / r["run"]["seconds"] for r in done]
    bare = [(r["before"]["bandwidth"] + r["after"]["bandwidth"]) / 2 for r in done]
    share = median([a / b for a, b in zip(ours, bare, strict=True)])
    row = [statistics.median(ours) / MB, statistics.median(bare) / MB, percent(share)]
    header = ["loader MB/s", "bare reads of 4 KiB MB/s", "share"]
    title = f"A loader that keeps nothing, RMAT-{run.configuration['scale']}"
    note = "More than bare reads of 4 KiB: rows that lie side by side share a read."
    return [Table(title, header, [row], note if share and share > 1 else "")]


def training_bound(run: Run) -> list[Table]:
    """Training from memory beside training with a quarter of the data in memory."""
    rows = []
    for name, runs in run.results["runs"].items():
        seconds, train, wait = (
            middle(runs, key) for key in ("seconds", "seconds_train", "seconds_wait")
        )
        rows.append([name, seconds, train, wait, middle(runs, "bytes_ssd") / MB])
    header = ["data in memory", "s an epoch", "s training", "s waiting", "MB read"]
    return [Table(f"Training, RMAT-{run.configuration['scale']}", header, rows)]


def ablations(run: Run) -> list[Table]:
    """The loader less one of its parts, and preparing while training."""
    done, rows = run.results, []
    base = middle(done["variants"]["everything"]["runs"], "seconds")
    for name, record in done["variants"].items():
        runs = record["runs"]
        seconds, read = middle(runs, "seconds"), middle(runs, "bytes_ssd") / MB
        hits = 1 - middle(runs, "missed_rows") / middle(runs, "nodes")
        rows.append([name, seconds, seconds / base, read, percent(hits)])
    header = ["variant", "s an epoch", "times everything", "MB read", "rows hit"]
    parts = [Table(f"Nothing trained; {done['conditions']}", header, rows)]
    rows = []
    for name, record in done["overlap"].items():
        together, apart = (middle(record[how], "seconds") for how in ("together", "apart"))
        rows.append([name, together, apart, apart / together])
    header = ["model", "s an epoch", "s one after the other", "times longer"]
    return [*parts, Table("Batches prepared while the model trains", header, rows)]


def page_sharing(run: Run) -> list[Table]:
    """Bytes that an epoch reads, by the order of rows."""
    rows = []
    for record in sorted(run.results, key=lambda r: (r["batch_size"], r["window"])):
        stats = record["stats"]
        alone = stats["missed_rows"] * PAGE_BYTES
        shared = stats["bytes_ssd"] - stats["bytes_ssd_topology"]
        what = [record["order"], record["batch_size"], record["window"]]
        rows.append([*what, alone / MB, shared / MB, percent(shared / alone)])
    header = ["rows", "batch", "window", "a read a row MB", "read MB", "ratio"]
    features = run.configuration["features"]
    return [Table(f"An epoch's reads of {features} float32 features", header, rows)]


def accuracy(run: Run) -> list[Table]:
    """Scores of trained models."""
    rows = []
    for case in dict.fromkeys(record["case"] for record in run.results):
        of = [record for record in run.results if record["case"] == case and "score" in record]
        scores = [record["score"] for record in of]
        what = [case, of[0]["options"]["model"], of[0]["metric"], len(scores)]
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        rows.append([*what, statistics.mean(scores), spread, of[0]["at_least"]])
    header = ["graph", "model", "metric", "seeds", "mean %", "deviation", "to reach"]
    note = (
        "cora and citeseer: the standard split, whole neighbourhoods; amazon-photo and "
        "coauthor-cs: random splits with equally many labels a class; minesweeper: layer "
        "normalisation."
    )
    return [Table("Test scores, by the loop of `tiergraph train`", header, rows, note)]


TABLES = {
    "side_by_side-out-of-core": out_of_core,
    "side_by_side-sampling": sampling,
    "side_by_side-gather": gather,
    "overhead-memory": memory,
    "overhead-reading-bound": reading_bound,
    "overhead-training-bound": training_bound,
    "ablations": ablations,
    "page_sharing": page_sharing,
    "accuracy": accuracy,
}
"""The tables of each script, in the order of a machine's section."""
