"""How many edges a second a build takes in, by input format.

The same R-MAT edges as drawn (duplicates and loops in) from binary pairs, Parquet, text and gzipped
text, and from names of vertices in Parquet and in text, into a directed graph with both directions
(tiles by target, rows by source: what a build writes by default), under a budget. Formats
interleave; a graph is removed before the next build.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from common import machine, reporting, rmat
from common.child import Child, UnavailableError
from common.reporting import Record, median, say

FORMATS = {
    "u32": "pairs.u32",
    "parquet": "pairs.parquet",
    "text": "pairs.txt",
    "gzip": "pairs.txt.gz",
    "names": "names.parquet",
    "names_text": "names.csv",
}
SCHEMA = pa.schema([("src", pa.uint32()), ("dst", pa.uint32())])
NAMED_SCHEMA = pa.schema([("src", pa.string()), ("dst", pa.string())])
BATCH_EDGES = 1 << 22
GZIP_LEVEL = 1


def main() -> None:
    """Writes the inputs of each scale, builds from them in turn, prints and saves."""
    options = _options()
    records: list[Record] = []
    for scale in options.scale:
        with reporting.data_directory("build_speed", options.keep) as directory:
            say(f"writing the inputs of scale {scale}")
            _write_inputs(directory, scale, options.formats)
            cache = machine.drop_page_cache()
            records += _measure(directory, scale, options)
        state = f"{cache} before each build; the host's cache is unknown"
        reporting.save(options, "build_speed", state, records)
    _print(records, options)


def _options() -> argparse.Namespace:
    parser = reporting.arguments(__doc__ or "", scale=22, repetitions=3)
    parser.set_defaults(scale=[22])
    for action in parser._actions:
        if action.dest == "scale":
            action.nargs = "+"
    parser.add_argument("--memory", default="1GiB", help="budget of the build")
    layouts = ["analytics", "training", "both"]
    parser.add_argument("--layouts", default="analytics", choices=layouts, help="of the graph")
    quick = ["u32", "parquet", "text"]
    parser.add_argument("--formats", nargs="+", default=quick, choices=list(FORMATS))
    return parser.parse_args()


def _write_inputs(directory: Path, scale: int, formats: list[str]) -> None:
    edges = rmat.pairs(scale)
    if "u32" in formats:
        edges.astype("<u4").tofile(directory / FORMATS["u32"])
    if "parquet" in formats:
        with pa.parquet.ParquetWriter(directory / FORMATS["parquet"], SCHEMA) as parquet:
            for batch in _batches(edges):
                parquet.write_batch(batch)
    if "names" in formats:
        with pa.parquet.ParquetWriter(directory / FORMATS["names"], NAMED_SCHEMA) as parquet:
            for batch in _batches(edges):
                parquet.write_batch(_named(batch))
    if "names_text" in formats:
        path = directory / FORMATS["names_text"]
        unquoted = pa.csv.WriteOptions(include_header=True, quoting_style="none")
        with pa.csv.CSVWriter(path, NAMED_SCHEMA, write_options=unquoted) as csv:
            for batch in _batches(edges):
                csv.write_batch(_named(batch))
    if "text" in formats or "gzip" in formats:
        plain = pa.csv.WriteOptions(include_header=False, delimiter="\t")
        with pa.csv.CSVWriter(directory / FORMATS["text"], SCHEMA, write_options=plain) as csv:
            for batch in _batches(edges):
                csv.write_batch(batch)
    if "gzip" in formats:
        zipped = directory / FORMATS["gzip"]
        text = directory / FORMATS["text"]
        with text.open("rb") as source, gzip.open(zipped, "wb", GZIP_LEVEL) as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _named(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same edges between names, such as `user_1234`."""
    prefix = pa.scalar("user_")
    columns = [
        pa.compute.binary_join_element_wise(prefix, column.cast(pa.string()), "")
        for column in batch.columns
    ]
    return pa.record_batch(columns, schema=NAMED_SCHEMA)


def _batches(edges: rmat.Ids) -> Iterator[pa.RecordBatch]:
    for part in (edges[i : i + BATCH_EDGES] for i in range(0, len(edges), BATCH_EDGES)):
        yield pa.record_batch([part[:, 0].copy(), part[:, 1].copy()], schema=SCHEMA)


def _measure(directory: Path, scale: int, options: argparse.Namespace) -> list[Record]:
    """A process of its own for each build, so that its peak is its own."""
    records: dict[str, Record] = {
        name: {
            "scale": scale,
            "format": name,
            "input_bytes": (directory / FORMATS[name]).stat().st_size,
            "repetitions": [],
        }
        for name in options.formats
    }
    for repetition in range(options.repetitions):
        say(f"repetition {repetition + 1} of {options.repetitions}")
        for name, record in records.items():
            shutil.rmtree(directory / "built.tg", ignore_errors=True)
            machine.drop_page_cache()
            child = Child(Path(sys.executable), "on_disk", threads=options.threads)
            try:
                answer = child.call(
                    "build",
                    source=str(directory / FORMATS[name]),
                    path=str(directory / "built.tg"),
                    undirected=False,
                    layouts=options.layouts,
                    memory=options.memory,
                    threads=options.threads,
                    ids="names" if name.startswith("names") else None,
                )
            except UnavailableError as error:
                say(f"{name}: {error}")
                record.setdefault("failures", []).append(str(error))
            else:
                record["repetitions"].append(answer)
            child.close()
    return list(records.values())


def _reading_speed(record: Record, report: Record) -> str:
    """Edges and bytes of the input a second, of the stage that reads it."""
    seconds = sum(stage["seconds"] for stage in report["stages"] if stage["name"] == "scan")
    megabytes = record["input_bytes"] / 1e6 / seconds
    return f"{report['edges_read'] / 1e6 / seconds:.1f} M/s, {megabytes:.0f} MB/s"


def _print(records: list[Record], options: argparse.Namespace) -> None:
    rows = []
    for record in records:
        done = record["repetitions"]
        reports = [answer["value"] for answer in done]
        stages: dict[str, list[float]] = {}
        for stage in (stage for report in reports for stage in report["stages"]):
            stages.setdefault(stage["name"], []).append(stage["seconds"])
        rows.append(
            [
                record["format"],
                record["scale"],
                record["input_bytes"] / 1e6,
                median([answer["seconds"] for answer in done]),
                median(
                    [
                        report["edges_read"] / 1e6 / a["seconds"]
                        for report, a in zip(reports, done, strict=True)
                    ]
                ),
                _reading_speed(record, reports[0]) if reports else "",
                round(max((a["peak_rss_bytes"] for a in done), default=0) / 1e6),
                ", ".join(f"{name} {median(seconds):.2f}" for name, seconds in stages.items()),
            ]
        )
    reporting.table(
        f"builds for {options.layouts} in {options.memory}, {options.threads} threads, "
        f"medians of {options.repetitions}",
        ("input", "scale", "input MB", "s", "M edges/s", "read", "RSS peak MB", "seconds by stage"),
        rows,
    )
    for record in records:
        for reason in record.get("failures", []):
            print(f"{record['format']} at scale {record['scale']}: {reason}")


if __name__ == "__main__":
    main()
