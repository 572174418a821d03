"""A heterogeneous batch by the definition in docs/sampling.md: maps and lists, a draw at a time."""

from __future__ import annotations

from collections import defaultdict

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


def positions(count, fanout, key, hop, vertex, batch):
    """Which of `count` neighbours are taken, by Floyd's algorithm."""
    if fanout == -1 or count <= fanout:
        return list(range(count))
    taken = []
    for i in range(fanout):
        words = philox((hop * 2**24 + i // 2, vertex, batch, 0), key)
        low, high = words[:2] if i % 2 == 0 else words[2:]
        j = count - fanout + i
        t = ((low | high << 32) * (j + 1)) >> 64
        taken.append(j if t in taken else t)
    return taken


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


def batch(node_types, adjacency, fanouts, input_type, seeds, number, seed, epoch):
    """`n_id` and counts by node type, `row`, `col`, `e_id` and counts by edge type.

    `adjacency` has `lists_of` each edge type, in the graph's order.
    """
    n_id = {t: list(seeds) if t == input_type else [] for t in node_types}
    places = {t: {} for t in node_types}
    for place, node in enumerate(seeds):
        places[input_type].setdefault(node, place)
    nodes = {t: [len(n_id[t])] for t in node_types}
    edges = {t: {"row": [], "col": [], "e_id": [], "counts": []} for t in adjacency}
    for hop in range(len(next(iter(fanouts.values())))):
        ends = {t: len(n_id[t]) for t in node_types}
        begins = {t: ends[t] - nodes[t][-1] for t in node_types}
        for number_of_type, (edge_type, (lists, firsts)) in enumerate(adjacency.items()):
            source, _, destination = edge_type
            key, found = key_of(seed, epoch, number_of_type), edges[edge_type]
            before = len(found["e_id"])
            for col in range(begins[destination], ends[destination]):
                vertex = n_id[destination][col]
                neighbors = lists.get(vertex, [])
                fanout = fanouts[edge_type][hop]
                for position in positions(len(neighbors), fanout, key, hop, vertex, number):
                    neighbor = neighbors[position]
                    if neighbor not in places[source]:
                        places[source][neighbor] = len(n_id[source])
                        n_id[source].append(neighbor)
                    found["row"].append(places[source][neighbor])
                    found["col"].append(col)
                    found["e_id"].append(firsts[vertex] + position)
            found["counts"].append(len(found["e_id"]) - before)
        for t in node_types:
            nodes[t].append(len(n_id[t]) - ends[t])
    return n_id, nodes, edges
