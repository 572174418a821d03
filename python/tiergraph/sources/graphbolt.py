"""GraphBolt's data sets on disk: a folder with `metadata.yaml`.

The specification: https://www.dgl.ai/dgl_docs/stochastic_training/ondisk-dataset-specification.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .dataset import (
    MAIN_FEATURES,
    MAIN_LABELS,
    Again,
    Array,
    Batch,
    Dataset,
    Type,
    TypedDataset,
    narrowed,
)
from .reading import mapped, reading
from .rows import Rows, csv_batches, from_object

METADATA = "metadata.yaml"
SETS = {"train_set": "train", "validation_set": "val", "test_set": "test"}
FEATURES = ("feat", "x", "features")
"""What the features are called that models take."""

Said = dict[str, Any]
"""What the file says of one thing."""


def is_one(folder: Path) -> bool:
    """Whether a folder has such a data set."""
    return (folder / METADATA).is_file()


def has_types(folder: Path) -> bool:
    """Whether its nodes or edges are of several kinds."""
    said = _Folder(folder)
    return any(len(said.kinds(part)) > 1 for part in ("nodes", "edges"))


def from_folder(folder: Path) -> Dataset:
    """What `metadata.yaml` names, of one kind of nodes and edges."""
    said = _Folder(folder)
    (nodes,), (edges,) = said.kinds("nodes"), said.kinds("edges")
    said.check_features({"node": None, "edge": None})
    vertices = said.count(nodes)
    seeds = said.seeds({None: vertices})
    splits, labels = seeds.get(None, ({}, {}))
    return Dataset(
        edges=said.edges(edges),
        vertices=vertices,
        features=said.features("node", None),
        labels=labels,
        splits=splits,
        edge_features=said.features("edge", None),
        notes=said.notes,
    )


def typed(folder: Path) -> TypedDataset:
    """What `metadata.yaml` names, by the types of nodes and edges."""
    said = _Folder(folder)
    counts = {said.name(kind): said.count(kind) for kind in said.kinds("nodes")}
    types = {said.edge_type(kind): kind for kind in said.kinds("edges")}
    said.check_features({"node": set(counts), "edge": {":".join(of) for of in types}})
    seeds = said.seeds(dict(counts))
    nodes = {}
    for name, vertices in counts.items():
        splits, labels = seeds.get(name, ({}, {}))
        features = said.features("node", name)
        nodes[name] = Dataset(vertices=vertices, features=features, labels=labels, splits=splits)
    edges = {
        edge_type: Dataset(
            edges=said.edges(kind), edge_features=said.features("edge", ":".join(edge_type))
        )
        for edge_type, kind in types.items()
    }
    return TypedDataset(nodes, edges, said.notes)


class _Folder:
    """A folder, and what its `metadata.yaml` says."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / METADATA
        self._said = _read(self._file)
        self.notes: list[str] = []
        """What is not read of it."""

    def kinds(self, part: str) -> list[Said]:
        """What is said of each kind of `nodes` or `edges`."""
        kinds = self._said["graph"].get(part)
        if not kinds or not isinstance(kinds, list) or not all(isinstance(k, dict) for k in kinds):
            raise self._refused(f"a list of `{part}`", "another" if kinds else "none")
        wanted = "num" if part == "nodes" else "path"
        if any(wanted not in kind for kind in kinds):
            raise self._refused(f"`{wanted}` of {part}", "none")
        return kinds

    def count(self, kind: Said) -> int:
        """How many nodes there are."""
        if type(kind["num"]) is not int or kind["num"] < 0:
            raise self._refused("`num`, a number of nodes", str(kind["num"]))
        return int(kind["num"])

    def name(self, kind: Said) -> str:
        """The type of nodes."""
        if not isinstance(kind.get("type"), str):
            raise self._refused("`type` of each kind of nodes", "none")
        return str(kind["type"])

    def edge_type(self, kind: Said) -> Type:
        """The type of edges, which is written `source:relation:destination`."""
        parts = str(kind.get("type")).split(":")
        if len(parts) != 3:
            raise self._refused("edges' `type` as `source:relation:destination`", kind.get("type"))
        return (parts[0], parts[1], parts[2])

    def edges(self, kind: Said) -> Again:
        """Edges of CSV without a header, or of an array of shape (2, E)."""
        self._path(kind)
        return Again(partial(self._edges, kind))

    def _edges(self, kind: Said) -> Iterator[Batch]:
        path = self._path(kind)
        if kind.get("format") == "csv":
            for batch in csv_batches(path, np.int64):
                if batch.shape[1] != 2:
                    got = f"{batch.shape[1]}"
                    raise InputError.of("read", path, expected="two ids a line", got=got)
                yield batch[:, 0], batch[:, 1]
            return
        pairs = self._array(kind)
        if pairs.ndim != 2 or 2 not in pairs.shape:
            raise InputError.of("read", path, expected="shape (2, E)", got=str(pairs.shape))
        src, dst = pairs if pairs.shape[0] == 2 else pairs.T
        yield src, dst

    def check_features(self, kinds: dict[str, set[str] | None]) -> None:
        """Refuses features of another domain than these, or of no type of it; None: of any."""
        for said in self._said.get("feature_data") or []:
            domain, of = str(said.get("domain")), said.get("type")
            if domain not in kinds:
                raise self._refused("the `domain` of features `node` or `edge`", domain)
            known = kinds[domain]
            if known is not None and of not in known:
                raise self._refused(f"the `type` of features one of {_list(sorted(known))}", of)

    def features(self, domain: str, kind: str | None) -> dict[str, Rows]:
        """The features of nodes or edges of one kind, by name; those that models take are `x`."""
        listed = self._said.get("feature_data") or []
        own = [
            said
            for said in listed
            if said.get("domain") == domain and (kind is None or said.get("type") == kind)
        ]
        names = [str(said.get("name")) for said in own]
        main = next((name for name in FEATURES if name in names), None)
        if domain == "edge":
            main = None
        elif main is None and len(names) == 1:
            main = names[0]
        return {
            MAIN_FEATURES if name == main else name: self._rows(said)
            for name, said in zip(names, own, strict=True)
        }

    def _rows(self, said: Said) -> Rows:
        path = self._path(said)
        if said.get("format") == "numpy" and mapped(path).ndim == 2:
            return Rows(str(path), str(path))
        return from_object(self._array(said), str(path))

    def seeds(
        self, counts: dict[Any, int]
    ) -> dict[str | None, tuple[dict[str, Array], dict[str, Array]]]:
        """Splits and labels of the first task, by kind of nodes; -1 of those without a label."""
        tasks = self._said.get("tasks") or []
        for task in tasks[1:]:
            self.notes.append(f"task `{task.get('name')}` is left out: only the first is read")
        found: dict[str | None, tuple[dict[str, Array], dict[str, Array]]] = {}
        for name, split in SETS.items():
            for said in (tasks[0].get(name) if tasks else None) or []:
                kind = said.get("type")
                data = {one.get("name"): one for one in said.get("data") or []}
                listed = data.get("seeds") or data.get("seed_nodes")
                if listed is None:
                    raise self._refused(f"`seeds` in `{name}`", ", ".join(map(str, data)) or "none")
                seeds = self._array(listed)
                own = None if None in counts else kind
                is_of_links = seeds.ndim != 1 or ":" in str(kind)
                if own not in counts and not is_of_links:
                    raise self._refused(f"the `type` of a set one of {_list(counts)}", kind)
                if is_of_links:
                    self.notes.append(f"`{name}` of {kind or 'links'} is left out: it is of edges")
                    continue
                splits, labels = found.setdefault(own, ({}, {}))
                if split in splits:
                    raise self._refused(f"one `{name}` of a kind of nodes", "several")
                splits[split] = self._positions(seeds, counts[own], listed)
                if "labels" in data:
                    of = labels.setdefault(MAIN_LABELS, np.full(counts[own], -1, np.int64))
                    of[splits[split]] = self._labels(data["labels"], len(seeds))
        return found

    def _positions(self, seeds: Array, vertices: int, said: Said) -> Array:
        if seeds.dtype.kind not in "iu" or (
            len(seeds) and not 0 <= seeds.min() <= seeds.max() < vertices
        ):
            expected = f"nodes from 0 to {vertices - 1}"
            raise InputError.of("read", self._path(said), expected=expected, got="others")
        return np.asarray(seeds, np.int64)

    def _labels(self, said: Said, seeds: int) -> Array:
        labels = narrowed(self._array(said))
        if labels.shape != (seeds,) or labels.dtype.kind not in "iub":
            raise InputError.of(
                "read",
                self._path(said),
                expected=f"an integer for each of {seeds} seeds",
                got=f"{labels.dtype} of shape {labels.shape}",
            )
        return labels

    def _array(self, said: Said) -> Array:
        path = self._path(said)
        form = said.get("format")
        if form == "csv":
            lines = list(csv_batches(path, np.int64)) or [np.empty((0, 1), np.int64)]
            return np.concatenate(lines)[:, 0]
        if form == "torch":
            return _tensor(path)
        if form != "numpy":
            raise self._refused("`format` numpy, torch or csv", str(form))
        return mapped(path)

    def _path(self, said: Said) -> Path:
        path = self._folder / str(said.get("path", ""))
        if not path.is_file():
            raise self._refused("a file", f"`{path}`")
        return path

    def _refused(self, expected: str, got: object, hint: str | None = None) -> InputError:
        return InputError.of("read", self._file, expected=expected, got=got, hint=hint)


def _list(names: Iterable[Any]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _read(path: Path) -> dict[str, Any]:
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


def _tensor(path: Path) -> Array:
    try:
        import torch
    except ImportError as error:
        raise InputError.of(
            "read", path, got="PyTorch is not installed", hint="pip install torch"
        ) from error
    with reading(path, "a tensor, as `torch.save` writes it"):
        array: Array = torch.load(path, map_location="cpu", weights_only=True, mmap=True).numpy()
    return array
