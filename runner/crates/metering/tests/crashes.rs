//! A runner that dies at any moment, counters that begin again, a reader that dies between its store and its
//! acknowledgement: in the end every microsecond is there once. Seeded; a failure prints its seed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::{ServerId, TenantId};
use metering::{Count, Counter, Meter, MeterStore, Now, Reading, Tally, Usage};

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

/// What survives any crash of programs: the kernel's counters, and a file that was written.
struct Sandbox {
    server: usize,
    reading: Reading,
    path: PathBuf,
    tally: Tally,
}

impl Sandbox {
    fn reading(&self) -> Reading {
        Reading {
            egress_bytes: self.tally.get(Count::EgressBytes),
            requests: self.tally.get(Count::Requests),
            ..self.reading.clone()
        }
    }

    /// Another life of the program goes on with it.
    fn met_again(&mut self, life: u64) {
        self.tally = Tally::go_on(&self.path, b"", life).unwrap();
    }

    /// The steps of an end, up to the `last` one: after each the program may be killed.
    fn end(&mut self, now: Now, meter: &mut Meter, store: &MeterStore, last: usize) {
        for step in 0..last {
            match step {
                0 => meter.finish(now, &self.reading()),
                // With its group the kernel's counters go.
                2 => self.reading.cpu_us.value = 0,
                3 => drop(std::fs::remove_file(&self.path)),
                4 => meter.forget(&self.reading.sandbox),
                _ => store.save(meter).unwrap(),
            }
        }
    }
}

const END_STEPS: usize = 6;

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
    tallies: PathBuf,
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
            egress_bytes: Counter::default(),
            requests: Counter::default(),
            memory_bytes: 1 << 20,
            storage_bytes: 0,
        };
        let path = self.tallies.join(&reading.sandbox);
        self.sandboxes.push(Sandbox {
            server,
            reading,
            tally: Tally::go_on(&path, b"", 1).unwrap(),
            path,
        });
    }

    fn work(&mut self) {
        for sandbox in &mut self.sandboxes {
            let truth = &mut self.truth[sandbox.server];
            let (cpu, egress, request) = (
                1 + self.dice.roll(1000),
                self.dice.roll(5000),
                self.dice.roll(2),
            );
            sandbox.reading.cpu_us.value += cpu;
            sandbox.tally.add(Count::EgressBytes, egress);
            sandbox.tally.add(Count::Requests, request);
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

    /// A new life of the program finds its sandboxes again.
    fn lives_on(&mut self, life: u64) {
        for sandbox in &mut self.sandboxes {
            sandbox.met_again(life);
        }
    }

    fn readings(&self) -> Vec<Reading> {
        self.sandboxes.iter().map(Sandbox::reading).collect()
    }
}

fn run(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage");
    let mut world = World {
        tallies: dir.path().to_owned(),
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
                let mut sandbox = world.sandboxes.swap_remove(usize::try_from(gone).unwrap());
                // Every other end breaks off somewhere, and sometimes the next one too.
                while world.dice.one_in(2) {
                    let last = usize::try_from(world.dice.roll(END_STEPS as u64)).unwrap();
                    sandbox.end(world.now, &mut meter, &store, last);
                    crashes += 1;
                    (store, meter) = MeterStore::open(&path).unwrap();
                    meter.begin("boot");
                    world.lives_on(crashes);
                    sandbox.met_again(crashes);
                }
                sandbox.end(world.now, &mut meter, &store, END_STEPS);
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
                world.lives_on(crashes);
            }
            _ => {}
        }
    }
    for sandbox in std::mem::take(&mut world.sandboxes) {
        meter.finish(world.now, &sandbox.reading());
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

/// The end of one sandbox, broken off after each of its steps, twice.
#[test]
fn an_end_that_breaks_off_counts_once() {
    for (first, second) in (0..=END_STEPS).flat_map(|a| (0..=END_STEPS).map(move |b| (a, b))) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage");
        let now = Now {
            unix_ms: 1_700_000_000_000,
            boot_ms: 1000,
        };
        let mut sandbox = one(dir.path());
        for (life, last) in [first, second, END_STEPS].into_iter().enumerate() {
            let (store, mut meter) = MeterStore::open(&path).unwrap();
            meter.begin("boot");
            sandbox.met_again(life as u64 + 2);
            if life == 0 {
                meter.observe(now, &[sandbox.reading()]);
                store.save(&meter).unwrap();
                sandbox.reading.cpu_us.value += 7;
                sandbox.tally.add(Count::Requests, 1);
            }
            sandbox.end(now, &mut meter, &store, last);
        }
        let (_, meter) = MeterStore::open(&path).unwrap();
        let usage = meter.open()[0].usage;
        assert_eq!(
            (usage.cpu_us, usage.requests, usage.egress_bytes),
            (12, 4, 500),
            "broken off after {first} and {second} steps"
        );
    }
}

/// A sandbox that has used and moved something.
fn one(dir: &Path) -> Sandbox {
    let path = dir.join("sandbox");
    let tally = Tally::go_on(&path, b"", 1).unwrap();
    tally.add(Count::Requests, 3);
    tally.add(Count::EgressBytes, 500);
    let counter = Counter::default();
    let reading = Reading {
        sandbox: "sandbox".to_owned(),
        tenant: TenantId::parse("acme").unwrap(),
        server: World::server(0),
        cpu_us: Counter { value: 5, epoch: 0 },
        egress_bytes: counter,
        requests: counter,
        memory_bytes: 0,
        storage_bytes: 0,
    };
    Sandbox {
        server: 0,
        reading,
        path,
        tally,
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
