"""A training loop of one's own, on batches that tiergraph prepares from storage.

Run it on a generated graph:

    tiergraph generate sbm g.tg --vertices 100000 --communities 8 --mean-degree 10 --inside 0.9 \\
        --features 64
"""

import sys

import torch
from torch_geometric.nn import GraphSAGE

import tiergraph as tg

graph = tg.open(sys.argv[1] if len(sys.argv) > 1 else "g.tg")
loader = tg.NeighborLoader(graph, [10, 5], "train", batch_size=1024, shuffle=True, memory="1GiB")
model = GraphSAGE(graph.features["x"].shape[1], 64, 2, int(graph.labels["y"].max()) + 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        loss = torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss:.4f}, {loader.last_epoch['bytes_ssd']:,} bytes read")
