#!/bin/bash
# The GPU's tests under a tool of compute-sanitizer: memcheck, racecheck, initcheck or synccheck.
#
#   bench/gpu/sanitize.sh TOOL OUT [PYTEST ARGUMENTS]
#
# Needs what `make gpu-test` needs, with tiergraph on PYTHONPATH; fails if the tool finds anything or
# a test fails. Prints a line; what the tool and the tests said goes to OUT. Kernels of other
# libraries are left alone: only tiergraph's are checked. Under the tool a kernel takes milliseconds to
# start, so blocks of 4 KiB take minutes: with pytest-xdist, `-n 14 -k 'not 4096 and not 65536'`. That is
# four minutes for memcheck on 15 cores. racecheck, of which only kernels with shared memory are of
# interest, is slower yet: give it parts, as `-k 'not 4096 and not 65536 and propagate and raw'`.
set -euo pipefail
root=$(dirname "$0")/../..
tool=$1 said=$2/$1 tests=$root/python/tests
shift 2
files=(test_gpu.py test_conformance.py test_gpu_propagate.py test_gpu_loader.py)
folder=$root/crates/gpu/src/kernels
names=$(python3 "$(dirname "$0")/_kernels.py" "$folder" "$tool")
mapfile -t kernels <<<"$names"
export TIERGRAPH_TEST_DEVICE=cuda
mkdir -p "$(dirname "$said")"
status=0
compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 --log-file "$said.log" \
    "${kernels[@]/#/--kernel-name=kernel_name=}" \
    python3 -m pytest -p no:cacheprovider -p no:benchmark "${files[@]/#/$tests/}" "$@" \
    >"$said.txt" 2>&1 || status=$?
echo "$tool: $(grep -E 'SUMMARY' "$said.log" || echo 'no summary'); $(tail -1 "$said.txt")"
exit $status
