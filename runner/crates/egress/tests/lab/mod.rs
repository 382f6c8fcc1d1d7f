//! A sandbox's surroundings out of network namespaces: a guest, a neighbour, the host between, and an internet behind.
//!
//! ```text
//!  guest 10.99.0.2 --(w<tag>-1)-- host: filter, egress --(up)-- internet: 140.82.121.6 and others
//!  neighbour 10.99.0.3 --(w<tag>-2)--'
//! ```

#![allow(clippy::unwrap_used, clippy::print_stderr, dead_code)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use egress::{
    Allowlist, Bounds, Egress, EgressEvent, Filter, Guest, HostName, Outside, Sockets, System,
    Targets, event_channel,
};
use nix::sched::{CloneFlags, setns};
use rustls::pki_types::{PrivateKeyDer, ServerName};

/// The gateway's address on every interface of a guest.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(169, 254, 7, 1);
pub const WAIT: Duration = Duration::from_secs(10);
/// How long silence has to last to be taken for it.
const SILENCE: Duration = Duration::from_millis(600);
static LABS: AtomicU32 = AtomicU32::new(0);

/// Whether the tests can run here; says loudly when not.
pub fn able() -> bool {
    let root = nix::unistd::geteuid().is_root();
    let tools = ["nft", "ip"]
        .iter()
        .all(|t| Command::new(t).arg("-V").output().is_ok());
    if root && tools {
        return true;
    }
    let why = "egress tests need root, nft and ip";
    assert!(std::env::var_os("WEIR_KIT_REQUIRED").is_none(), "{why}");
    eprintln!("LEFT OUT: {why}");
    false
}

/// Names of the private internet.
type Table = Arc<Mutex<Vec<(String, Vec<IpAddr>)>>>;

pub struct Lab {
    tag: String,
    pub filter: Filter,
    egress: Arc<Mutex<Option<Egress>>>,
    pub events: Mutex<tokio::sync::mpsc::Receiver<EgressEvent>>,
    pub names: Table,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    host: Option<thread::JoinHandle<()>>,
    pub ca: rustls::RootCertStore,
    pub sum: Arc<Sum>,
}

/// What the guest's egress was told to add up.
#[derive(Default)]
pub struct Sum {
    pub up: AtomicU64,
    pub down: AtomicU64,
}

impl egress::Tally for Sum {
    fn up(&self, bytes: u64) {
        self.up.fetch_add(bytes, Ordering::Relaxed);
    }

    fn down(&self, bytes: u64) {
        self.down.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The names of the private internet; everything else of a host's way out is real.
struct Hosts(Table);

#[async_trait]
impl Outside for Hosts {
    async fn resolve(&self, name: &HostName) -> std::io::Result<Vec<IpAddr>> {
        let table = self.0.lock().unwrap();
        let found = table.iter().find(|(n, _)| n == name.as_str());
        found
            .map(|(_, a)| a.clone())
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    async fn connect(&self, to: SocketAddr) -> std::io::Result<tokio::net::TcpStream> {
        System.connect(to).await
    }

    fn own_addresses(&self) -> std::io::Result<Vec<IpAddr>> {
        System.own_addresses()
    }
}

impl Lab {
    pub fn new(rules: &[&str], bounds: Bounds, events_max: usize) -> Lab {
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let number = char::from_digit(number, 36).expect("a digit for each lab");
        let tag = format!("{:03x}{number}", std::process::id() & 0xfff);
        let filter = Filter::new(&tag).unwrap();
        for ns in ["guest", "neighbour", "host", "net"] {
            ip(&format!("netns add {tag}-{ns}"));
            ip(&format!("-n {tag}-{ns} link set lo up"));
        }
        let (ca, tls) = certificates();
        let names = Arc::new(Mutex::new(Vec::new()));
        let (events_in, events) = event_channel(events_max);
        let mut lab = Lab {
            tag,
            filter,
            egress: Arc::default(),
            events: Mutex::new(events),
            names: Arc::clone(&names),
            stop: None,
            host: None,
            ca,
            sum: Arc::default(),
        };
        lab.wire_internet();
        lab.serve_internet(tls);
        let guests = [
            lab.wire("guest", 1, Ipv4Addr::new(10, 99, 0, 2)),
            lab.wire("neighbour", 2, Ipv4Addr::new(10, 99, 0, 3)),
        ];
        let rules = Allowlist::parse(rules).unwrap();
        let (ready, is_ready) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (filter, slot) = (lab.filter.clone(), Arc::clone(&lab.egress));
        let sum = Arc::clone(&lab.sum);
        let host = lab.within("host", move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                // The order that the daemon has to keep.
                filter.install(&[]).await.unwrap();
                let mut running = Vec::new();
                for (interface, address) in guests {
                    let sockets = Sockets::bind(&interface, GATEWAY).unwrap();
                    let guest = guest_of(&interface, address, &sockets);
                    filter.add(&guest).await.unwrap();
                    let outside = Arc::new(Hosts(Arc::clone(&names)));
                    let egress = Egress::start(
                        sockets,
                        rules.clone(),
                        outside,
                        Targets::default(),
                        bounds.clone(),
                        events_in.clone(),
                        if running.is_empty() {
                            Arc::clone(&sum) as _
                        } else {
                            Arc::new(())
                        },
                    );
                    running.push(egress.unwrap());
                }
                filter.verify().await.unwrap();
                *slot.lock().unwrap() = Some(running.remove(0));
                ready.send(()).unwrap();
                let _ = stopped.await;
                let own = slot.lock().unwrap().take();
                if let Some(own) = own {
                    own.stop().await;
                }
            });
        });
        is_ready.recv_timeout(WAIT).expect("the egress starts");
        (lab.stop, lab.host) = (Some(stop), Some(host));
        for (ns, n) in [("guest", 1), ("neighbour", 2)] {
            ip(&format!(
                "-n {t}-host link set {i} up",
                t = lab.tag,
                i = lab.filter.interface(n)
            ));
            ip(&format!(
                "-n {t}-host route add 10.99.0.{a}/32 dev {i}",
                t = lab.tag,
                a = n + 1,
                i = lab.filter.interface(n)
            ));
            ip(&format!(
                "-n {t}-{ns} route add default via {GATEWAY} dev eth0 onlink",
                t = lab.tag
            ));
        }
        lab
    }

    /// Two ends of a wire; the host's stays down.
    fn wire(&self, ns: &str, number: u32, address: Ipv4Addr) -> (String, Ipv4Addr) {
        let (tag, interface) = (&self.tag, self.filter.interface(number));
        ip(&format!(
            "-n {tag}-host link add {interface} type veth peer name eth0 netns {tag}-{ns}"
        ));
        ip(&format!(
            "-n {tag}-host addr add {GATEWAY}/32 dev {interface}"
        ));
        ip(&format!("-n {tag}-{ns} addr add {address}/32 dev eth0"));
        ip(&format!("-n {tag}-{ns} link set eth0 up"));
        (interface, address)
    }

    /// The worst host: it forwards packets, and knows the way to everywhere.
    fn wire_internet(&self) {
        let tag = &self.tag;
        ip(&format!(
            "-n {tag}-host link add out0 type veth peer name in0 netns {tag}-net"
        ));
        ip(&format!("-n {tag}-host addr add 11.0.0.1/24 dev out0"));
        ip(&format!("-n {tag}-host link set out0 up"));
        ip(&format!("-n {tag}-net addr add 11.0.0.2/24 dev in0"));
        ip(&format!("-n {tag}-net link set in0 up"));
        for address in [
            "140.82.121.6",
            "140.82.121.7",
            "8.8.8.8",
            "169.254.169.254",
            "10.5.5.5",
        ] {
            ip(&format!("-n {tag}-net addr add {address}/32 dev lo"));
        }
        ip(&format!("-n {tag}-host route add default via 11.0.0.2"));
        ip(&format!("-n {tag}-net route add 10.99.0.0/24 via 11.0.0.1"));
        self.within("host", || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        })
        .join()
        .unwrap();
    }

    fn serve_internet(&self, tls: Arc<rustls::ServerConfig>) {
        let (ready, is_ready) = mpsc::channel();
        self.within("net", move || {
            let any = Ipv4Addr::UNSPECIFIED;
            for port in [443, 8443, 8080] {
                let listener = TcpListener::bind((any, port)).unwrap();
                let tls = Arc::clone(&tls);
                thread::spawn(move || each(&listener, move |s| answer_tls(s, &tls)));
            }
            let plain = TcpListener::bind((any, 80)).unwrap();
            thread::spawn(move || each(&plain, answer_plain));
            let greeting = TcpListener::bind((any, 5432)).unwrap();
            thread::spawn(move || each(&greeting, greet));
            let sink = TcpListener::bind((any, 9000)).unwrap();
            thread::spawn(move || {
                each(&sink, |mut s| {
                    drop(std::io::copy(&mut s, &mut std::io::sink()))
                })
            });
            for port in [53, 443, 123] {
                let socket = UdpSocket::bind((any, port)).unwrap();
                thread::spawn(move || {
                    let mut buffer = [0; 2048];
                    while let Ok((n, from)) = socket.recv_from(&mut buffer) {
                        let _ = socket.send_to(&buffer[..n], from);
                    }
                });
            }
            ready.send(()).unwrap();
        })
        .join()
        .unwrap();
        is_ready.recv_timeout(WAIT).unwrap();
    }

    /// Runs on a thread within a namespace; so do the threads that it starts.
    pub fn within<T: Send + 'static>(
        &self,
        ns: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let file = File::open(format!("/run/netns/{}-{ns}", self.tag)).unwrap();
        thread::spawn(move || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }

    /// Runs within the guest, and waits.
    pub fn guest<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.within("guest", work).join().unwrap()
    }

    pub fn set_rules(&self, rules: &[&str]) {
        let slot = self.egress.lock().unwrap();
        slot.as_ref()
            .unwrap()
            .set_rules(Allowlist::parse(rules).unwrap());
    }

    pub fn traffic(&self) -> Arc<egress::Traffic> {
        Arc::clone(self.egress.lock().unwrap().as_ref().unwrap().traffic())
    }

    pub fn name(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let mut names = self.names.lock().unwrap();
        names.retain(|(n, _)| n != name);
        names.push((name.to_owned(), addresses));
    }

    /// Waits for an event that fits; others before it are passed over.
    pub fn event(&self, fits: impl Fn(&EgressEvent) -> bool) -> EgressEvent {
        let until = Instant::now() + WAIT;
        let mut seen = Vec::new();
        while Instant::now() < until {
            match self.events.lock().unwrap().try_recv() {
                Ok(event) if fits(&event) => return event,
                Ok(event) => seen.push(event),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
        panic!("no such event; seen {seen:#?}");
    }

    /// Waits until the guest sent so many bytes outwards.
    pub fn moved(&self, bytes: u64) {
        let until = Instant::now() + WAIT;
        while self.traffic().bytes_up() < bytes {
            assert!(
                Instant::now() < until,
                "{} of {bytes} bytes",
                self.traffic().bytes_up()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn stop_host(&mut self) {
        drop(self.stop.take());
        if let Some(host) = self.host.take() {
            host.join().unwrap();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(host) = self.host.take() {
            let _ = host.join();
        }
        for ns in ["guest", "neighbour", "host", "net"] {
            let _ = Command::new("ip")
                .args(["netns", "del", &format!("{}-{ns}", self.tag)])
                .status();
        }
    }
}

pub fn guest_of(interface: &str, address: Ipv4Addr, sockets: &Sockets) -> Guest {
    Guest {
        interface: interface.to_owned(),
        address,
        dns_udp_port: sockets.dns_udp.local_addr().unwrap().port(),
        dns_tcp_port: sockets.dns_tcp.local_addr().unwrap().port(),
        forward_port: sockets.forward.local_addr().unwrap().port(),
    }
}

fn ip(args: &str) {
    let output = Command::new("ip").args(args.split(' ')).output().unwrap();
    assert!(
        output.status.success(),
        "ip {args}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn each(listener: &TcpListener, work: impl Fn(TcpStream) + Clone + Send + 'static) {
    for stream in listener.incoming().flatten() {
        let work = work.clone();
        thread::spawn(move || work(stream));
    }
}

fn answer_plain(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    let Ok(1..) = stream.read(&mut buffer) else {
        return;
    };
    let to = stream.local_addr().unwrap();
    let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\nplain at {to}");
}

fn answer_tls(mut stream: TcpStream, tls: &Arc<rustls::ServerConfig>) {
    let Ok(mut connection) = rustls::ServerConnection::new(Arc::clone(tls)) else {
        return;
    };
    let to = stream.local_addr().unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut stream);
    let mut buffer = [0; 4096];
    let Ok(1..) = stream.read(&mut buffer) else {
        return;
    };
    let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\ntls at {to}");
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

fn greet(mut stream: TcpStream) {
    let _ = stream.write_all(b"hello, who are you?\n");
    let mut buffer = [0; 256];
    if let Ok(n @ 1..) = stream.read(&mut buffer) {
        let _ = stream.write_all(&buffer[..n]);
    }
}

/// One certificate for every name of the private internet, as at a large provider.
fn certificates() -> (rustls::RootCertStore, Arc<rustls::ServerConfig>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let names = [
        "api.github.com",
        "other.example.net",
        "a.internal.company.com",
        "rebound.example.net",
        "*.wild.example.net",
    ];
    let made = rcgen::generate_simple_self_signed(names.map(str::to_owned)).unwrap();
    let der = made.cert.der().clone();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![der], key)
        .unwrap();
    (roots, Arc::new(config))
}

/// An A question over UDP to `server`: response code and address.
pub fn ask(server: &str, name: &str) -> Option<(u8, Option<Ipv4Addr>)> {
    ask_for(server, &question(name, 1)).map(|reply| (reply[3] & 15, address_in(&reply)))
}

pub fn ask_for(server: &str, question: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    socket.connect((server, 53)).ok()?;
    socket.send(question).ok()?;
    let mut buffer = [0; 2048];
    let n = socket.recv(&mut buffer).ok()?;
    Some(buffer[..n].to_vec())
}

pub fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut out = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|l| !l.is_empty()) {
        out.push(u8::try_from(label.len()).unwrap());
        out.extend(label.bytes());
    }
    out.push(0);
    out.extend(kind.to_be_bytes());
    out.extend([0, 1]);
    out
}

fn address_in(reply: &[u8]) -> Option<Ipv4Addr> {
    let four: [u8; 4] = reply.last_chunk().copied()?;
    (reply[7] == 1).then(|| Ipv4Addr::from(four))
}

pub fn resolve(name: &str) -> Ipv4Addr {
    ask("169.254.7.1", name)
        .and_then(|(_, a)| a)
        .unwrap_or_else(|| panic!("{name} has an address"))
}

pub fn dial(to: (Ipv4Addr, u16)) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to.into(), SILENCE * 3)?;
    stream.set_read_timeout(Some(WAIT))?;
    Ok(stream)
}

/// Sends bytes and reads to the end.
pub fn talk(to: (Ipv4Addr, u16), say: &[u8]) -> std::io::Result<String> {
    let mut stream = dial(to)?;
    stream.write_all(say)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The first bytes of a client over TLS with this server name.
pub fn hello(sni: Option<&str>) -> Vec<u8> {
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = sni.is_some();
    let name = ServerName::try_from(sni.unwrap_or("api.github.com").to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

/// A GET over TLS with this server name.
pub fn tls(
    roots: &rustls::RootCertStore,
    to: (Ipv4Addr, u16),
    sni: Option<&str>,
) -> std::io::Result<String> {
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.enable_sni = sni.is_some();
    let name = ServerName::try_from(sni.unwrap_or("api.github.com").to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = dial(to)?;
    let mut stream = rustls::Stream::new(&mut connection, &mut stream);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
