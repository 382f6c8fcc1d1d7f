//! The resolver, the forwarder and the packet filter around a real network namespace: what gets out, and what does not.

#![allow(clippy::unwrap_used)]

mod lab;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use egress::{Bounds, EgressEvent, Refusal, Sockets};
use lab::{GATEWAY, Lab, ask, ask_for, dial, question, resolve, talk, tls};
use socket2::{Domain, Socket, Type};

const RULES: &[&str] = &[
    "api.github.com:443,80,9000",
    "*.internal.company.com",
    "rebound.example.net",
    "db.example.net:5432,8080",
    "*.wild.example.net",
];

fn lab() -> Lab {
    let lab = Lab::new(RULES, Bounds::default(), 1024);
    lab.name("api.github.com", &["140.82.121.6"]);
    lab.name("other.example.net", &["140.82.121.6"]);
    lab.name("a.internal.company.com", &["140.82.121.7"]);
    lab.name("db.example.net", &["140.82.121.7"]);
    lab
}

fn refusal(lab: &Lab, wanted: Refusal) -> EgressEvent {
    lab.event(|e| matches!(e, EgressEvent::Refused { reason, .. } if *reason == wanted))
}

#[test]
fn allowed_names_are_reached_and_told() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let roots = lab.ca.clone();
    let (secure, plain, wild, greeted) = lab.guest(move || {
        let github = resolve("api.github.com");
        let secure = tls(&roots, (github, 443), Some("api.github.com")).unwrap();
        let plain = talk(
            (github, 80),
            b"GET / HTTP/1.0\r\nHost: api.github.com\r\n\r\n",
        )
        .unwrap();
        let wild = tls(
            &roots,
            (resolve("A.internal.company.COM"), 443),
            Some("a.internal.company.com"),
        )
        .unwrap();
        let greeted = talk((resolve("db.example.net"), 5432), b"it is me").unwrap();
        (secure, plain, wild, greeted)
    });
    assert!(secure.ends_with("tls at 140.82.121.6:443"), "{secure}");
    assert!(plain.ends_with("plain at 140.82.121.6:80"), "{plain}");
    assert!(wild.ends_with("tls at 140.82.121.7:443"), "{wild}");
    assert_eq!(greeted, "hello, who are you?\nit is me");

    let event = lab.event(|e| matches!(e, EgressEvent::Connection { port: 80, .. }));
    let EgressEvent::Connection {
        domain,
        address,
        bytes_up,
        bytes_down,
        cut,
        ..
    } = event
    else {
        unreachable!()
    };
    assert_eq!(
        (domain.as_str(), address.to_string().as_str(), cut),
        ("api.github.com", "140.82.121.6", false)
    );
    assert_eq!((bytes_up, bytes_down), (40, plain.len() as u64));
    let traffic = lab.traffic();
    assert!(traffic.bytes_up() > bytes_up && traffic.connections() == 4);
    let sums = [&lab.sum.up, &lab.sum.down].map(|sum| sum.load(Ordering::Relaxed));
    assert_eq!(sums, [traffic.bytes_up(), traffic.bytes_down()]);
}

#[test]
fn only_allowed_names_exist() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let answers = lab.guest(|| {
        let names = [
            "evil.com",
            "github.com",
            "xapi.github.com",
            "api.github.com.evil.com",
            "internal.company.com",
            "a.b.internal.company.com",
            "localhost",
            "metadata.google.internal",
            "169.254.169.254",
            "_x.internal.company.com",
        ];
        names.map(|n| (n, ask("169.254.7.1", n)))
    });
    for (name, answer) in answers {
        assert_eq!(answer, Some((3, None)), "{name}");
    }
    refusal(&lab, Refusal::NameNotAllowed);
    refusal(&lab, Refusal::NotAHostName);
    let (aaaa, txt, https, evil_txt) = lab.guest(|| {
        let codes = |name: &str, kind| {
            ask_for("169.254.7.1", &question(name, kind)).map(|r| (r[3] & 15, r[7]))
        };
        (
            codes("api.github.com", 28),
            codes("api.github.com", 16),
            codes("api.github.com", 65),
            codes("data.evil.com", 16),
        )
    });
    assert_eq!([aaaa, txt, https], [Some((0, 0)); 3], "no record but A");
    assert_eq!(evil_txt, Some((3, 0)));
}

#[test]
fn another_resolver_is_this_one() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let (evil, good, over_tcp) = lab.guest(|| {
        let mut stream = dial((Ipv4Addr::new(8, 8, 8, 8), 53)).unwrap();
        let asked = question("api.github.com", 1);
        let length = u16::try_from(asked.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &asked].concat()).unwrap();
        let mut reply = [0; 64];
        let n = stream.read(&mut reply).unwrap();
        (
            ask("8.8.8.8", "evil.com"),
            ask("8.8.8.8", "api.github.com"),
            reply[..n].to_vec(),
        )
    });
    assert_eq!(evil, Some((3, None)));
    let address = good.unwrap().1.expect("an address");
    assert!(address.octets()[..2] == [198, 18] || address.octets()[..2] == [198, 19]);
    assert!(over_tcp.ends_with(&address.octets()), "{over_tcp:?}");
}

#[test]
fn addresses_without_a_name_lead_nowhere() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let targets = [
        (Ipv4Addr::new(140, 82, 121, 6), 443),
        (Ipv4Addr::new(140, 82, 121, 6), 80),
        (Ipv4Addr::new(169, 254, 169, 254), 80),
        (Ipv4Addr::new(10, 5, 5, 5), 80),
        (Ipv4Addr::new(8, 8, 8, 8), 443),
        (Ipv4Addr::new(8, 8, 8, 8), 853),
        (Ipv4Addr::new(11, 0, 0, 1), 80),
        (Ipv4Addr::new(11, 0, 0, 2), 80),
        (Ipv4Addr::new(10, 99, 0, 3), 80),
        (GATEWAY, 80),
        (Ipv4Addr::new(198, 18, 77, 77), 443),
    ];
    for to in targets {
        let said = lab.guest(move || talk(to, b"GET / HTTP/1.0\r\n\r\n"));
        assert!(
            said.as_ref().map_or(true, String::is_empty) && said.is_err(),
            "{to:?} said {said:?}"
        );
        let event = refusal(&lab, Refusal::AddressLiteral);
        assert!(
            matches!(event, EgressEvent::Refused { port, domain: None, .. } if port == to.1),
            "{event:?} {to:?}"
        );
    }
}

#[test]
fn nothing_but_tcp_and_questions_leaves() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    // A service of the host, on all its addresses, and one of a neighbour: what a packet would find.
    let (service, of_neighbour) = ("0.0.0.0:9999", "0.0.0.0:9999");
    let echo = |at: &'static str| {
        move || {
            let socket = UdpSocket::bind(at).unwrap();
            std::thread::spawn(move || {
                let mut buffer = [0; 64];
                while let Ok((n, from)) = socket.recv_from(&mut buffer) {
                    let _ = socket.send_to(&buffer[..n], from);
                }
            });
        }
    };
    lab.within("host", echo(service)).join().unwrap();
    lab.within("neighbour", echo(of_neighbour)).join().unwrap();
    let udp = |to: &'static str| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(400)))
            .unwrap();
        socket
            .send_to(b"x", to)
            .and_then(|_| socket.recv(&mut [0; 8]))
            .is_ok()
    };
    for to in [
        "140.82.121.6:443",
        "8.8.8.8:123",
        "169.254.7.1:9999",
        "11.0.0.1:9999",
        "10.99.0.3:9999",
        "198.18.0.1:443",
    ] {
        assert!(!lab.guest(move || udp(to)), "{to}");
    }
    // The same packets do arrive where no filter stands before them.
    assert!(
        lab.within("host", move || udp("140.82.121.6:443")
            && udp("11.0.0.1:9999"))
            .join()
            .unwrap()
    );
    let ping = |to: &str| ["ping", "-c1", "-W1", to].map(str::to_owned);
    for to in ["140.82.121.6", "169.254.7.1", "10.99.0.3"] {
        let [program, args @ ..] = ping(to);
        let reached = lab.guest(move || {
            std::process::Command::new(program)
                .args(args)
                .output()
                .is_ok_and(|o| o.status.success())
        });
        assert!(!reached, "ping {to}");
    }
    let v6 = lab.guest(|| {
        std::net::TcpStream::connect_timeout(
            &"[2606:4700::1111]:443".parse().unwrap(),
            Duration::from_millis(500),
        )
        .is_err()
    });
    assert!(v6);
}

#[test]
fn another_source_address_is_dropped() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let spoofed = lab.guest(|| {
        let status = std::process::Command::new("ip")
            .args(["addr", "add", "10.99.0.77/32", "dev", "eth0"])
            .status()
            .unwrap();
        assert!(status.success());
        let socket = UdpSocket::bind("10.99.0.77:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(400)))
            .unwrap();
        socket
            .send_to(&question("api.github.com", 1), (GATEWAY, 53))
            .unwrap();
        socket.recv(&mut [0; 512]).is_ok()
    });
    assert!(!spoofed);
    assert!(
        lab.guest(|| ask("169.254.7.1", "api.github.com").is_some()),
        "its own address still works"
    );
}

#[test]
fn names_that_lead_to_what_is_not_public_are_refused() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let dark = [
        "169.254.169.254",
        "127.0.0.1",
        "10.5.5.5",
        "11.0.0.1",
        "169.254.7.1",
        "10.99.0.3",
        "::1",
        "::ffff:140.82.121.6",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "fec0::1",
        "fd00:ec2::254",
        "100.64.0.1",
        "198.18.0.1",
        "0.0.0.0",
    ];
    for address in dark {
        lab.name("rebound.example.net", &[address]);
        let roots = lab.ca.clone();
        let said = lab.guest(move || {
            tls(
                &roots,
                (resolve("rebound.example.net"), 443),
                Some("rebound.example.net"),
            )
        });
        assert!(said.is_err(), "{address}");
        refusal(&lab, Refusal::NotPublic);
    }
    // What is public among the answers is taken, and only that.
    lab.name(
        "rebound.example.net",
        &["127.0.0.1", "169.254.169.254", "140.82.121.7"],
    );
    let roots = lab.ca.clone();
    let said = lab.guest(move || {
        tls(
            &roots,
            (resolve("rebound.example.net"), 443),
            Some("rebound.example.net"),
        )
    });
    assert!(said.unwrap().ends_with("tls at 140.82.121.7:443"));
    lab.name("rebound.example.net", &[]);
    let roots = lab.ca.clone();
    assert!(
        lab.guest(move || tls(
            &roots,
            (resolve("rebound.example.net"), 443),
            Some("rebound.example.net")
        ))
        .is_err()
    );
    refusal(&lab, Refusal::Unresolved);
}

#[test]
fn tls_must_name_what_was_resolved() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let github = lab.guest(|| resolve("api.github.com"));
    for (sni, reason) in [
        (Some("other.example.net"), Refusal::ServerNameDiffers),
        (None, Refusal::NoServerName),
    ] {
        let roots = lab.ca.clone();
        assert!(
            lab.guest(move || tls(&roots, (github, 443), sni)).is_err(),
            "{sni:?}"
        );
        refusal(&lab, reason);
    }
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: api.github.com\r\n\r\n"[..],
        b"CONNECT evil.com:443 HTTP/1.1\r\n\r\n",
        b"SSH-2.0-x\r\n",
    ] {
        assert!(lab.guest(move || talk((github, 443), bytes)).is_err());
        refusal(&lab, Refusal::NoServerName);
    }
    // On a port without TLS of its own, TLS is checked if it comes.
    let roots = lab.ca.clone();
    assert!(
        lab.guest(move || tls(
            &roots,
            (resolve("db.example.net"), 8080),
            Some("other.example.net")
        ))
        .is_err()
    );
    refusal(&lab, Refusal::ServerNameDiffers);
}

#[test]
fn other_ports_are_refused() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let roots = lab.ca.clone();
    let github = lab.guest(|| resolve("api.github.com"));
    assert!(
        lab.guest(move || tls(&roots, (github, 8443), Some("api.github.com")))
            .is_err()
    );
    let event = refusal(&lab, Refusal::PortNotAllowed);
    assert!(
        matches!(event, EgressEvent::Refused { domain: Some(d), port: 8443, .. } if d.as_str() == "api.github.com")
    );
    assert!(lab.guest(move || talk((github, 22), b"x")).is_err());
    refusal(&lab, Refusal::PortNotAllowed);
}

#[test]
fn rules_change_under_an_open_connection() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let guest = lab.within("guest", move || {
        let mut cut = dial((resolve("api.github.com"), 9000)).unwrap();
        let mut kept = dial((resolve("db.example.net"), 5432)).unwrap();
        cut.write_all(&[7; 1000]).unwrap();
        kept.read_exact(&mut [0; 20]).unwrap();
        ready.send(()).unwrap();
        let ended = cut.read(&mut [0]);
        kept.write_all(b"still here").unwrap();
        let mut text = String::new();
        kept.read_to_string(&mut text).unwrap();
        (
            ended.is_err(),
            text,
            ask("169.254.7.1", "api.github.com"),
            ask("169.254.7.1", "new.example.net"),
        )
    });
    is_ready.recv_timeout(lab::WAIT).unwrap();
    lab.moved(1000);
    lab.set_rules(&["db.example.net:5432", "new.example.net"]);
    let (reset, text, old, new) = guest.join().unwrap();
    assert!(reset, "the connection to the name that went is reset");
    assert_eq!(text, "still here");
    assert_eq!(old, Some((3, None)));
    assert!(matches!(new, Some((0, Some(_)))));
    let event = lab.event(|e| matches!(e, EgressEvent::Connection { port: 9000, .. }));
    assert!(
        matches!(
            event,
            EgressEvent::Connection {
                cut: true,
                bytes_up: 1000,
                ..
            }
        ),
        "{event:?}"
    );
}

#[test]
fn the_end_of_the_egress_cuts_everything() {
    if !lab::able() {
        return;
    }
    let mut lab = lab();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let guest = lab.within("guest", move || {
        let mut open = dial((resolve("api.github.com"), 9000)).unwrap();
        open.write_all(&[7; 10]).unwrap();
        ready.send(()).unwrap();
        open.read(&mut [0]).is_err()
    });
    is_ready.recv_timeout(lab::WAIT).unwrap();
    lab.moved(10);
    lab.stop_host();
    assert!(guest.join().unwrap());
    lab.event(|e| {
        matches!(
            e,
            EgressEvent::Connection {
                port: 9000,
                cut: true,
                ..
            }
        )
    });
    assert_eq!(lab.guest(|| ask("169.254.7.1", "api.github.com")), None);
}

#[test]
fn a_flood_stays_within_its_bounds() {
    if !lab::able() {
        return;
    }
    let bounds = Bounds {
        connections_max: 4,
        questions_per_second: 1,
        questions_burst: 20,
        ..Bounds::default()
    };
    let lab = Lab::new(RULES, bounds, 1024);
    lab.name("api.github.com", &["140.82.121.6"]);
    let refused = lab.guest(|| {
        let github = resolve("api.github.com");
        let mut open: Vec<_> = (0..4).map(|_| dial((github, 9000)).unwrap()).collect();
        for stream in &mut open {
            stream.write_all(b"x").unwrap();
        }
        let refused = talk((github, 9000), b"x").is_err();
        let asked = (0..40)
            .filter(|n| {
                ask_for(
                    "169.254.7.1",
                    &question(&format!("{n}.wild.example.net"), 1),
                )
                .is_some()
            })
            .count();
        (refused, asked)
    });
    assert!(refused.0, "the fifth connection");
    assert!(
        (15..40).contains(&refused.1),
        "{} of 40 questions were answered",
        refused.1
    );
    refusal(&lab, Refusal::TooManyConnections);
    refusal(&lab, Refusal::TooManyNames);
}

/// The kernel's table of connections is the host's and all sandboxes' together; full, it takes no new one of anybody.
#[test]
fn a_guest_does_not_fill_the_hosts_table_of_connections() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let entries = || -> usize {
        let count = || std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count");
        let count = lab.within("host", count).join().unwrap().unwrap();
        count.trim().parse().unwrap()
    };
    const FLOWS: u32 = 10_000;
    let other = |n: u32| {
        let [_, a, b, c] = n.to_be_bytes();
        Ipv4Addr::new(11, 1 + a, b, c)
    };
    lab.guest(move || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for n in 0..FLOWS {
            let _ = socket.send_to(b"x", (other(n), 53));
        }
    });
    let of_questions = entries();
    assert!((100..2000).contains(&of_questions), "{of_questions}");
    lab.guest(move || {
        for n in 0..FLOWS {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&SocketAddrV4::new(other(n), 80).into());
        }
    });
    let of_both = entries();
    assert!((of_questions / 2..4000).contains(&of_both), "{of_both}");
    // And it can be said.
    let filter = lab.filter.clone();
    let spared = lab.within("host", move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(filter.spared()).unwrap()
    });
    let most = u64::from(FLOWS);
    let spared = spared.join().unwrap();
    assert!(
        spared.iter().all(|n| (most / 2..=most).contains(n)),
        "{spared:?}"
    );
    // Nobody else is slower for it, and the guest itself goes on when it is quiet again.
    let asked = lab.within("neighbour", || ask("169.254.7.1", "api.github.com"));
    assert!(matches!(asked.join().unwrap(), Some((0, Some(_)))));
    let until = Instant::now() + lab::WAIT;
    while lab.guest(|| ask("169.254.7.1", "api.github.com").is_none()) {
        assert!(Instant::now() < until, "its questions are answered again");
    }
    let said = lab.guest(|| talk((resolve("api.github.com"), 80), b"GET / HTTP/1.0\r\n\r\n"));
    assert!(said.unwrap().contains("plain at 140.82.121.6:80"));
}

/// What the guest says first is looked at whenever it says it, also after the name has spoken.
#[test]
fn the_check_of_the_server_name_cannot_be_waited_out() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let other = Some("other.example.net");
    let cases = [
        (8080, other, Some(Refusal::ServerNameDiffers)),
        (8080, None, Some(Refusal::NoServerName)),
        (5432, other, Some(Refusal::ServerNameDiffers)),
        (8080, Some("db.example.net"), None),
    ];
    let mut open = lab.guest(move || {
        let to = resolve("db.example.net");
        cases.map(|(port, _, _)| dial((to, port)).unwrap())
    });
    open[2].read_exact(&mut [0; 20]).unwrap();
    // Longer than anybody waits for a first byte.
    std::thread::sleep(Duration::from_secs(11));
    for ((port, sni, reason), stream) in cases.into_iter().zip(&mut open) {
        // In two parts: a hello comes as it likes.
        let hello = lab::hello(sni);
        let (head, rest) = hello.split_at(7);
        stream.write_all(head).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(rest).unwrap();
        let answered = matches!(stream.read(&mut [0; 16]), Ok(1..));
        assert_eq!(answered, reason.is_none(), "{port} {sni:?}");
        let Some(reason) = reason else { continue };
        refusal(&lab, reason);
        let event = lab.event(|e| matches!(e, EgressEvent::Connection { .. }));
        assert!(
            matches!(
                event,
                EgressEvent::Connection {
                    bytes_up: 0,
                    cut: true,
                    ..
                }
            ),
            "{event:?}"
        );
    }
}

#[test]
fn the_filter_is_loaded_whole_or_said_to_be_missing() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let filter = lab.filter.clone();
    let table = filter.table();
    let checked = lab.within("host", move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let nft = |args: &[&str]| {
            assert!(
                std::process::Command::new("nft")
                    .args(args)
                    .status()
                    .unwrap()
                    .success(),
                "{args:?}"
            )
        };
        runtime.block_on(async {
            filter.verify().await.unwrap();
            let mut missing = Vec::new();
            for chain in [
                "early",
                "sparing",
                "diverting",
                "arriving",
                "passing",
                "leaving",
            ] {
                nft(&["flush", "chain", "inet", &table, chain]);
                missing.push(filter.verify().await.is_err());
                filter.install(&[]).await.unwrap();
            }
            nft(&["delete", "table", "inet", &table]);
            missing.push(filter.verify().await.is_err());
            missing
        })
    });
    assert_eq!(checked.join().unwrap(), [true; 7]);
}

#[test]
fn a_removed_guest_is_cut_off() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let filter = lab.filter.clone();
    lab.within("host", move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let sockets = Sockets::bind(&filter.interface(1), GATEWAY).unwrap();
            // Nobody is in the table after an install without guests.
            filter.install(&[]).await.unwrap();
            let guest = lab::guest_of(&filter.interface(1), Ipv4Addr::new(10, 99, 0, 2), &sockets);
            filter.add(&guest).await.unwrap();
            filter.remove(&guest).await.unwrap();
        });
    })
    .join()
    .unwrap();
    assert_eq!(lab.guest(|| ask("169.254.7.1", "api.github.com")), None);
    assert!(lab.guest(|| dial((Ipv4Addr::new(198, 18, 0, 1), 443)).is_err()));
}

#[test]
fn the_host_reaches_the_guest() {
    if !lab::able() {
        return;
    }
    let lab = lab();
    let served = lab.within("guest", || {
        let listener = std::net::TcpListener::bind("0.0.0.0:8000").unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"an MCP server").unwrap();
        });
    });
    served.join().unwrap();
    let text = lab
        .within("host", || {
            talk((Ipv4Addr::new(10, 99, 0, 2), 8000), b"").unwrap()
        })
        .join()
        .unwrap();
    assert_eq!(text, "an MCP server");
}
