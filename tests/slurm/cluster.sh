#!/bin/bash
# A Slurm cluster of one node on this machine, for a test: start FOLDER or stop FOLDER, then SLURM_CONF=FOLDER/slurm.conf.
# Needs root and the Debian packages slurm-wlm and munge; no systemd, no control groups.
set -euo pipefail
action=$1
folder=$2

start() {
  mkdir -p "$folder"/{state,spool,log} /run/munge
  chown munge: /run/munge
  local node
  node=$(hostname -s)
  cat >"$folder/slurm.conf" <<CONF
ClusterName=leakybins
SlurmctldHost=$node
NodeName=$node CPUs=$(nproc) RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
AuthType=auth/munge
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
# A requeued job starts again at once, not after two minutes.
SchedulerParameters=requeue_delay=1,bf_interval=1,sched_interval=1
KillWait=5
CONF
  runuser -u munge -- /usr/sbin/munged --force
  slurmctld -f "$folder/slurm.conf"
  slurmd -f "$folder/slurm.conf"
  for _ in $(seq 60); do
    if SLURM_CONF=$folder/slurm.conf sinfo --noheader --format %t 2>/dev/null | grep -q '^idle'; then return; fi
    sleep 1
  done
  echo "cluster.sh: the node is not idle after 60 s" >&2
  tail -n 20 "$folder"/log/*.log >&2
  return 1
}

stop() {
  local file
  for file in "$folder/slurmd.pid" "$folder/slurmctld.pid" /run/munge/munged.pid; do
    if [ -f "$file" ]; then kill "$(cat "$file")" || true; fi
  done
}

"$action"
