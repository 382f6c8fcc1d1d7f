//! Resource bombs: what a hostile server does to take more than its share. Each is Python for the probe server's `run`.

/// One bomb.
pub struct Bomb {
    /// What it goes for.
    pub name: &'static str,
    /// One round of it; at most some seconds.
    pub code: &'static str,
    /// Part of what the round says when it met its limit; none if its sandbox ends.
    pub expected: Option<&'static str>,
}

const fn bomb(name: &'static str, expected: &'static str, code: &'static str) -> Bomb {
    Bomb {
        name,
        code,
        expected: Some(expected),
    }
}

/// All of them. Those that end their sandbox come last.
pub const BOMBS: &[Bomb] = &[
    bomb(
        "processes",
        "(11, ",
        r"
import os, time
n, kids = 0, []
try:
    while n < 5000:
        p = os.fork()
        if p == 0:
            time.sleep(30)
            os._exit(0)
        kids.append(p); n += 1
except OSError as e:
    result = (e.errno, n)
for p in kids:
    os.kill(p, 9); os.waitpid(p, 0)
",
    ),
    bomb(
        "threads",
        "('refused', True)",
        r"
import threading, time
n, stop, all = 0, threading.Event(), []
try:
    while n < 5000:
        t = threading.Thread(target=stop.wait, daemon=True)
        t.start(); all.append(t); n += 1
except RuntimeError as e:
    result = ('refused', n < 200)
stop.set()
for t in all: t.join()
",
    ),
    bomb(
        "descriptors",
        "24",
        r"
import os
fds = []
try:
    while True: fds.append(os.open('/dev/null', 0))
except OSError as e:
    result = e.errno
for f in fds: os.close(f)
",
    ),
    bomb(
        "sockets",
        "24",
        r"
import socket
all = []
try:
    while True: all.append(socket.socket())
except OSError as e:
    result = e.errno
for s in all: s.close()
",
    ),
    bomb(
        "temporary files",
        "28",
        r"
import os
try:
    with open('/tmp/x', 'wb') as f:
        while True: f.write(b'x' * (1 << 20))
except OSError as e:
    result = e.errno
os.unlink('/tmp/x')
",
    ),
    bomb(
        "output",
        "done",
        r"
for _ in range(20000): print('x' * 100)
result = 'done'
",
    ),
    bomb(
        "processor",
        "done",
        r"
import os, time
kids = []
for _ in range(8):
    p = os.fork()
    if p == 0:
        end = time.monotonic() + 3
        while time.monotonic() < end: pass
        os._exit(0)
    kids.append(p)
for p in kids: os.waitpid(p, 0)
result = 'done'
",
    ),
    bomb(
        "connections out",
        "done",
        r"
import socket, threading, time
end = time.monotonic() + 3
def flood():
    while time.monotonic() < end:
        s = socket.socket(); s.settimeout(0.5)
        try: s.connect(('198.18.7.7', 443)); s.recv(1)
        except OSError: pass
        s.close()
all = [threading.Thread(target=flood) for _ in range(16)]
for t in all: t.start()
for t in all: t.join()
result = 'done'
",
    ),
    bomb(
        "questions",
        "done",
        r"
import socket, struct, time
server = [l.split()[1] for l in open('/etc/resolv.conf') if l.startswith('nameserver')][0]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, n = time.monotonic() + 3, 0
while time.monotonic() < end:
    name = b'%04x' % (n & 0xffff); n += 1
    s.sendto(struct.pack('>HHHHHH', n & 0xffff, 256, 1, 0, 0, 0) + b'\x04' + name + b'\x07example\x00\x00\x01\x00\x01', (server, 53))
result = 'done'
",
    ),
    bomb("big answers", "xxxx", "result = 'x' * (16 << 20)"),
    bomb(
        "storage",
        "done",
        r"
import os, time
end = time.monotonic() + 3
with open('/home/app/x', 'wb') as f:
    while time.monotonic() < end and f.tell() < 1 << 30: f.write(b'x' * (1 << 20))
os.unlink('/home/app/x')
result = 'done'
",
    ),
    Bomb {
        name: "memory",
        code: "x = b'x' * (1200 << 20)",
        expected: None,
    },
];
