"""GraphBolt's data sets on disk: a folder with `metadata.yaml`, of one kind of nodes and edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .dataset import Array, Dataset, split_name
from .reading import mapped
from .rows import Rows, csv_batches, from_file

METADATA = "metadata.yaml"
SETS = {"train_set": "train", "validation_set": "val", "test_set": "test"}


def is_one(folder: Path) -> bool:
    """Whether a folder has such a data set."""
    return (folder / METADATA).is_file()


def from_folder(folder: Path) -> Dataset:
    """What `metadata.yaml` names: edges, features of nodes, and the splits of the first task."""
    said = _metadata(folder)
    graph = said.get("graph") or {}
    nodes, edges = _only(folder, graph, "nodes"), _only(folder, graph, "edges")
    vertices = int(nodes["num"])
    tasks = said.get("tasks") or []
    splits, labels = _splits(folder, tasks[0], vertices) if tasks else ({}, None)
    return Dataset(
        edges=iter(_edges(folder, edges)),
        vertices=vertices,
        features=_features(folder, said.get("feature_data") or []),
        labels=labels,
        splits=splits,
    )


def _metadata(folder: Path) -> dict[str, Any]:
    path = folder / METADATA
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise InputError.of(
            "read", path, got="PyYAML is not installed", hint="pip install pyyaml"
        ) from error
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError.of("read", path, expected="YAML", got=error) from error
    if not isinstance(said, dict) or not isinstance(said.get("graph"), dict):
        raise InputError.of("read", path, expected="`graph` with `nodes` and `edges`", got="none")
    return said


def _only(folder: Path, graph: dict[str, Any], part: str) -> dict[str, Any]:
    """The only kind of nodes or edges."""
    kinds = graph.get(part)
    if not isinstance(kinds, list) or len(kinds) != 1 or not isinstance(kinds[0], dict):
        got = f"{len(kinds)} kinds" if isinstance(kinds, list) else "none"
        raise InputError.of(
            "read",
            folder / METADATA,
            expected=f"one kind of {part}",
            got=got,
            hint="`tiergraph.build_hetero` takes nodes and edges of several kinds",
        )
    wanted = "num" if part == "nodes" else "path"
    if wanted not in kinds[0]:
        raise InputError.of("read", folder / METADATA, expected=f"`{wanted}` of {part}", got="none")
    return dict(kinds[0])


def _path(folder: Path, said: dict[str, Any]) -> Path:
    path = folder / str(said.get("path", ""))
    if not path.is_file():
        raise InputError.of("read", folder / METADATA, expected="a file", got=f"`{path}`")
    return path


def _edges(folder: Path, said: dict[str, Any]) -> Any:
    """Edges of CSV without a header, or of an array of shape (2, E)."""
    path = _path(folder, said)
    if said.get("format") == "csv":
        for batch in csv_batches(path, np.int64):
            if batch.shape[1] != 2:
                got = f"{batch.shape[1]}"
                raise InputError.of("read", path, expected="two ids a line", got=got)
            yield batch[:, 0], batch[:, 1]
        return
    pairs = mapped(path)
    if pairs.ndim != 2 or 2 not in pairs.shape:
        raise InputError.of("read", path, expected="shape (2, E)", got=str(pairs.shape))
    src, dst = pairs if pairs.shape[0] == 2 else pairs.T
    yield src, dst


def _features(folder: Path, listed: list[dict[str, Any]]) -> Rows | None:
    """The first features of nodes that are a matrix."""
    of_nodes = [said for said in listed if said.get("domain") == "node"]
    named = [said for said in of_nodes if said.get("name") in ("feat", "x", "features")]
    for said in named or of_nodes:
        if said.get("format") == "numpy" and mapped(_path(folder, said)).ndim == 2:
            return from_file(_path(folder, said))
    return None


def _splits(
    folder: Path, task: dict[str, Any], vertices: int
) -> tuple[dict[str, Array], Array | None]:
    """Positions of seeds by split, and the labels of seeds: -1 of other vertices."""
    splits: dict[str, Array] = {}
    labels = np.full(vertices, -1, np.int64)
    labelled = False
    for name, split in SETS.items():
        sets = task.get(name)
        if not sets:
            continue
        data = {said.get("name"): said for said in sets[0].get("data") or []}
        seeds_said = data.get("seeds") or data.get("seed_nodes")
        if seeds_said is None or len(sets) != 1:
            raise InputError.of(
                "read", folder / METADATA, expected=f"`seeds` of one kind in `{name}`", got="others"
            )
        seeds = np.asarray(_array(folder, seeds_said), np.int64)
        if seeds.ndim != 1:
            # Of links, which are pairs, there are no labels of vertices.
            continue
        splits[split_name(split)] = seeds
        if "labels" in data:
            labels[seeds] = np.asarray(_array(folder, data["labels"])).reshape(len(seeds))
            labelled = True
    return splits, labels if labelled else None


def _array(folder: Path, said: dict[str, Any]) -> Array:
    path = _path(folder, said)
    if said.get("format") == "csv":
        return np.concatenate(list(csv_batches(path, np.int64)))[:, 0]
    return np.asarray(mapped(path))
