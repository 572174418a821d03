#!/usr/bin/env bash
# Makes bench/.venv-peers: what peers.py compares with, apart from tiergraph's own environment.
set -euo pipefail
cd "$(dirname "$0")"

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "peers_env.sh: error: Python 3.11 or newer is needed; try PYTHON=python3.12")'
"$python" -m venv .venv-peers
.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check \
    --requirement peers-requirements.txt
for module in graphblas igraph networkit sknetwork; do
    .venv-peers/bin/python -c "import $module; print('$module', $module.__version__)"
done
