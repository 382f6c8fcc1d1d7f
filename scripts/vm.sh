#!/usr/bin/env bash
# The tests of hosting in a small virtual machine, whose control groups are of version 2 alone: Debian's cloud kernel, emulated
# (no hardware help is asked for, so it runs anywhere and takes its time), on a disk that is thrown away. It reaches a network
# only as a client of this host does, and nothing reaches it.
#
#   scripts/vm.sh [NAME...]    parts of the names of tests; default: all of limits, life, kills and probes in runner/tests
#
# VM_MEMORY=3072 (MiB), VM_CORES=2, VM_MINUTES=60, VM_DISK=6 (GiB, sparse), KEEP=1 keeps the disk and says where it is.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
CORES=${VM_CORES:-2} MEMORY=${VM_MEMORY:-3072} MINUTES=${VM_MINUTES:-60} DISK=${VM_DISK:-6}
VM=$WEIR_CACHE/vm
# What the runner and its tests call by name, with a shell to start them.
PROGRAMS=(runsc nft ip mkfs.ext4 mount umount losetup bash env cat ps timeout)

main() {
  scripts/setup.sh vm
  local work; work=$(mktemp -d -p "${TMPDIR:-/tmp}" weir-vm.XXXXXX)
  # shellcheck disable=SC2064
  if [ -z "${KEEP:-}" ]; then trap "rm -rf '$work'" EXIT; else say "kept: $work"; fi
  say "building the runner and its tests"
  local tests
  tests=$(build_tests)
  say "making the machine's disk"
  mkdir "$work/root" "$work/boot"
  fill_root "$work/root" "$tests" "$@"
  mkfs.ext4 -q -F -d "$work/root" "$work/disk" "${DISK}G"
  rm -rf "$work/root"
  make_boot "$work/boot" > "$work/boot.cpio"
  say "the machine starts (at most $MINUTES minutes)"
  timeout "$((MINUTES * 60))" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp "$CORES" -m "$MEMORY" \
    -nodefaults -no-user-config -display none -no-reboot -serial stdio -nic user,model=virtio-net-pci \
    -kernel "$VM"/boot/vmlinuz-* -initrd "$work/boot.cpio" \
    -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" \
    -append "console=ttyS0 loglevel=1 panic=-1 mitigations=off" < /dev/null | tee "$work/said"
  grep -q '^weir-vm: passed' "$work/said" || die "the tests did not pass in the virtual machine"
}

# Paths of the test programs, one to a line.
build_tests() {
  cargo build --release --workspace --bins >&2
  cargo test --release --workspace --no-run --message-format=json --test limits --test life --test kills --test probes \
    | grep -o '"executable":"[^"]*/deps/[^"]*"' | cut -d'"' -f4 | sort -u
}

fill_root() {
  local root=$1 tests=$2; shift 2
  mkdir -p "$root"/{proc,sys,dev,run,tmp,etc,root,var/tmp,lib/modules}
  local program
  for program in "${PROGRAMS[@]}"; do put "$root" "$(readlink -f "$(PATH=$PATH:/usr/sbin:/sbin type -P "$program")")" "/usr/bin/$program"; done
  # Where the runner and runsc look for them.
  for program in nft ip mkfs.ext4; do mkdir -p "$root/usr/sbin"; ln -sf "../bin/$program" "$root/usr/sbin/$program"; done
  ln -s usr/bin "$root/bin"; ln -s usr/sbin "$root/sbin"
  cp "$(command -v busybox)" "$root/usr/bin/busybox"
  for program in $(busybox --list); do
    [ -e "$root/usr/bin/$program" ] || [ -e "$root/usr/sbin/$program" ] || ln -s busybox "$root/usr/bin/$program"
  done
  put "$root" "$TARGET/release/weir-runner" "$TARGET/release/weir-runner"
  for program in $tests; do put "$root" "$program" "$program"; done
  mkdir -p "$root$WEIR_CACHE"
  WEIR_CACHE=$WEIR_CACHE "$TARGET/release/weir-runner" --state "$WEIR_CACHE" rootfs build
  cp -a "$WEIR_CACHE/rootfs" "$root$WEIR_CACHE/rootfs"
  cp -a "$VM"/lib/modules/* "$root/lib/modules/"
  printf 'root:x:0:0:root:/root:/bin/sh\n' > "$root/etc/passwd"
  printf 'root:x:0:\n' > "$root/etc/group"
  printf '127.0.0.1 localhost\n' > "$root/etc/hosts"
  # The emulator's own resolver.
  echo 'nameserver 10.0.2.3' > "$root/etc/resolv.conf"
  mkdir -p "$root/etc/ssl/certs"; cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  cp scripts/vm-init.sh "$root/init"; chmod 755 "$root/init"
  {
    printf 'export WEIR_CACHE=%q WEIR_KIT_REQUIRED=1 WEIR_PATIENCE=10\n' "$WEIR_CACHE"
    printf 'TESTS=(%s)\n' "$(printf '%q ' $tests)"
    printf 'NAMES=(%s)\n' "$([ $# = 0 ] || printf '%q ' "$@")"
  } > "$root/etc/weir-vm"
}

# put ROOT FILE AS: copies a program, without symbols, and the libraries that it loads.
put() {
  local root=$1 file=$2 as=$3 lib
  mkdir -p "$root$(dirname "$as")"
  cp "$file" "$root$as"
  strip --strip-debug "$root$as" 2> /dev/null || true
  # A static program has none.
  { ldd "$file" 2> /dev/null | grep -oE '/[^ ]+' || true; } | while read -r lib; do
    [ -e "$root$lib" ] || { mkdir -p "$root$(dirname "$lib")"; cp -L "$lib" "$root$lib"; }
  done
}

# The kernel has neither the disk nor its bus built in.
make_boot() {
  local boot=$1 from version file; from=$(echo "$VM"/lib/modules/*) version=$(basename "$from")
  mkdir -p "$boot"/{bin,proc,dev,root,"lib/modules/$version"}
  cp "$(command -v busybox)" "$boot/bin/busybox"
  # A line of modules.dep names a module, then what it needs.
  grep -E '/(virtio_pci|virtio_blk)\.ko' "$from/modules.dep" | tr -d : | tr ' ' '\n' | sort -u | while read -r file; do
    [ -z "$file" ] || install -D "$from/$file" "$boot/lib/modules/$version/$file"
  done
  busybox depmod -b "$boot" "$version"
  cat > "$boot/init" << 'INIT'
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox modprobe virtio_pci
/bin/busybox modprobe virtio_blk
n=0; while [ ! -b /dev/vda ] && [ $n -lt 100 ]; do /bin/busybox sleep 0.1; n=$((n + 1)); done
/bin/busybox mount -t ext4 /dev/vda /root
exec /bin/busybox switch_root /root /init
INIT
  chmod 755 "$boot/init"
  (cd "$boot" && find . | busybox cpio -o -H newc 2> /dev/null)
}

main "$@"
