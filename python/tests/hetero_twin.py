"""A heterogeneous batch by the definition in docs/sampling.md: maps and lists, a draw at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

WORD = 2**32 - 1


def philox(counter, key):
    """Philox4x32-10 of four and two words."""
    a, b, c, d = counter
    first, second = key
    for _ in range(10):
        left, right = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (right >> 32) ^ b ^ first, right & WORD, (left >> 32) ^ d ^ second, left & WORD
        first, second = (first + 0x9E3779B9) & WORD, (second + 0xBB67AE85) & WORD
    return a, b, c, d


def halves(number):
    return number & WORD, number >> 32


def key_of(seed, epoch, edge_type):
    return philox((*halves(epoch), int.from_bytes(b"SAMP", "big"), edge_type), halves(seed))[:2]


@dataclass(frozen=True)
class Expanded:
    """A node that is expanded: what numbers its draws, and what its arcs may not be later than."""

    key: tuple[int, int]
    hop: int
    vertex: int
    batch: int
    tree: int = 0
    until: int | None = None

    def draw(self, number):
        """The draw of this number, of 64 bits."""
        counter = (self.hop * 2**24 + number // 2, self.vertex, self.batch, self.tree)
        words = philox(counter, self.key)
        low, high = words[:2] if number % 2 == 0 else words[2:]
        return low | high << 32


def positions(count, fanout, node):
    """Which of `count` neighbours are taken, by Floyd's algorithm."""
    if fanout == -1 or count <= fanout:
        return list(range(count))
    taken = []
    for i in range(fanout):
        j = count - fanout + i
        t = (node.draw(i) * (j + 1)) >> 64
        taken.append(j if t in taken else t)
    return taken


def positions_by(weights, times, strategy, fanout, node):
    """Which neighbours are taken where arcs have weights, times or both; None is neither."""
    count = len(weights if weights is not None else times)
    candidates = [
        p
        for p in range(count)
        if (weights is None or weights[p] > 0)
        and (times is None or node.until is None or times[p] <= node.until)
    ]
    if fanout == -1 or len(candidates) <= fanout:
        return candidates
    if times is not None and strategy == "last":
        return sorted(candidates, key=lambda p: (times[p], p), reverse=True)[:fanout]
    if weights is not None:
        units = {p: ((node.draw(p) >> 11) + 1) / 2**53 for p in candidates}
        return sorted(candidates, key=lambda p: (-math.log(units[p]) / float(weights[p]), p))[
            :fanout
        ]
    return [candidates[place] for place in positions(len(candidates), fanout, node)]


def lists_of(src, dst):
    """Of each destination, its sources in ascending order, and the edges before them."""
    lists = defaultdict(list)
    for s, d in sorted(zip(src.tolist(), dst.tolist(), strict=True)):
        lists[d].append(s)
    firsts, before = {}, 0
    for d in sorted(lists):
        firsts[d] = before
        before += len(lists[d])
    return lists, firsts


@dataclass(frozen=True)
class By:
    """What neighbours are drawn by, beside chance: arrays by arc, by edge type."""

    weights: dict[Any, Any] = field(default_factory=dict)
    times: dict[Any, Any] = field(default_factory=dict)
    strategy: str = "uniform"
    disjoint: bool = False
    until: list[int] | None = None
    """The time of each seed."""


def batch(node_types, adjacency, fanouts, input_type, seeds, number, seed, epoch, by=None):
    """`n_id`, `tree` and counts by node type, `row`, `col`, `e_id` and counts by edge type.

    `adjacency` has `lists_of` each edge type, in the graph's order. `seeds` are of the input type,
    or a list by node type.
    """
    by = by or By()
    seeds = seeds if isinstance(seeds, dict) else {input_type: seeds}
    n_id = {t: list(seeds.get(t, [])) for t in node_types}
    trees = {t: list(range(len(n_id[t]))) if by.disjoint else [0] * len(n_id[t]) for t in n_id}
    places = {t: {} for t in node_types}
    for t, nodes in n_id.items():
        for place, node in enumerate(nodes):
            places[t].setdefault((trees[t][place], node), place)
    nodes = {t: [len(n_id[t])] for t in node_types}
    edges = {t: {"row": [], "col": [], "e_id": [], "counts": []} for t in adjacency}
    for hop in range(len(next(iter(fanouts.values())))):
        ends = {t: len(n_id[t]) for t in node_types}
        begins = {t: ends[t] - nodes[t][-1] for t in node_types}
        for number_of_type, (edge_type, (lists, firsts)) in enumerate(adjacency.items()):
            source, _, destination = edge_type
            key, found = key_of(seed, epoch, number_of_type), edges[edge_type]
            weights, times = by.weights.get(edge_type), by.times.get(edge_type)
            before = len(found["e_id"])
            for col in range(begins[destination], ends[destination]):
                vertex, tree = n_id[destination][col], trees[destination][col]
                neighbors, first = lists.get(vertex, []), firsts.get(vertex, 0)
                fanout = fanouts[edge_type][hop]
                until = None if by.until is None else by.until[tree]
                node = Expanded(key, hop, vertex, number, tree, until)
                if weights is None and times is None:
                    taken = positions(len(neighbors), fanout, node)
                else:
                    arcs = slice(first, first + len(neighbors))
                    own = (None if column is None else column[arcs] for column in (weights, times))
                    taken = positions_by(*own, by.strategy, fanout, node)
                for position in taken:
                    neighbor = tree, neighbors[position]
                    if neighbor not in places[source]:
                        places[source][neighbor] = len(n_id[source])
                        n_id[source].append(neighbor[1])
                        trees[source].append(tree)
                    found["row"].append(places[source][neighbor])
                    found["col"].append(col)
                    found["e_id"].append(first + position)
            found["counts"].append(len(found["e_id"]) - before)
        for t in node_types:
            nodes[t].append(len(n_id[t]) - ends[t])
    return n_id, trees, nodes, edges
