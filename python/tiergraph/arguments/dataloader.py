"""Arguments of PyTorch's `DataLoader` and PyG's loaders that do something else here, or nothing.

Loops written for those loaders keep working: an argument that cannot change a batch is taken, with
one line that says what happens instead; one that would is refused, with what to do.
"""

from __future__ import annotations

from typing import Any

from ..errors import FallbackWarning, InputError
from .calls import warn

THREADS = "threads of this process prepare batches, as many as `threads` says"
ON_A_GPU = '`device="cuda"` hands batches over on a GPU'

TAKEN: dict[str, tuple[Any, str]] = {
    "num_workers": (0, THREADS),
    "persistent_workers": (False, THREADS),
    "worker_init_fn": (None, THREADS),
    "multiprocessing_context": (None, THREADS),
    "timeout": (0, THREADS),
    "filter_per_worker": (None, THREADS),
    "prefetch_factor": (None, "`prefetch` says how many batches may be begun ahead"),
    "pin_memory": (False, ON_A_GPU),
    "pin_memory_device": ("", ON_A_GPU),
    "generator": (None, "`seed` decides the order of seeds and their neighbours"),
    "in_order": (True, "batches always come in order"),
    "is_sorted": (False, "edges are sorted on disk"),
}
"""Arguments that change no batch: their value if not given, and what happens instead."""

REFUSED: dict[str, tuple[Any, str]] = {
    "sampler": (None, "give `input_nodes` in order; `rank` and `world_size` share them out"),
    "batch_sampler": (None, "`batch_size` and `drop_last` cut `input_nodes` into batches"),
    "collate_fn": (None, "`transform` changes batches"),
    "transform_sampler_output": (None, "`transform` changes batches"),
    "neighbor_sampler": (None, "`num_neighbors`, `weight_attr` and `time_attr` say how to sample"),
    "custom_cls": (None, "`transform` changes batches"),
    "directed": (True, "build the graph with `undirected=True`"),
}
"""Arguments that would change batches: their value if not given, and what to do."""


def take(call: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `call` without these; warns of those that do something else here.

    Raises `InputError` for those whose meaning cannot be kept.
    """
    for name, (default, instead) in REFUSED.items():
        if name in given and given[name] is not default:
            got = type(given[name]).__name__ if default is None else given[name]
            what = f"call `{call}` with"
            raise InputError.of(what, name, expected=str(default), got=got, hint=instead)
    others = [name for name, (usual, _) in TAKEN.items() if given.get(name, usual) != usual]
    if others:
        names = ", ".join(f"`{name}`" for name in others)
        instead = "; ".join(dict.fromkeys(TAKEN[name][1] for name in others))
        text = f"`{call}` does not use {names}: {instead}"
        warn(text, FallbackWarning)
    return {name: value for name, value in given.items() if name not in TAKEN | REFUSED}
