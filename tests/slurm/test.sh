#!/bin/bash
# The Slurm files of deploy/ on a real Slurm of one node. An array of four shards, one task of which is terminated in the
# middle, as at its time limit; then the node with its running tasks vanishes. All of them must be requeued, and the merge
# that waited must give, byte for byte, the result of a single run. A task that fails must cancel the merge.
# Usage: test.sh PROGRAM. Needs root; installs Slurm on Debian and Ubuntu where it is missing.
set -euo pipefail
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "test.sh: $*" >&2 && exit 1; }

[ "$(id -u)" = 0 ] || fail "a Slurm can be started by root only"
# Without the services of these packages, which would start and stay.
install_slurm() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
)
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  command -v apt-get >/dev/null || fail "please install Slurm (slurmctld, slurmd, srun) and munge"
  install_slurm
fi

# One test at a time on a machine; its folder is always the same, so that the next one can clean up after a killed one.
exec 9>/run/leakybins-slurm.lock
flock --nonblock 9 || fail "another one is running on this machine"
cluster=/run/leakybins-slurm
export SLURM_CONF=$cluster/slurm.conf LEAKYBINS=$program RESULTS=$cluster/results
end() {
  local code=$?
  if [ "$code" != 0 ]; then tail -n 30 "$cluster"/*.log "$cluster"/log/slurm*.log >&2 || true; fi
  "$here/cluster.sh" stop "$cluster"
  exit "$code"
}
trap end EXIT
"$here/cluster.sh" start "$cluster" 9>&-

# submit RUN: the files with what a user changes in them, and without a GPU.
submit() {
  cp "$here"/../../deploy/slurm/* "$cluster"
  sed -i -e '/--gres=/d' -e "s|^RUN=.*|RUN=($1)|" "$cluster/run.sbatch"
  (cd "$cluster" && ./submit.sh --nice=0)
}
# wait_for SECONDS WHAT COMMAND ..
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "$what: waited in vain. $(squeue)"
    sleep 0.2
  done
}
# A header and a finished block are two lines.
has_a_block() { [ -f "$1" ] && [ "$(wc -l <"$1")" -ge 2 ]; }
state() { scontrol show job "$1" | sed -n 's/.* *JobState=\([A-Z_]*\).*/\1/p' | head -n 1; }
# ends SECONDS STATE JOB
ends() {
  wait_for "$1" "end of job $3" has_ended "$3"
  [ "$(state "$3")" = "$2" ] || fail "job $3 is $(state "$3"), not $2"
}
has_ended() { [[ $(state "$1") =~ ^(COMPLETED|CANCELLED|FAILED)$ ]]; }
was_requeued() { scontrol show job "$1" | grep -q ' Restarts=[1-9]'; }

run='run leaky --n 64 --lambda 0.9 --d 2 --replicas 655360 --rounds 200 --seed 7 --backend cpu --log error'
jobs=$(submit "$run --threads 1")
echo "$jobs"
[[ $jobs =~ array\ job\ ([0-9]+),\ then\ merge\ job\ ([0-9]+) ]]
array=${BASH_REMATCH[1]} merge=${BASH_REMATCH[2]}

wait_for 60 "block of task 0" has_a_block "$RESULTS/shard-0.jsonl"
# scancel tries again where the task is already on its way back to the queue: it must not meet the next sitting.
timeout 2 scancel --signal=TERM "${array}_0" || true
wait_for 20 "requeue of task 0" was_requeued "${array}_0"
echo "task 0 terminated after $(($(wc -l <"$RESULTS/shard-0.jsonl") - 1)) blocks"
wait_for 60 "block of task 2" has_a_block "$RESULTS/shard-2.jsonl"
"$here/cluster.sh" vanish "$cluster" 9>&-
echo "node vanished when task 2 had $(($(wc -l <"$RESULTS/shard-2.jsonl") - 1)) blocks"

ends 300 COMPLETED "$merge"
for task in 0 2; do
  was_requeued "${array}_$task" || fail "task $task was not requeued"
done
# shellcheck disable=SC2086
"$program" $run --out "$cluster/single.jsonl" --quiet >/dev/null
"$program" report "$cluster/single.jsonl" --format json --log error --output "$cluster/single.json"
cmp "$cluster/single.json" "$RESULTS/result.json"

jobs=$(submit "run leaky --lambda 2")
[[ $jobs =~ merge\ job\ ([0-9]+) ]]
ends 60 CANCELLED "${BASH_REMATCH[1]}"
echo "test.sh: four shards, terminated, vanished and requeued, give the result of a single run byte for byte"
