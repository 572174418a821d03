#!/usr/bin/env bash
# Makes bench/.venv-graphbolt: DGL's GraphBolt, for training_side_by_side.py. 5 GB: PyTorch for CUDA.
set -euo pipefail
cd "$(dirname "$0")"

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 12) and "graphbolt_env.sh: error: DGL 2.1 has wheels for Python 3.8 to 3.11; try PYTHON=python3.11")'
"$python" -m venv .venv-graphbolt
.venv-graphbolt/bin/python -m pip install --quiet --disable-pip-version-check \
    --requirement graphbolt-requirements.txt
DGLBACKEND=pytorch .venv-graphbolt/bin/python -c "import dgl.graphbolt; print('dgl', dgl.__version__)"
