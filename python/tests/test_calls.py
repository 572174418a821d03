"""Every public call shows its parameters, and refuses those that it does not have."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tiergraph as tg
from tiergraph.arguments import calls
from tiergraph.attached import features

CLASSES = [
    tg.Graph,
    tg.HeteroGraph,
    tg.NeighborLoader,
    tg.HeteroNeighborLoader,
    tg.LinkNeighborLoader,
    features.Features,
]
FUNCTIONS = [
    one for one in vars(tg).values() if inspect.isfunction(one) and one.__name__ in tg.__all__
]
try:
    from tiergraph import stores

    CLASSES += [stores.FeatureStore, stores.GraphStore]
    FUNCTIONS.append(stores.stores)
except tg.InputError:
    pass


def methods(made):
    """The public methods that a class of this package has, and what makes it."""
    for name, member in inspect.getmembers(made, inspect.isfunction):
        ours = inspect.unwrap(member).__module__.startswith("tiergraph.")
        if ours and (name == "__init__" or not name.startswith("_")):
            yield member


NAMED_BY_CALLERS = {"Algorithms.run", "Graph.table"}
"""Calls whose keywords are names that the caller gives."""
CALLS = FUNCTIONS + [method for made in CLASSES for method in methods(made)]


def test_there_are_calls_to_test():
    names = {call.__qualname__ for call in CALLS}
    assert {"open", "build", "generate", "add_features", "order_features"} <= names
    assert {"Graph.bfs", "NeighborLoader.__init__", "Features.read"} <= names


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__qualname__)
def test_a_call_shows_every_parameter_with_its_type(call):
    for name, parameter in inspect.signature(call).parameters.items():
        if call.__qualname__ not in NAMED_BY_CALLERS:
            assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL), name
        assert name == "self" or parameter.annotation is not parameter.empty, name


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: made.__name__)
def test_a_class_shows_what_it_is_made_from(made):
    expected = list(inspect.signature(made.__init__).parameters)[1:]
    assert list(inspect.signature(made).parameters) == expected


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__qualname__)
def test_a_call_refuses_what_it_does_not_have(call):
    parameters = inspect.signature(call).parameters.values()
    needed = [None for p in parameters if p.default is p.empty]
    with pytest.raises(calls.ArgumentError, match=r"cannot call `.*` with `no_such_argument`"):
        call(*needed, no_such_argument=1)


@pytest.mark.parametrize(
    ("call", "wrong", "meant"),
    [
        (tg.open, "memmory", "memory"),
        (tg.build, "undirect", "undirected"),
        (tg.generate, "edge_facter", "edge_factor"),
        (tg.build_hetero, "overwite", "overwrite"),
        (tg.NeighborLoader, "memmory", "memory"),
        (tg.NeighborLoader, "sead", "seed"),
        (tg.LinkNeighborLoader, "neg_samplng", "neg_sampling"),
        (tg.HeteroNeighborLoader, "num_neighbours", "num_neighbors"),
        (tg.Graph.pagerank, "dampening", "damping"),
    ],
)
def test_a_misspelt_argument_is_answered_with_the_one_that_was_meant(call, wrong, meant):
    parameters = inspect.signature(call).parameters.values()
    given = [None for p in parameters if p.default is p.empty and p.name != meant]
    with pytest.raises(tg.InputError, match=f"did you mean `{meant}`") as caught:
        call(*given, **{wrong: "1MiB"})
    assert isinstance(caught.value, TypeError)


def test_missing_and_surplus_arguments_are_told_in_the_same_form(six):
    with pytest.raises(calls.ArgumentError, match=r"cannot call `Graph.bfs`: .*'source'"):
        six.bfs()
    with pytest.raises(calls.ArgumentError, match="by position it takes source"):
        six.bfs(10, 20)


def test_the_arguments_that_a_call_has_go_through(six):
    np.testing.assert_array_equal(six.bfs(source=10), six.bfs(10))
