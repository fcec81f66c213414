#!/bin/bash
# Submits the array, and the merge that waits for it: submit.sh [OPTIONS OF sbatch, for both jobs].
# Logs and results go to the current folder, which all nodes must see; LEAKYBINS (the program) and RESULTS (the folder of
# the results) are handed on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
array=$(sbatch --parsable --export=ALL "$@" "$here/run.sbatch")
array=${array%%;*}
# Where a task fails, the merge is cancelled and does not wait for ever.
merge=$(sbatch --parsable --export=ALL "$@" --dependency="afterok:$array" --kill-on-invalid-dep=yes "$here/merge.sbatch")
echo "array job $array, then merge job ${merge%%;*}"
