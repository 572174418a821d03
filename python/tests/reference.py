"""Serial verifiers in plain Python and NumPy, written differently from the engine."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque

import numpy as np


def both_ways(src, dst, weights=None):
    """Each undirected edge as two arcs, a self-loop as one."""
    back = src != dst
    arcs = np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]])
    return arcs if weights is None else (*arcs, np.concatenate([weights, weights[back]]))


def pagerank(vertices, src, dst, iterations, damping=0.85):
    """LDBC Graphalytics' PageRank by np.add.at, float64; ranks by position in `vertices`."""
    n = len(vertices)
    s, d = np.searchsorted(vertices, src), np.searchsorted(vertices, dst)
    degree = np.bincount(s, minlength=n)
    rank = np.full(n, 1 / n)
    for _ in range(iterations):
        share = np.divide(rank, degree, out=np.zeros(n), where=degree > 0)
        pulled = np.zeros(n)
        np.add.at(pulled, d, share[s])
        rank = (1 - damping) / n + damping * (pulled + rank[degree == 0].sum() / n)
    return rank


def components(vertices, src, dst):
    """The smallest id in each vertex's weak component, by union-find."""
    parent = {int(v): int(v) for v in vertices}

    def find(v):
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        a, b = find(a), find(b)
        parent[max(a, b)] = min(a, b)
    return np.array([find(int(v)) for v in vertices], dtype=np.uint64)


def bfs(vertices, src, dst, source):
    """Hops by a queue; -1 where no path leads."""
    neighbors = defaultdict(list)
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        neighbors[a].append(b)
    depth = {source: 0}
    queue = deque([source])
    while queue:
        v = queue.popleft()
        for w in neighbors[v]:
            if w not in depth:
                depth[w] = depth[v] + 1
                queue.append(w)
    return np.array([depth.get(int(v), -1) for v in vertices])


def sssp(vertices, src, dst, weights, source):
    """Dijkstra by a heap; inf where no path leads."""
    neighbors = defaultdict(list)
    for a, b, w in zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True):
        neighbors[a].append((b, w))
    distance = {}
    heap = [(0.0, source)]
    while heap:
        d, v = heapq.heappop(heap)
        if v not in distance:
            distance[v] = d
            for w, length in neighbors[v]:
                heapq.heappush(heap, (d + length, w))
    return np.array([distance.get(int(v), np.inf) for v in vertices])
