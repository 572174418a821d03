"""Graph analytics on graphs that do not fit in memory, at the speed of this machine's SSDs.

>>> import numpy as np, tiergraph as tg
>>> src = np.array([0, 0, 1, 2, 3, 4]); dst = np.array([1, 2, 2, 0, 4, 5])
>>> stats = tg.build((src, dst), "six.tg", overwrite=True)
>>> graph = tg.open("six.tg", memory="1GiB")
>>> graph.bfs(0).tolist()
[0, 1, 1, -1, -1, -1]
"""

from . import centrality, measures
from ._native import __version__
from .attached.edges import add_edge_values
from .attached.features import add_features, checksum_features
from .attached.ordering import order_features
from .devices import CudaDevice, cuda_devices
from .errors import (
    BudgetError,
    DeviceError,
    Error,
    FallbackWarning,
    FormatError,
    InputError,
    InputWarning,
    InternalError,
    IoError,
)
from .graph import Graph, open
from .hetero import HeteroGraph, open_hetero
from .hetero.build import build_hetero
from .loaders.hetero import HeteroNeighborLoader
from .loaders.link import LinkNeighborLoader
from .loaders.node import NeighborLoader
from .machine.diagnosis import Finding, doctor
from .machine.drives import NvmeDrive, nvme_drives, release_drive, write_drives
from .pairs import Components, components
from .planning import (
    Estimate,
    Job,
    MoreMemory,
    PassEstimate,
    Plan,
    measure_job,
    plan,
    plan_passes,
)
from .write import BuildOptions, build, generate

__all__ = [
    "BudgetError",
    "BuildOptions",
    "Components",
    "CudaDevice",
    "DeviceError",
    "Error",
    "Estimate",
    "FallbackWarning",
    "Finding",
    "FormatError",
    "Graph",
    "HeteroGraph",
    "HeteroNeighborLoader",
    "InputError",
    "InputWarning",
    "InternalError",
    "IoError",
    "Job",
    "LinkNeighborLoader",
    "MoreMemory",
    "NeighborLoader",
    "NvmeDrive",
    "PassEstimate",
    "Plan",
    "__version__",
    "add_edge_values",
    "add_features",
    "build",
    "build_hetero",
    "centrality",
    "checksum_features",
    "components",
    "cuda_devices",
    "doctor",
    "generate",
    "measure_job",
    "measures",
    "nvme_drives",
    "open",
    "open_hetero",
    "order_features",
    "plan",
    "plan_passes",
    "release_drive",
    "write_drives",
]
