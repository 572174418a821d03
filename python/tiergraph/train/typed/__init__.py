"""Training on heterogeneous graphs: models, evaluation and the trainer by type."""
