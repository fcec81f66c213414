#!/bin/bash
# The Kubernetes files of deploy/: checked against the schema of the API, which must refuse a misspelt field; then the
# commands in them are run, index by index, and must give, byte for byte, the result of a single run.
# Usage: test.sh PROGRAM. Needs Python 3 with venv, and PyPI; installs python3-venv on Debian and Ubuntu where it is missing.
set -euo pipefail
program=$(realpath "$1")
files=$(cd "$(dirname "$0")/../../deploy/kubernetes" && pwd)
fail() { echo "test.sh: $*" >&2 && exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  command -v apt-get >/dev/null || fail "please install Python 3 with its modules venv and ensurepip"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
fi
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet kubernetes-validate==1.37.0

validate() { "$work/venv/bin/kubernetes-validate" --strict "$@"; }
validate "$files"/*.yaml
for field in backoffLimitPerIndex podFailurePolicy onExitCodes terminationGracePeriodSeconds persistentVolumeClaim; do
  sed "s/$field:/${field}s:/" "$files/job.yaml" >"$work/mutant.yaml"
  ! validate "$work/mutant.yaml" >"$work/refusal" 2>&1 || fail "the misspelt field ${field}s was not refused"
  grep -q "${field}s" "$work/refusal" || fail "the refusal of ${field}s has another reason: $(cat "$work/refusal")"
done

# field FILE KEYS: a value in a file, by its keys with dots between them.
field() {
  "$work/venv/bin/python" -c 'import sys, yaml
value = yaml.safe_load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[int(key) if isinstance(value, list) else key]
print(value)' "$files/$1" "$2"
}
container=spec.template.spec.containers.0
# run_pod FILE: the command of a file, for /results and its size with those of the test. `leakybins` is on the PATH.
run='leaky --n 16 --lambda 0.95 --d 2 --replicas 131072 --rounds 20 --seed 1 --backend cpu --log error'
run_pod() {
  local command
  command=$(field "$1" "$container.args.0")
  command=${command//\/results/$work/results}
  /bin/sh -c "${command/run leaky*--backend gpu/run $run}"
}
mkdir "$work/bin" "$work/results"
ln -s "$program" "$work/bin/leakybins"
export PATH=$work/bin:$PATH

[ "$(field job.yaml "$container.command")" = "['/bin/sh', '-c']" ] || fail "the container's command is not a shell"
shards=$(field job.yaml spec.completions)
JOB_COMPLETIONS=$(field job.yaml "$container.env.0.value")
export JOB_COMPLETIONS
[ "$shards" = "$JOB_COMPLETIONS" ] || fail "completions and JOB_COMPLETIONS differ"
code=0
for index in $(seq 0 $((shards - 1))); do
  JOB_COMPLETION_INDEX=$index run_pod job.yaml
  # The merge comes too early, as long as a shard is missing.
  if [ "$index" = 0 ]; then run_pod merge.yaml || code=$?; fi
done
[ "$code" = 3 ] || fail "a merge with shards missing ends with exit code $code, not 3"
run_pod merge.yaml
# shellcheck disable=SC2086
leakybins run $run --out "$work/single.jsonl" --quiet >/dev/null
leakybins report "$work/single.jsonl" --format json --output "$work/single.json" --log error
cmp "$work/single.json" "$work/results/result.json"
echo "test.sh: the Kubernetes files fit the API, and their commands give the result of a single run byte for byte"
