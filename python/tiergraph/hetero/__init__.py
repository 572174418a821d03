"""Graphs of several types of nodes and edges: PyG's `HeteroData`, on disk."""

from .graph import EdgeType, HeteroGraph, is_hetero, open_hetero

__all__ = ["EdgeType", "HeteroGraph", "is_hetero", "open_hetero"]
