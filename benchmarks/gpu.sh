#!/bin/sh
# The benchmarks on one CUDA GPU: sized for about 8 minutes on an H200 (not yet timed). The obvious code runs whole, also at 224 px.
# Usage: sh benchmarks/gpu.sh [OUT.md]   from the root of the checkout; PYTHON names the interpreter. Each part is kept as it ends.
out=${1:-benchmarks/RESULTS.md}
cache=${CACHE:-${TMPDIR:-/tmp}/lit_bump_benchmarks}
for part in engine everything denominators parts roofline; do
    timeout "${LIMIT:-120}" "${PYTHON:-python}" -m benchmarks "$part" --device cuda --budget full --repeats 2 \
        --cache "$cache" --out "$out" || echo "$part did not finish" >&2
done
