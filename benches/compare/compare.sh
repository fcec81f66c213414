#!/bin/sh
# Leaky bins with two choices on one core: leakybins against a tuned C++ program, run in turn.
# usage: [CORE=0] [CXX=c++] benches/compare/compare.sh
set -eu
cd "$(dirname "$0")/../.."
cargo bench --no-run --bench compare
exec taskset -c "${CORE:-0}" cargo bench --bench compare
