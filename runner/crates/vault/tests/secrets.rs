//! What goes into the vault, who gets it out, and what is on record.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Log, Memory, name, open, roots, scope, value, values};
use domain::SECRETS_PER_SERVER_MAX;
use domain::TenantId;
use vault::{AccessKind, Dir, Vault, VaultError};

#[test]
fn a_value_comes_back_in_its_newest_version() {
    let disk = Memory::new();
    let (a, b) = (scope("acme", "one"), scope("acme", "two"));
    let mut vault = open(&disk);
    assert_eq!(
        vault.set(&a, &name("TOKEN"), &value("first"), 5).unwrap(),
        1
    );
    assert_eq!(
        vault.set(&a, &name("TOKEN"), &value("second"), 6).unwrap(),
        2
    );
    vault.set(&a, &name("OTHER"), &value("x"), 7).unwrap();
    vault.set(&b, &name("TOKEN"), &value("of two"), 8).unwrap();
    for vault in [&mut vault, &mut open(&disk)] {
        let of_a = [("OTHER", "x"), ("TOKEN", "second")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(values(vault, &a), of_a);
        assert_eq!(
            values(vault, &b),
            [("TOKEN".to_owned(), "of two".to_owned())]
        );
        assert_eq!(values(vault, &scope("other", "one")), []);
        let info: Vec<_> = vault
            .list(&a)
            .iter()
            .map(|i| (i.name.to_string(), i.version, i.set_at_ms))
            .collect();
        assert_eq!(
            info,
            [("OTHER".to_owned(), 1, 7), ("TOKEN".to_owned(), 2, 6)]
        );
    }
}

#[test]
fn what_is_removed_is_gone() {
    let disk = Memory::new();
    let a = scope("acme", "one");
    let mut vault = open(&disk);
    for n in ["A", "B"] {
        vault.set(&a, &name(n), &value("x"), 0).unwrap();
    }
    vault.remove(&a, &name("A")).unwrap();
    assert!(matches!(
        vault.mount(&a, &[name("B"), name("A")], "s"),
        Err(VaultError::Unknown)
    ));
    assert!(matches!(
        vault.remove(&a, &name("A")),
        Err(VaultError::Unknown)
    ));
    assert!(matches!(
        vault.remove(&scope("other", "one"), &name("B")),
        Err(VaultError::Unknown)
    ));
    assert_eq!(open(&disk).list(&a).len(), 1);
    vault.remove_server(&a).unwrap();
    assert_eq!(open(&disk).list(&a), []);
}

#[test]
fn no_two_values_are_taken_for_one() {
    let disk = Memory::new();
    let a = scope("acme", "one");
    let ids = |vault: &common::TestVault| -> Vec<(u32, String)> {
        let found = vault.list(&a).into_iter();
        found.map(|info| (info.version, info.seal_id)).collect()
    };
    let mut vault = open(&disk);
    let mut set = |text: &str| {
        vault.set(&a, &name("TOKEN"), &value(text), 0).unwrap();
        let found = ids(&vault);
        assert_eq!(found, ids(&open(&disk)), "it stays while the value does");
        found
    };
    let (first, second) = (set("first"), set("second"));
    vault.remove(&a, &name("TOKEN")).unwrap();
    vault.set(&a, &name("TOKEN"), &value("third"), 0).unwrap();
    let third = ids(&vault);
    assert!(first != second && first != third && second != third);
    assert_eq!(
        first[0].0, third[0].0,
        "it is the seal that tells them apart"
    );
    vault.rotate_tenant_key(&a.tenant).unwrap();
    assert_eq!(ids(&vault), third, "nor does a rotation of other keys");
}

#[test]
fn a_server_has_a_bounded_number_of_secrets() {
    let mut vault = open(&Memory::new());
    let a = scope("acme", "one");
    for n in 0..SECRETS_PER_SERVER_MAX {
        vault
            .set(&a, &name(&format!("S{n}")), &value("x"), 0)
            .unwrap();
    }
    let over = vault.set(&a, &name("OVER"), &value("x"), 0);
    assert!(matches!(
        over,
        Err(VaultError::TooMany {
            max: SECRETS_PER_SERVER_MAX
        })
    ));
    assert_eq!(
        vault.set(&a, &name("S0"), &value("y"), 0).unwrap(),
        2,
        "a new version is no new secret"
    );
}

#[test]
fn every_access_is_on_record_before_it_happens() {
    let (disk, log) = (Memory::new(), Log::default());
    let a = scope("acme", "one");
    let mut vault = Vault::open(disk.clone(), roots(1, None), log.clone()).unwrap();
    vault.set(&a, &name("TOKEN"), &value("x"), 0).unwrap();
    vault.mount(&a, &[name("TOKEN")], "sandbox1").unwrap();
    vault.rotate_data_keys(&a).unwrap();
    vault.rotate_tenant_key(&a.tenant).unwrap();
    vault.remove(&a, &name("TOKEN")).unwrap();
    let kinds: Vec<_> = log
        .0
        .borrow()
        .iter()
        .map(|access| access.kind.clone())
        .collect();
    let mount = AccessKind::Mount {
        sandbox: "sandbox1".to_owned(),
    };
    assert_eq!(
        kinds,
        [
            AccessKind::Set,
            mount,
            AccessKind::Reseal,
            AccessKind::Reseal,
            AccessKind::Remove
        ]
    );

    vault.set(&a, &name("TOKEN"), &value("kept"), 0).unwrap();
    let before = disk.contents();
    *log.1.borrow_mut() = true;
    assert!(matches!(
        vault.mount(&a, &[name("TOKEN")], "s"),
        Err(VaultError::NotRecorded(_))
    ));
    assert!(matches!(
        vault.set(&a, &name("TOKEN"), &value("new"), 0),
        Err(VaultError::NotRecorded(_))
    ));
    assert!(matches!(
        vault.remove(&a, &name("TOKEN")),
        Err(VaultError::NotRecorded(_))
    ));
    assert!(matches!(
        vault.rotate_data_keys(&a),
        Err(VaultError::NotRecorded(_))
    ));
    assert_eq!(disk.contents(), before);
}

#[test]
fn no_file_shows_a_value_or_an_id() {
    let disk = Memory::new();
    let mut vault = open(&disk);
    let canary = "canary-5f2a9c";
    vault
        .set(&scope("acme", "one"), &name("TOKEN"), &value(canary), 0)
        .unwrap();
    let forms = [
        canary.to_owned(),
        "Y2FuYXJ5LTVmMmE5Yw".to_owned(),
        canary.bytes().map(|b| format!("{b:02x}")).collect(),
    ];
    for (file, bytes) in disk.contents() {
        let text = String::from_utf8(bytes).unwrap();
        assert!(forms.iter().all(|form| !text.contains(form)), "{file}");
        assert!(
            !file.contains("acme") && !file.contains("one") && !file.contains("TOKEN"),
            "{file}"
        );
    }
}

#[test]
fn another_root_key_opens_nothing() {
    let disk = Memory::new();
    open(&disk)
        .set(&scope("acme", "one"), &name("A"), &value("x"), 0)
        .unwrap();
    let wrong = Vault::open(disk.clone(), roots(2, None), Log::default());
    assert!(matches!(wrong, Err(VaultError::WrongRoot { .. })));
    let other = Vault::open_with_passphrase(disk, "a passphrase for nothing", None, Log::default());
    assert!(matches!(other, Err(VaultError::WrongRoot { .. })));
}

#[test]
fn a_passphrase_opens_what_it_sealed() {
    let disk = Memory::new();
    let a = scope("acme", "one");
    let (old, new) = ("correct horse battery", "staple after staple");
    let with = |current, previous| {
        Vault::open_with_passphrase(disk.clone(), current, previous, Log::default())
    };
    with(old, None)
        .unwrap()
        .set(&a, &name("A"), &value("x"), 0)
        .unwrap();
    assert!(with(new, None).is_err());
    with(new, Some(old)).unwrap().rotate_root().unwrap();
    assert!(with(old, None).is_err());
    assert_eq!(values(&mut with(new, None).unwrap(), &a).len(), 1);
}

#[test]
fn files_that_were_changed_or_swapped_do_not_open() {
    let disk = Memory::new();
    let (a, b) = (scope("acme", "one"), scope("acme", "two"));
    let mut vault = open(&disk);
    vault.set(&a, &name("A"), &value("of one"), 0).unwrap();
    vault.set(&b, &name("A"), &value("of two"), 0).unwrap();
    vault
        .set(&scope("other", "x"), &name("A"), &value("of other"), 0)
        .unwrap();
    let good = disk.contents();
    let reopened = |disk: &Memory| -> Result<(), VaultError> {
        let mut vault = Vault::open(disk.clone(), roots(1, None), Log::default())?;
        for scope in [&a, &b, &scope("other", "x")] {
            vault.mount(scope, &[name("A")], "s")?;
        }
        Ok(())
    };
    reopened(&disk).unwrap();
    let names: Vec<&String> = good.keys().collect();
    for from in &names {
        for to in names.iter().filter(|to| **to != *from) {
            disk.change(to, &good[*from]);
            assert!(reopened(&disk).is_err(), "{from} in the place of {to}");
            disk.change(to, &good[*to]);
        }
    }
    // Every character of every file, for another that is as good there.
    for (file, bytes) in &good {
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] = match changed[at] {
                b'0'..=b'8' | b'a'..=b'y' | b'A'..=b'Y' => changed[at] + 1,
                other => other ^ 1,
            };
            disk.change(file, &changed);
            // The time is not bound; it grants nothing.
            let text = String::from_utf8_lossy(bytes).into_owned();
            let time = text.find("set_at_ms\":").map(|i| i + 11);
            assert!(reopened(&disk).is_err() || Some(at) == time, "{file} {at}");
        }
        disk.change(file, bytes);
    }
}

#[test]
fn a_secret_without_its_tenant_is_damage() {
    let disk = Memory::new();
    open(&disk)
        .set(&scope("acme", "one"), &name("A"), &value("x"), 0)
        .unwrap();
    let tenant = disk
        .contents()
        .into_keys()
        .find(|f| f.starts_with("tenant-"))
        .unwrap();
    vault::Disk::remove(&mut disk.clone(), &tenant).unwrap();
    let opened = Vault::open(disk, roots(1, None), Log::default());
    assert!(matches!(opened, Err(VaultError::Damaged { .. })));
}

#[test]
fn a_real_folder_is_its_owners_and_one_processes() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vault");
    let a = scope("acme", "one");
    {
        let mut vault =
            Vault::open(Dir::open(&path).unwrap(), roots(1, None), Log::default()).unwrap();
        vault.set(&a, &name("A"), &value("x"), 0).unwrap();
        vault
            .rotate_tenant_key(&TenantId::parse("acme").unwrap())
            .unwrap();
        assert!(Dir::open(&path).is_err(), "a second process");
    }
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let mut files = 0;
    for entry in std::fs::read_dir(&path).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
        files += 1;
    }
    assert_eq!(files, 3, "a tenant, a secret and the lock");
    let mut vault = Vault::open(Dir::open(&path).unwrap(), roots(1, None), Log::default()).unwrap();
    assert_eq!(vault.mount(&a, &[name("A")], "s").unwrap().len(), 1);
}
