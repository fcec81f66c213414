#!/bin/bash
# A Slurm of one node with two processors on this machine, for a test; then SLURM_CONF=FOLDER/slurm.conf.
#   cluster.sh start FOLDER     what a killed test left there is stopped and deleted first
#   cluster.sh vanish FOLDER    the node with all its tasks is gone without a word, and comes back
#   cluster.sh stop FOLDER      ends every process of the cluster and its tasks, and deletes FOLDER
# Needs root and the Debian packages slurm-wlm and munge; no systemd, no control groups. It has its own munge and ports,
# and leaves a Slurm of the machine alone.
set -euo pipefail
action=$1
folder=$2
export SLURM_CONF=$folder/slurm.conf

start() {
  stop
  mkdir -p "$folder"/{state,spool,log,munge}
  chmod -R u=rwX,go=rX "$folder"
  (umask 077 && head -c 1024 /dev/urandom >"$folder/munge/key")
  local node
  node=$(hostname -s)
  cat >"$SLURM_CONF" <<CONF
ClusterName=leakybins
SlurmctldHost=$node
SlurmctldPort=26817
SlurmdPort=26818
NodeName=$node CPUs=2 RealMemory=500 State=UNKNOWN
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES State=UP
AuthType=auth/munge
# A requeued task waits until its credential has expired: 5 s here, two minutes by default.
AuthInfo=socket=$folder/munge/socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
# Only what asks for it is requeued, as at the strictest of sites.
JobRequeue=0
SchedulerParameters=bf_interval=1,sched_interval=1
KillWait=5
# A task that its node does not know is requeued, if it was started 6 s ago or earlier.
BatchStartTimeout=1
MessageTimeout=5
CONF
  (cd "$folder/munge" && munged --key-file="$PWD/key" --socket="$PWD/socket" --pid-file="$PWD/pid" \
    --seed-file="$PWD/seed" --log-file="$folder/log/munged.log")
  slurmctld -f "$SLURM_CONF"
  slurmd -f "$SLURM_CONF"
  for _ in $(seq 60); do
    if sinfo --noheader --format %t 2>/dev/null | grep -q '^idle'; then return; fi
    sleep 1
  done
  echo "cluster.sh: the node is not idle after 60 s" >&2
  tail -n 20 "$folder"/log/*.log >&2
  return 1
}

# Process ids of the cluster and its tasks: all but munged work in the folder.
members() {
  local process
  for process in /proc/[0-9]*; do
    case $(readlink "$process/cwd") in
      "$folder" | "$folder"/*) echo "${process#/proc/}" ;;
      /) if tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -q "^munged .*$folder/"; then echo "${process#/proc/}"; fi ;;
    esac
  done
}

vanish() {
  local id
  for id in $(members); do
    case $(cat "/proc/$id/comm") in
      slurmctld | slurmscriptd | munged) ;;
      *) kill -KILL "$id" ;;
    esac
  done
  # The controller asks only for tasks that should have started by now.
  sleep 7
  slurmd -f "$SLURM_CONF"
}

stop() {
  local id
  for _ in $(seq 20); do
    local ids
    ids=$(members)
    if [ -z "$ids" ]; then
      rm -rf "$folder"
      return
    fi
    for id in $ids; do kill -KILL "$id" 2>/dev/null || true; done
    sleep 0.2
  done
  echo "cluster.sh: processes $ids do not end" >&2
  return 1
}

"$action"
