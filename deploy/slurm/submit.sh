#!/bin/bash
# Submits the array and the merge that waits for it. LEAKYBINS (the program) and RESULTS (a folder that all nodes see) are
# handed on.
set -euo pipefail
cd "$(dirname "$0")"
array=$(sbatch --parsable --export=ALL "$@" run.sbatch)
merge=$(sbatch --parsable --export=ALL --dependency="afterok:$array" merge.sbatch)
echo "array job $array, then merge job $merge"
