//! The power goes, or the disk fails, at every single operation: each secret is old or new, and rotations go on.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fault, Log, Memory, TestVault, name, roots, scope, value, values};
use vault::{Roots, Vault, VaultError};

/// Ways for what was not durable to come out, tried at every operation.
const LUCK: u64 = 24;

/// Three secrets of two servers, and one of another tenant.
fn prepared() -> Memory {
    let disk = Memory::new();
    let mut vault = common::open(&disk);
    for (tenant, server, secret) in [
        ("acme", "one", "A"),
        ("acme", "one", "B"),
        ("acme", "two", "A"),
        ("other", "one", "A"),
    ] {
        let text = format!("old {tenant} {server} {secret}");
        vault
            .set(&scope(tenant, server), &name(secret), &value(&text), 0)
            .unwrap();
    }
    disk
}

fn open(disk: &Memory, roots: Roots) -> Result<TestVault, VaultError> {
    Vault::open(disk.clone(), roots, Log::default())
}

fn all(vault: &mut TestVault) -> Vec<(String, String)> {
    let scopes = [("acme", "one"), ("acme", "two"), ("other", "one")];
    scopes
        .iter()
        .flat_map(|(t, s)| {
            values(vault, &scope(t, s))
                .into_iter()
                .map(move |(n, v)| (format!("{t} {s} {n}"), v))
        })
        .collect()
}

/// Does `work` with a fault at each operation in turn, and hands what is on the disk afterwards to `check`, with
/// whether the work said that it was done.
fn at_every_operation(
    with: &Roots,
    work: impl Fn(&mut TestVault) -> Result<(), VaultError>,
    check: impl Fn(&mut TestVault, bool, &str),
) {
    let operations = {
        let disk = prepared();
        let mut vault = open(&disk, with.clone()).unwrap();
        disk.fail(Fault::None);
        work(&mut vault).unwrap();
        disk.operations()
    };
    assert!(operations > 3, "{operations}");
    for at in 1..=operations + 1 {
        for fault in [Fault::Cut(at), Fault::Error(at)] {
            for luck in 0..LUCK {
                let disk = prepared();
                let mut vault = open(&disk, with.clone()).unwrap();
                disk.fail(fault);
                let done = work(&mut vault).is_ok();
                assert_eq!(done, at > operations, "{fault:?}");
                drop(vault);
                let after = if matches!(fault, Fault::Cut(_)) {
                    disk.after_power_cut(luck * 7919 + at as u64)
                } else {
                    disk
                };
                after.fail(Fault::None);
                let what = format!("{fault:?} luck {luck}");
                let mut vault =
                    open(&after, with.clone()).unwrap_or_else(|e| panic!("{what}: {e}"));
                check(&mut vault, done, &what);
            }
        }
    }
}

#[test]
fn a_new_value_is_there_whole_or_the_old_one_is() {
    let set = |vault: &mut TestVault| {
        vault
            .set(&scope("acme", "one"), &name("A"), &value("new"), 1)
            .map(drop)
    };
    at_every_operation(&roots(1, None), set, |vault, done, what| {
        let values = all(vault);
        assert_eq!(values.len(), 4, "{what}");
        let changed = &values[0].1;
        assert!(
            changed == "new" || (!done && changed == "old acme one A"),
            "{what}: {changed}"
        );
        assert!(
            values[1..]
                .iter()
                .all(|(name, value)| *value == format!("old {name}")),
            "{what}"
        );
    });
}

#[test]
fn a_first_secret_of_a_tenant_is_there_whole_or_not_at_all() {
    let at = scope("fresh", "one");
    let set = |vault: &mut TestVault| {
        vault
            .set(&scope("fresh", "one"), &name("A"), &value("new"), 1)
            .map(drop)
    };
    at_every_operation(&roots(1, None), set, |vault, done, what| {
        let fresh = values(vault, &at);
        assert!(
            fresh == [("A".to_owned(), "new".to_owned())] || (!done && fresh.is_empty()),
            "{what}"
        );
        assert_eq!(all(vault).len(), 4, "{what}");
        // And it can be set afterwards.
        vault.set(&at, &name("A"), &value("again"), 2).unwrap();
    });
}

#[test]
fn a_removal_is_done_or_not() {
    let remove = |vault: &mut TestVault| {
        vault.remove(&scope("acme", "one"), &name("A"))?;
        vault.remove(&scope("acme", "two"), &name("A"))
    };
    at_every_operation(&roots(1, None), remove, |vault, done, what| {
        let values = all(vault);
        assert!(
            if done {
                values.len() == 2
            } else {
                (2..=4).contains(&values.len())
            },
            "{what}"
        );
        assert!(
            values
                .iter()
                .all(|(name, value)| *value == format!("old {name}")),
            "{what}"
        );
    });
}

#[test]
fn rotations_lose_nothing_and_go_on() {
    let expect_old = |vault: &mut TestVault, _: bool, what: &str| {
        vault.resume().unwrap();
        let values = all(vault);
        assert_eq!(values.len(), 4, "{what}");
        assert!(
            values
                .iter()
                .all(|(name, value)| *value == format!("old {name}")),
            "{what}"
        );
    };
    let acme = scope("acme", "one");
    at_every_operation(
        &roots(1, None),
        |vault| vault.rotate_tenant_key(&acme.tenant),
        expect_old,
    );
    at_every_operation(
        &roots(1, None),
        |vault| vault.rotate_data_keys(&acme),
        expect_old,
    );
    at_every_operation(
        &roots(2, Some(1)),
        TestVault::rotate_root,
        |vault, done, what| {
            expect_old(vault, done, what);
        },
    );
}

#[test]
fn after_a_rotation_the_old_key_is_not_needed() {
    for operations in 0..40 {
        let disk = prepared();
        {
            let mut vault = open(&disk, roots(2, Some(1))).unwrap();
            disk.fail(Fault::Cut(operations));
            let _ = vault.rotate_root();
        }
        let disk = disk.after_power_cut(operations as u64);
        open(&disk, roots(2, Some(1))).unwrap().resume().unwrap();
        assert_eq!(all(&mut open(&disk, roots(2, None)).unwrap()).len(), 4);
        assert!(open(&disk, roots(1, None)).is_err(), "the old root key");
    }
}

#[test]
fn an_old_tenant_key_is_forgotten() {
    let disk = prepared();
    let acme = scope("acme", "one");
    let keys = |disk: &Memory| {
        let files = disk.contents();
        let tenants = files.iter().filter(|(n, _)| n.starts_with("tenant-"));
        tenants
            .map(|(_, bytes)| String::from_utf8_lossy(bytes).matches("number").count())
            .sum::<usize>()
    };
    let mut vault = open(&disk, roots(1, None)).unwrap();
    let before = disk.contents();
    vault.rotate_tenant_key(&acme.tenant).unwrap();
    assert_eq!(keys(&disk), 2, "one each");
    // A secret from an older copy of the disk is sealed by a key that nobody has any more.
    let secret = before
        .keys()
        .find(|n| n.starts_with("secret-") && before[*n] != disk.contents()[*n])
        .unwrap();
    disk.change(secret, &before[secret]);
    let mut vault = open(&disk, roots(1, None)).unwrap();
    let opened = ["one", "two"].map(|s| {
        let scope = scope("acme", s);
        let names: Vec<_> = vault
            .list(&scope)
            .into_iter()
            .map(|info| info.name)
            .collect();
        vault.mount(&scope, &names, "s").is_ok()
    });
    assert_ne!(opened, [true, true]);
}

/// The files of the runner's own state are replaced by the same steps.
#[test]
fn a_file_is_old_or_new_whatever_happens() {
    for old in [None, Some("old")] {
        for at in 1..=5 {
            for fault in [Fault::Cut(at), Fault::Error(at)] {
                for luck in 0..LUCK {
                    let mut disk = Memory::new();
                    if let Some(old) = old {
                        vault::replace(&mut disk, "spec.json", old.as_bytes()).unwrap();
                    }
                    disk.fail(fault);
                    let done = vault::replace(&mut disk, "spec.json", b"new").is_ok();
                    assert_eq!(done, at > 4, "{fault:?}: a replacement is four operations");
                    let after = match fault {
                        Fault::Cut(_) => disk.after_power_cut(luck * 7919 + at as u64),
                        _ => disk.clone(),
                    };
                    let found = after.contents().get("spec.json").cloned();
                    let new = found.as_deref() == Some(b"new");
                    let same = found.as_deref() == old.map(str::as_bytes);
                    assert!(new || !done && same, "{fault:?} luck {luck}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written() {
    // The operations of a replacement: write, sync, rename, sync of names.
    for at in [2, 4] {
        let disk = prepared();
        let mut vault = open(&disk, roots(1, None)).unwrap();
        disk.fail(Fault::Error(at));
        let a = scope("acme", "one");
        assert!(matches!(
            vault.set(&a, &name("A"), &value("new"), 1),
            Err(VaultError::Disk { .. })
        ));
        assert!(matches!(
            vault.set(&a, &name("A"), &value("new"), 1),
            Err(VaultError::Poisoned)
        ));
        assert!(matches!(
            vault.remove(&a, &name("B")),
            Err(VaultError::Poisoned)
        ));
        assert_eq!(values(&mut vault, &a).len(), 2, "what is there can be read");
    }
}
