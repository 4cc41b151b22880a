#!/usr/bin/env bash
# Tries a run under Slurm itself: starts munged, slurmctld and slurmd with a configuration of its own in a temporary
# directory, trains with two processes that srun starts, requeues the job while it trains, kills one process while it trains
# again, and holds the model that comes out to that of an undisturbed run without Slurm, byte by byte.
# usage: scripts/slurm.sh BIN     BIN is a folder with pretrain and the module libbertrand_mpi.so
# It needs root and Debian's packages slurm-wlm and munge; no daemon of the system is used or disturbed.
set -euo pipefail
bin=$(realpath "${1:?usage: scripts/slurm.sh BIN}")
for tool in munged slurmctld slurmd sbatch srun scontrol; do
  command -v $tool >/dev/null || PATH=$PATH:/usr/sbin command -v $tool >/dev/null ||
    { echo "slurm.sh: $tool: expected a program, got none; hint: apt-get install slurm-wlm munge" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "slurm.sh: expected root, which starts the daemons, got $(id -un)" >&2; exit 2; }
PATH=$PATH:/usr/sbin
work=$(mktemp -d)
chmod 755 "$work"
mkdir "$work"/{state,spool,seed}
host=$(hostname -s) cores=$(nproc)
export SLURM_CONF=$work/slurm.conf
cleanup() {
  scancel --quiet --user=root 2>/dev/null || true
  cat "$work"/*.pid 2>/dev/null | xargs -r kill 2>/dev/null || true
  sleep 1
  rm -rf "$work"
}
trap cleanup EXIT

head -c 1024 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
cat >"$SLURM_CONF" <<CONF
ClusterName=bertrand
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobRequeue=1
KillWait=10
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
munged --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
  --log-file="$work/munged.log" --seed-file="$work/seed/seed" --force 2>/dev/null
slurmctld
slurmd
for _ in $(seq 50); do sinfo --noheader --format %t 2>/dev/null | grep -q idle && break; sleep 0.2; done
sinfo --noheader --format 'node %N: %t, %c cores'

# A text of its own, and a run of some ten seconds.
for d in $(seq 120); do for s in $(seq 6); do echo "the word $d follows the word $s and nobody knows why $((d * s))"; done; echo; done >"$work/text"
"$bin/prepare" vocab --input "$work/text" --size 400 --output "$work/vocab" >/dev/null
flags=(--config tiny --vocab-file "$work/vocab" --input "$work/text" --steps "${STEPS:-300}" --batch-size 8
  --micro-batch-size 4 --threads 1 --save-every 20 --quiet)
"$bin/pretrain" "${flags[@]}" --output "$work/undisturbed" >/dev/null
cat >"$work/job.sh" <<JOB
#!/bin/bash
#SBATCH --ntasks=2 --requeue --open-mode=append --output=$work/job.out
echo "start number \${SLURM_RESTART_COUNT:-0}"
# A run that was requeued goes on where it was saved. One that lost a process asks for the queue itself.
srun --mpi=pmix $bin/pretrain $(printf '%q ' "${flags[@]}")--output $work/run --resume || scontrol requeue \$SLURM_JOB_ID
JOB
job=$(sbatch --parsable "$work/job.sh")
state() { scontrol show job "$job" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'; }
step() {  # that is saved
  find "$work/run" -maxdepth 1 -name 'checkpoint-*' 2>/dev/null | grep -Eo 'checkpoint-[0-9]+$' | cut -d- -f2 | sort -n | tail -n 1 | grep . || echo 0
}
wait_until() {  # WHAT COMMAND…: at most four minutes
  local what=$1
  shift
  for _ in $(seq 1200); do "$@" && return; sleep 0.2; done
  echo "slurm.sh: expected $what, got a job that is $(state)" >&2
  tail -n 5 "$work/job.out" >&2
  exit 1
}
has_saved() { [ "$(step)" -gt "$1" ]; }
has_started() {  # Slurm lets a requeued job wait for some minutes
  grep -qs "^start number $1" "$work/job.out" && return
  scontrol release "$job" 2>/dev/null || true
  scontrol update job="$job" StartTime=now 2>/dev/null || true
  false
}
has_ended() { [ "$(state)" = COMPLETED ]; }

wait_until 'a checkpoint' has_saved 0
echo "requeued: step $(step) is saved"
scontrol requeue "$job"
wait_until 'the job to start again' has_started 1
wait_until 'more checkpoints' has_saved $(($(step) + 20))
echo "killed one of two processes: step $(step) is saved"
kill -9 "$(pgrep -f "pretrain .*$work/run --resume" | tail -1)"
wait_until 'the job to start once more' has_started 2
wait_until 'the end of the job' has_ended
cat "$work/job.out"
cmp "$work/run/model.safetensors" "$work/undisturbed/model.safetensors"
echo "the model has the bytes of the undisturbed run: 1 passed, 0 failed"
