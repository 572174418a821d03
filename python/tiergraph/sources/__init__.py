"""What graphs are built from: edges, rows and data sets, read in batches from files and memory."""
