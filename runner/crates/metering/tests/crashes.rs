//! A runner that dies at any moment, counters that begin again, a reader that dies between its store and its
//! acknowledgement: in the end every microsecond is there once. Seeded; a failure prints its seed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use domain::{ServerId, TenantId};
use metering::{Counter, Meter, MeterStore, Now, Reading, Usage};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// What really happened.
#[derive(Default)]
struct Truth {
    cpu_us: u64,
    egress_bytes: u64,
    requests: u64,
}

/// What survives any crash of programs: the kernel's counters.
struct Sandbox {
    server: usize,
    reading: Reading,
}

/// The reader's store: windows and the highest number, changed in one transaction.
#[derive(Default)]
struct Reader {
    upto: u64,
    sums: BTreeMap<String, Usage>,
    seen: usize,
}

impl Reader {
    fn take(&mut self, meter: &Meter) {
        for window in meter.closed(self.upto, 1000) {
            assert!(window.seq > self.upto);
            self.sums
                .entry(window.server.to_string())
                .or_default()
                .add(&window.usage);
            self.upto = window.seq;
            self.seen += 1;
        }
    }
}

const SERVERS: usize = 4;

struct World {
    dice: Dice,
    now: Now,
    truth: Vec<Truth>,
    sandboxes: Vec<Sandbox>,
    made: u64,
}

impl World {
    fn server(n: usize) -> ServerId {
        ServerId::parse(&format!("server{n}")).unwrap()
    }

    fn start(&mut self) {
        let server = usize::try_from(self.dice.roll(SERVERS as u64)).unwrap();
        self.made += 1;
        let reading = Reading {
            sandbox: format!("sandbox{}", self.made),
            tenant: TenantId::parse("acme").unwrap(),
            server: Self::server(server),
            cpu_us: Counter::default(),
            egress_bytes: Counter { value: 0, epoch: 1 },
            requests: Counter::default(),
            memory_bytes: 1 << 20,
            storage_bytes: 0,
        };
        self.sandboxes.push(Sandbox { server, reading });
    }

    fn work(&mut self) {
        for sandbox in &mut self.sandboxes {
            let truth = &mut self.truth[sandbox.server];
            let (cpu, egress, request) = (
                self.dice.roll(1000),
                self.dice.roll(5000),
                self.dice.roll(2),
            );
            sandbox.reading.cpu_us.value += cpu;
            sandbox.reading.egress_bytes.value += egress;
            sandbox.reading.requests.value += request;
            truth.cpu_us += cpu;
            truth.egress_bytes += egress;
            truth.requests += request;
        }
        let step = 1 + self.dice.roll(400_000);
        self.now.boot_ms += step;
        // The wall clock now and then jumps, either way.
        self.now.unix_ms += step;
        if self.dice.one_in(50) {
            self.now.unix_ms = self
                .now
                .unix_ms
                .saturating_add(self.dice.roll(20_000_000))
                .saturating_sub(10_000_000);
        }
    }

    fn readings(&self) -> Vec<Reading> {
        self.sandboxes.iter().map(|s| s.reading.clone()).collect()
    }
}

fn run(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage");
    let mut world = World {
        dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        now: Now {
            unix_ms: 1_700_000_000_000,
            boot_ms: 1000,
        },
        truth: (0..SERVERS).map(|_| Truth::default()).collect(),
        sandboxes: Vec::new(),
        made: 0,
    };
    let mut reader = Reader::default();
    let (mut store, mut meter) = MeterStore::open(&path).unwrap();
    meter.begin("boot");
    let mut crashes = 0;
    for _ in 0..400 {
        if world.sandboxes.len() < 6 && world.dice.one_in(3) {
            world.start();
        }
        world.work();
        match world.dice.roll(10) {
            0..=5 => {
                meter.observe(world.now, &world.readings());
                if !world.dice.one_in(4) {
                    store.save(&meter).unwrap();
                }
            }
            6 if !world.sandboxes.is_empty() => {
                let gone = world.dice.roll(world.sandboxes.len() as u64);
                let sandbox = world.sandboxes.swap_remove(usize::try_from(gone).unwrap());
                // The kernel's counters go with the sandbox, so this has to be on disk first.
                meter.finish(world.now, &sandbox.reading);
                store.save(&meter).unwrap();
            }
            7 => {
                // Only what is on disk may be read: the runner answers after it saved.
                store.save(&meter).unwrap();
                reader.take(&meter);
                if world.dice.one_in(2) {
                    meter.acknowledge(reader.upto);
                }
            }
            8 => {
                crashes += 1;
                (store, meter) = MeterStore::open(&path).unwrap();
                meter.begin("boot");
                // A counter that is not the kernel's begins again. What it had not told by then would be lost.
                if world.dice.one_in(3) {
                    meter.observe(world.now, &world.readings());
                    store.save(&meter).unwrap();
                    for sandbox in &mut world.sandboxes {
                        sandbox.reading.egress_bytes = Counter {
                            value: 0,
                            epoch: 1 + crashes,
                        };
                    }
                }
            }
            _ => {}
        }
    }
    for sandbox in std::mem::take(&mut world.sandboxes) {
        meter.finish(world.now, &sandbox.reading);
    }
    meter.close();
    store.save(&meter).unwrap();
    let (_, meter) = MeterStore::open(&path).unwrap();
    while !meter.closed(reader.upto, 1).is_empty() {
        reader.take(&meter);
    }
    assert!(
        crashes > 10 && reader.seen > SERVERS,
        "seed {seed} tries something: {crashes} {}",
        reader.seen
    );
    for (n, truth) in world.truth.iter().enumerate() {
        let sum = reader
            .sums
            .get(World::server(n).as_str())
            .copied()
            .unwrap_or_default();
        assert_eq!(
            (sum.cpu_us, sum.egress_bytes, sum.requests),
            (truth.cpu_us, truth.egress_bytes, truth.requests),
            "seed {seed} server {n}"
        );
    }
}

#[test]
fn every_seed_comes_out_even() {
    let fixed = std::env::var("WEIR_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds: Vec<u64> = fixed.map_or_else(|| (1..=25).collect(), |seed| vec![seed]);
    seeds.into_iter().for_each(run);
}
