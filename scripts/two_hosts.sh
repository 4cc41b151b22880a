# Two hosts on one machine: network namespaces with a cable between them. Scripts source this file; it needs root.
# shellcheck shell=bash disable=SC2034,SC2054  # who sources it uses over_cable; mpirun's lists have commas
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none)
hosts=("bertrand-$$-a" "bertrand-$$-b")

# make_hosts DIRECTORY: false if namespaces are not permitted. Afterwards "${over_cable[@]}" -n 2 starts one process on each host,
# -n 3 two on the second. A file that mpirun needs is written into the directory.
make_hosts() {
  local host link
  ip netns add "${hosts[0]}" && ip netns add "${hosts[1]}" &&
    ip -n "${hosts[0]}" link add eth0 type veth peer name eth0 netns "${hosts[1]}" &&
    ip -n "${hosts[0]}" addr add 10.78.0.1/24 dev eth0 && ip -n "${hosts[1]}" addr add 10.78.0.2/24 dev eth0 || return 1
  for host in "${hosts[@]}"; do for link in lo eth0; do ip -n "$host" link set "$link" up || return 1; done; done
  # mpirun calls this in place of ssh: host, then a command. Hosts do not see each other's processes.
  printf 'shift\nexec ip netns exec %s unshare -u -p -f --mount-proc sh -c "hostname second; $*"\n' "${hosts[1]}" >"$1/agent.sh"
  over_cable=(ip netns exec "${hosts[0]}" "${mpirun[@]}" --host 10.78.0.1,10.78.0.2,10.78.0.2 --mca plm_rsh_agent "sh $1/agent.sh"
              --mca btl tcp,self --mca btl_tcp_if_include 10.78.0.0/24 --mca oob_tcp_if_include 10.78.0.0/24)
}

remove_hosts() {
  local host
  for host in "${hosts[@]}"; do
    ip netns pids "$host" 2>/dev/null | xargs -r kill -KILL  # Open MPI's daemon, if its cable was cut
    ip netns del "$host" 2>/dev/null
  done
}

# throttle RATE: limits the cable in each direction, in the words of tc (200mbit). "" removes the limit.
throttle() {
  local host
  for host in "${hosts[@]}"; do
    tc -n "$host" qdisc del dev eth0 root 2>/dev/null || true
    [ -z "$1" ] || tc -n "$host" qdisc add dev eth0 root tbf rate "$1" burst 128kb limit 8mb || return 1
  done
}
