"""Random graphs, options and calls, compared with plain twins in NumPy."""
