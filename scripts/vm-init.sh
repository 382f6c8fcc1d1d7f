#!/bin/bash
# The first process of the virtual machine of scripts/vm.sh: mounts what a host has, runs the tests, ends the machine.
export PATH=/usr/bin:/usr/sbin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev 2> /dev/null || mount -t devtmpfs dev /dev 2> /dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup /sys/fs/cgroup
for module in virtio_net af_packet loop veth nf_tables nft_ct nft_redir nft_nat nft_reject_inet nft_limit nft_chain_nat overlay; do modprobe "$module" 2> /dev/null; done
ip link set lo up
# Addresses that the emulator gives out.
eth=$(ls /sys/class/net | grep -v -E '^(lo|bonding)' | head -1)
ip address add 10.0.2.15/24 dev "$eth" && ip link set "$eth" up && ip route add default via 10.0.2.2
. /etc/weir-vm
export WEIR_CACHE WEIR_KIT_REQUIRED WEIR_PATIENCE
echo "weir-vm: Linux $(uname -r), control groups of version 2: $(cat /sys/fs/cgroup/cgroup.controllers)"
failed=0
for test in "${TESTS[@]}"; do
  echo "weir-vm: $(basename "$test")"
  # Emulated, the seed's server takes longer to start than any caller waits; a restore is tried with a smaller one.
  "$test" --test-threads 1 --nocapture --skip the_second_start_is_a_restore "${NAMES[@]}" || failed=1
done
[ $failed = 0 ] && echo "weir-vm: passed" || echo "weir-vm: FAILED"
sync
poweroff -f
