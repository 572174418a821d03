"""GraphSAGE over papers, authors and topics: a graph of types, read from storage.

    python examples/hetero.py          # builds `mag.tg` from random arrays, then trains on it
"""

import numpy as np
import torch
from torch_geometric.nn import GraphSAGE, to_hetero

import tiergraph as tg

random = np.random.default_rng(0)
papers, authors, topics = 100_000, 40_000, 8
topic = random.integers(0, topics, papers)
writer, written = random.integers(0, authors, 300_000), random.integers(0, papers, 300_000)
tg.build_hetero(
    "mag.tg",
    nodes={
        "paper": {
            "features": random.normal(size=(papers, 64)) + topic[:, None] / 4,
            "labels": topic,
            "splits": {"train": random.random(papers) < 0.1},
        },
        "author": {"features": np.ones((authors, 1))},
    },
    edges={
        ("author", "writes", "paper"): (writer, written),
        ("paper", "written_by", "author"): (written, writer),
    },
    overwrite=True,
)
graph = tg.open_hetero("mag.tg", memory="256MiB")
model = to_hetero(GraphSAGE((-1, -1), 64, 2, topics), graph.metadata())
loader = tg.NeighborLoader(graph, [10, 5], ("paper", "train"), batch_size=1024, shuffle=True)
batch = next(iter(loader))
model(batch.x_dict, batch.edge_index_dict)  # finds the layers' sizes
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        size = batch["paper"].batch_size
        out = model(batch.x_dict, batch.edge_index_dict)["paper"][:size]
        loss = torch.nn.functional.cross_entropy(out, batch["paper"].y[:size])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss:.4f}, {loader.last_epoch['nodes']:,} nodes")
