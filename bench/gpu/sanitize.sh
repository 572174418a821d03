#!/bin/bash
# The GPU's tests under compute-sanitizer: memory errors, then races in shared memory.
#
#   bench/gpu/sanitize.sh OUT [PYTEST ARGUMENTS]
#
# Needs what `make gpu-test` needs, with tiergraph on PYTHONPATH. Prints a table; what the tool and
# the tests said goes to OUT. Kernels of other libraries are left alone: only tiergraph's are checked.
set -euo pipefail
out=$1 tests=$(dirname "$0")/../../python/tests
shift
files=(test_gpu.py test_gpu_propagate.py test_gpu_loader.py test_gpu_faults.py test_conformance.py)
kernels=(sum verify edge_map next_ranks plant compress count list gather missing spread start choose
    claim mark name look_up forget give tally)
export TIERGRAPH_TEST_DEVICE=cuda
mkdir -p "$out"
status=0
printf '%-10s %9s %7s  %s\n' tool processes errors tests
for tool in memcheck racecheck; do
    said=$out/$tool
    compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 \
        --log-file "$said-%p.log" "${kernels[@]/#/--kernel-name=kernel_name=}" \
        python3 -m pytest -p no:cacheprovider -p no:benchmark "${files[@]/#/$tests/}" "$@" \
        >"$said-tests.txt" 2>&1 || status=1
    # Processes that never used the GPU have no summary.
    summaries=$(cat "$said"-*.log | grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' || true)
    errors=$(awk -F'SUMMARY: ' '{n += $2} END {print n + 0}' <<<"$summaries")
    printf '%-10s %9s %7s  %s\n' "$tool" "$(grep -c . <<<"$summaries")" "$errors" \
        "$(tail -1 "$said-tests.txt")"
done
exit $status
