"""Mini-batches for PyG's models: a loader is a source of batches and what collates them."""
