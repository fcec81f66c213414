#!/bin/sh
# Everything that is to be known about a GPU, in one command: how fast is it in each layout, beside a computed ceiling,
# and do its results equal the reference's.
#
#   benches/gpu.sh [--allow-software] [--gpu INDEX|NAME|pci:ADDRESS] [--json FILE] [--quick]
#                  [--int-ops-per-s X] [--bytes-per-s X]
#
# The ceiling needs the device's 32-bit integer operations and bytes of memory a second; without them the operations
# and bytes of a ball are printed alone. Takes some minutes on a GPU; --quick takes about two on a software adapter.
set -eu
cd "$(dirname "$0")/.."

# Implicit layers of the Vulkan loader serve displays; some print errors where there is none.
: "${VK_LOADER_LAYERS_DISABLE:=~implicit~}"
export VK_LOADER_LAYERS_DISABLE

skip=
previous=
for argument in "$@"; do
    case $argument in
    --quick) skip="--skip large_sizes --skip overflow --skip splits --skip long_runs --skip small_sizes" ;;
    --gpu=*) export LEAKYBINS_GPU="${argument#--gpu=}" ;;
    esac
    [ "$previous" = --gpu ] && export LEAKYBINS_GPU="$argument"
    previous=$argument
done

echo "== speed"
cargo bench --quiet --bench gpu -- "$@"
echo "== parity with the reference, over the whole grid of cases"
# $skip is a list of words.
# shellcheck disable=SC2086
exec env LEAKYBINS_REQUIRE_GPU=1 cargo test --release --quiet --test parity -- --test-threads=1 $skip
