"""Passes over the edges that Python asks for: on tensors of PyTorch, and loops of them."""
