"""What is stored beside a graph's edges: features, labels, splits, weights and times."""
