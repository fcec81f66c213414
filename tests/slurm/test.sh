#!/bin/bash
# The Slurm files of deploy/ on a real Slurm of one node: an array of four shards, one task of which is terminated in the
# middle and requeued, then the merge; its result must be byte for byte that of a single run.
# Usage: test.sh PROGRAM. Needs root; installs Slurm on Debian and Ubuntu where it is missing.
set -euo pipefail
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)

if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
fi

work=$(mktemp -d)
export SLURM_CONF=$work/slurm/slurm.conf LEAKYBINS=$program RESULTS=$work/results
end() {
  local code=$?
  if [ "$code" != 0 ]; then tail -n 30 "$work"/*/*.log "$work"/slurm/log/*.log >&2 || true; fi
  "$here/cluster.sh" stop "$work/slurm"
  rm -rf "$work"
  exit "$code"
}
trap end EXIT
"$here/cluster.sh" start "$work/slurm"

# The three lines that a user changes, and no GPU.
cp -r "$here/../../deploy/slurm" "$work/jobs"
run='leaky --n 64 --lambda 0.9 --d 2 --replicas 655360 --rounds 300 --seed 7 --backend cpu'
sed -i -e '/--gres=/d' -e "s|^RUN=.*|RUN=(run $run --threads 1)|" "$work/jobs/run.sbatch"

cd "$work/jobs"
jobs=$(./submit.sh)
echo "$jobs"
array=$(echo "$jobs" | sed -n 's/^array job \([0-9]*\),.*/\1/p')
merge=$(echo "$jobs" | sed -n 's/.* merge job \([0-9]*\)$/\1/p')

# A task is terminated once its journal has a block.
journal=$RESULTS/shard-0.jsonl
for _ in $(seq 120); do
  if [ -f "$journal" ] && [ "$(wc -l <"$journal")" -ge 2 ]; then break; fi
  sleep 0.5
done
before=$(wc -l <"$journal")
# It waits for its answer, which a requeued job may never give.
(timeout 20 scancel --signal=TERM "${array}_0" || true) &
echo "task 0 terminated after $((before - 1)) blocks"

for _ in $(seq 240); do
  if [ -f "$RESULTS/result.json" ]; then break; fi
  sleep 1
done
restarts=$(scontrol show job "${array}_0" | sed -n 's/.* Restarts=\([0-9]*\) .*/\1/p' | head -n 1)
squeue --all || true
[ -f "$RESULTS/result.json" ] || { echo "test.sh: no result (merge job $merge)" >&2; exit 1; }
[ "${restarts:-0}" -ge 1 ] || { echo "test.sh: task 0 was not requeued" >&2; exit 1; }

# shellcheck disable=SC2086
"$program" run $run --out "$work/single.jsonl" --quiet >/dev/null
"$program" report "$work/single.jsonl" --format json --output "$work/single.json"
cmp "$work/single.json" "$RESULTS/result.json"
echo "test.sh: four shards, one of them requeued $restarts time(s), give the result of a single run byte for byte"
