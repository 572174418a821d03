"""Algorithms that run by name: a method of `Graph` each, of which the command line is made.

A method's docstring is its documentation, its parameters are the command's options. `registered`
says how results are called and shown, and what the help of each option says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arguments.calls import checked_class
from .arguments.checks import arguments, choice, count, whole
from .errors import InputError

if TYPE_CHECKING:
    from . import _native
    from .graph import PathLike, Vertices

Method = TypeVar("Method", bound=Callable[..., Any])
Shown = Literal["largest", "groups"]

OTHERS = ("bfs", "pagerank", "sssp", "wcc")
"""Methods of `Graph` that run by name, too, and have commands written for them."""

COMMON = ("trace", "progress")
"""What every algorithm takes beside its options."""


@dataclass(frozen=True)
class Registered:
    """What the command line needs to know of an algorithm beside its method."""

    column: str
    """What a vertex's value is called."""
    shows: Shown
    """The vertices of the largest values, or the largest groups of vertices of one value."""
    help: dict[str, str]
    """What each option is."""


REGISTERED: dict[str, Registered] = {}
"""Algorithms by the names of their methods."""


def registered(
    column: str, shows: Shown = "largest", **help_of_options: str
) -> Callable[[Method], Method]:
    """Registers a method as an algorithm."""

    def note(method: Method) -> Method:
        REGISTERED[method.__name__] = Registered(column, shows, help_of_options)
        return method

    return note


@checked_class
class Algorithms:
    """The algorithms of a graph that are run by name. See `Graph`."""

    @arguments(name=None, options=None)
    def run(self, name: str, **options: Any) -> NDArray[Any]:
        """Runs an algorithm by its name: `graph.run("cdlp", iterations=5)` is `graph.cdlp(...)`.

        Raises `InputError` for a name that is none of `tiergraph.algorithms.REGISTERED`, `bfs`,
        `pagerank`, `sssp` and `wcc`.
        """
        known = sorted([*REGISTERED, *OTHERS])
        if name not in known:
            names = ", ".join(f"`{one}`" for one in known)
            raise InputError.of("run algorithm", name, expected=f"one of {names}")
        values: NDArray[Any] = getattr(self, name)(**options)
        return values

    def _by_name(
        self,
        name: str,
        trace: PathLike | None,
        progress: _native.Progress | None,
        options: dict[str, Any],
    ) -> NDArray[Any]:
        raise NotImplementedError

    @registered("triangles")
    def triangles(
        self, *, trace: PathLike | None = None, progress: _native.Progress | None = None
    ) -> NDArray[np.uint64]:
        """How many triangles each vertex is in, uint64 of shape (|V|,).

        Directions, loops and repeated edges do not matter. `last_run` has the number of all
        `triangles`, and the `transitivity`: the share of paths of two edges that a third closes.
        Two passes over the edges, and one more for every part that the memory does not hold at
        once. (Chiba and Nishizeki, 1985; from storage as Hu, Tao and Chung, 2013.)
        """
        return self._by_name("triangles", trace, progress, {})

    @registered("clustering")
    def clustering(
        self, *, trace: PathLike | None = None, progress: _native.Progress | None = None
    ) -> NDArray[np.float64]:
        """Local clustering coefficients as LDBC Graphalytics (LCC), float64 of shape (|V|,).

        Of the ordered pairs of a vertex's neighbours, whichever way these are reached, the share
        that an edge leads along; 0 for fewer than two neighbours. `last_run` has their mean,
        `average_clustering`. Passes as for `triangles`.
        """
        return self._by_name("clustering", trace, progress, {})

    @registered("label", "groups", iterations="Stop after this many.")
    def cdlp(
        self,
        *,
        iterations: int = 10,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.uint64]:
        """Communities by label propagation as LDBC Graphalytics (CDLP), uint64 of shape (|V|,).

        Each vertex begins with its id as its label; in an iteration all vertices take the label
        that most neighbours have, the smallest of several. With directions, a neighbour counts for
        each edge, whichever way it leads. Ends after `iterations`, or once no label changes.
        `last_run` has the number of `communities`, and the size of the `largest`. One pass over the
        edges an iteration. (Raghavan, Albert and Kumara, 2007.)
        """
        return self._by_name("cdlp", trace, progress, {"iterations": iterations})

    @registered("core", k="Only whether a vertex is in this core: k, else 0.")
    @arguments(k=whole(1, 2**32 - 1))
    def kcore(
        self,
        *,
        k: int | None = None,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.uint32]:
        """Core numbers: the largest k whose k-core has the vertex, uint32 of shape (|V|,).

        Vertices of the k-core all have k neighbours or more in it. Directions, loops and repeated
        edges do not matter. `last_run` has the `largest_core`. The first passes are over all edges,
        later ones over those of vertices whose bound fell. (Montresor et al., 2013; Wen et al.,
        2016.)

        With `k`, only who is in that core: `k` where a vertex is, else 0; `last_run` has its
        `size`. Reads the lists of the vertices that are not in it, and once those that may be,
        unless the graph was built without duplicates, loops and directions. (Matula and Beck,
        1983.)
        """
        return self._by_name("kcore", trace, progress, {} if k is None else {"k": k})

    @registered("component", "groups")
    def scc(
        self, *, trace: PathLike | None = None, progress: _native.Progress | None = None
    ) -> NDArray[np.uint64]:
        """Strongly connected components: the smallest id in each vertex's, uint64 of shape (|V|,).

        Vertices of one component reach each other along edges; without directions, these are the
        components of `wcc`. `last_run` has the number of `components`, and the size of the
        `largest`. One pass over the edges where their lists fit the memory; else several that take
        components off until what is left does. (Pearce, 2016; Fleischer et al., 2000.)
        """
        return self._by_name("scc", trace, progress, {})

    @registered(
        "community",
        "groups",
        resolution="Larger makes more and smaller communities.",
        seed="Draws the turns in which vertices move.",
    )
    def louvain(
        self,
        *,
        resolution: float = 1.0,
        seed: int = 0,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.uint64]:
        """Communities of high modularity by Louvain, uint64 of shape (|V|,).

        A community is named by its smallest id. Edges count both ways, by their weights. `last_run`
        has the `modularity` (at resolution 1), the number of `communities`, and the size of the
        `largest`. Memory holds 64 bytes a vertex (`leiden`: 76), and lists as far as they fit:
        those of smaller networks, and of graphs with weights, go on in temporary files in the
        graph's folder, of up to 16 bytes a neighbour each (in `last_run`, `scratch_bytes`, and
        what was read and written of them: `scratch_bytes_read`, `scratch_bytes_written`). A seed's
        result is the same in any memory and for any number of threads. (Blondel et al., 2008.)
        """
        options = {"resolution": resolution, "seed": seed, "iterations": 1}
        return self._by_name("louvain", trace, progress, options)

    @registered(
        "community",
        "groups",
        resolution="Larger makes more and smaller communities.",
        objective="modularity, or cpm (constant Potts model).",
        iterations="How often it goes on from what it found.",
        seed="Draws the turns in which vertices move.",
    )
    @arguments(objective=choice("modularity", "cpm"))
    def leiden(
        self,
        *,
        resolution: float = 1.0,
        objective: str = "modularity",
        iterations: int = 2,
        seed: int = 0,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.uint64]:
        """Connected communities of high modularity by Leiden, uint64 of shape (|V|,).

        As `louvain`; every community is connected. `objective="cpm"` counts edges inside
        communities, less `resolution` for each pair of vertices. Ends after `iterations`, or when
        no vertex moves. (Traag, Waltman and van Eck, 2019.)
        """
        options = {
            "resolution": resolution,
            "objective": objective,
            "iterations": iterations,
            "seed": seed,
        }
        return self._by_name("leiden", trace, progress, options)

    @registered(
        "betweenness",
        sources="A vertex that paths begin at; repeat for more. Default: all.",
        samples="Estimate from so many vertices, chosen by --seed.",
        seed="The choice of --samples.",
    )
    @arguments(samples=count)
    def betweenness(
        self,
        *,
        sources: Vertices | None = None,
        samples: int | None = None,
        seed: int = 0,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.float64]:
        """Betweenness centrality, float64 of shape (|V|,): the shortest paths through each vertex.

        Over all pairs of vertices, the sum of the shares of their shortest paths (in hops) that the
        vertex lies between; of pairs without an order where edges have no direction. Edges that are
        repeated are paths of their own: `dedup` of `build` leaves one of them. With `sources`, over
        the pairs that begin at these ids, each of which counts once; with `samples`, an estimate
        from so many vertices, and `last_run["error_bound"]`: all values are nearer to the true ones
        with a probability of 9 in 10. Two passes over what a source reaches, for each. (Brandes,
        2001; Brandes and Pich, 2007.)
        """
        options = {"sources": sources, "samples": samples, "seed": seed}
        return self._by_name("betweenness", trace, progress, options)

    @registered("in_set", seed="Another number gives another set.")
    def independent_set(
        self,
        *,
        seed: int = 0,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.uint32]:
        """A maximal independent set, uint32 of shape (|V|,): 1 for its vertices, 0 for the others.

        No two of the set are neighbours, and every other vertex has a neighbour in it. `last_run`
        has its `size`. What a greedy pass in a random order finds: the same for one seed, whatever
        the threads, memory and layout. (Blelloch, Fineman and Shun, 2012.)
        """
        return self._by_name("independent_set", trace, progress, {"seed": seed})

    @registered("color")
    def coloring(
        self, *, trace: PathLike | None = None, progress: _native.Progress | None = None
    ) -> NDArray[np.uint32]:
        """Colours from 0 on, uint32 of shape (|V|,), so that no two neighbours have the same.

        `last_run` has how many `colors` there are. What a greedy pass in the order on disk finds,
        which is by descending degree in graphs built with `order="degree"`: the same whatever the
        threads and the memory. One pass over the edges. (Welsh and Powell, 1967; Jones and
        Plassmann, 1993.)
        """
        return self._by_name("coloring", trace, progress, {})

    @registered(
        "closeness",
        registers="Registers of a counter: a power of two from 16 to 4096.",
        seed="Another number gives another estimate.",
    )
    @arguments(registers=whole(16, 4096))
    def harmonic(
        self,
        *,
        registers: int = 64,
        seed: int = 0,
        trace: PathLike | None = None,
        progress: _native.Progress | None = None,
    ) -> NDArray[np.float64]:
        """Harmonic closeness, estimated, float64 of shape (|V|,): the sum of 1/d over all others.

        d are the hops from another vertex to this one; vertices without a path count nothing.
        `last_run` has the `effective_diameter` (within so many hops lie 90 % of the connected
        pairs), the `mean_distance`, and the `standard_error` of a counter of vertices, 1.04 /
        sqrt(`registers`). One pass over the edges for each hop of the diameter; twice `registers`
        bytes a vertex. (Boldi and Vigna, HyperBall, 2013.)
        """
        return self._by_name("harmonic", trace, progress, {"registers": registers, "seed": seed})

    @registered("mutual")
    def mutual(
        self, *, trace: PathLike | None = None, progress: _native.Progress | None = None
    ) -> NDArray[np.uint32]:
        """How many vertices each one has edges to and from, uint32 of shape (|V|,).

        `last_run` has the `reciprocity`: the share of edges between different vertices that have
        one back, repeated ones counted once; 1 where edges have no direction, else 0 without any.
        One pass over the edges. (Newman, Forrest and Balthrop, 2002.)
        """
        return self._by_name("mutual", trace, progress, {})


def options_json(options: dict[str, Any]) -> str:
    """Options as the native part reads them; those that are None are left to it."""

    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else value

    return json.dumps({name: plain(v) for name, v in options.items() if v is not None})
