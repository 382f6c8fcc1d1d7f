//! Room on the disk of the state folder. What was promised to an upload, an unpacking or a layer is nobody else's until it
//! is written or given back: many are told at once that there is room, and each has to find it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::TenantId;
use nix::sys::statvfs::statvfs;
use runner_api::{ApiError, ErrorCode};

/// What uploads, builds and starts leave free on the disk: what runs already has to write, too.
pub const FREE_BYTES: u64 = 1024 * 1024 * 1024;

/// The room of one disk. Cheap to clone.
#[derive(Clone)]
pub struct Room {
    at: PathBuf,
    open: Arc<Mutex<Open>>,
}

/// Promises that are not over.
#[derive(Default)]
struct Open {
    /// Bytes that are promised and not written yet.
    left: u64,
    /// What was written so far, by tenant.
    written: HashMap<TenantId, u64>,
}

/// Room for so many bytes. What is not used of it is given back when it is dropped.
pub struct Promise {
    open: Arc<Mutex<Open>>,
    tenant: TenantId,
    left: u64,
    written: u64,
}

impl Room {
    /// Of the disk that this folder is on.
    pub fn of(at: &Path) -> Self {
        Self {
            at: at.to_owned(),
            open: Arc::default(),
        }
    }

    /// Checks that there is room for something that takes little, or nobody knows how much. What is promised to others and not
    /// written yet is no reason to refuse it: they may never write it.
    ///
    /// # Errors
    /// `NoCapacity`.
    pub fn check(&self) -> Result<(), ApiError> {
        self.fits(0, 0)
    }

    /// Keeps room for so many bytes that a tenant is about to write.
    ///
    /// # Errors
    /// `NoCapacity`.
    pub fn promise(&self, tenant: &TenantId, bytes: u64) -> Result<Promise, ApiError> {
        let mut open = lock(&self.open);
        self.fits(open.left, bytes)?;
        open.left += bytes;
        Ok(Promise {
            open: Arc::clone(&self.open),
            tenant: tenant.clone(),
            left: bytes,
            written: 0,
        })
    }

    /// What tenants have written so far of what is still being written.
    pub fn written(&self) -> HashMap<TenantId, u64> {
        lock(&self.open).written.clone()
    }

    fn fits(&self, promised: u64, bytes: u64) -> Result<(), ApiError> {
        // A disk that does not tell has none.
        let free = free_bytes(&self.at).unwrap_or(0);
        if free >= bytes.saturating_add(promised).saturating_add(FREE_BYTES) {
            return Ok(());
        }
        tracing::error!(
            free_mib = free >> 20,
            promised_mib = promised >> 20,
            wanted_mib = bytes >> 20,
            "the disk of the state folder is nearly full"
        );
        Err(ApiError::new(
            ErrorCode::NoCapacity,
            "the runner's disk is nearly full; its operator has to make room",
        ))
    }
}

impl Promise {
    /// Nothing more is written of it.
    pub fn no_more(&mut self) {
        lock(&self.open).left -= std::mem::take(&mut self.left);
    }

    /// So many bytes of it are written: the disk itself says that they are gone.
    pub fn wrote(&mut self, bytes: u64) {
        let mut open = lock(&self.open);
        let kept = bytes.min(self.left);
        self.left -= kept;
        open.left -= kept;
        self.written += bytes;
        *open.written.entry(self.tenant.clone()).or_default() += bytes;
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.left -= self.left;
        if let Some(written) = open.written.get_mut(&self.tenant) {
            *written -= self.written;
            if *written == 0 {
                open.written.remove(&self.tenant);
            }
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is free on a disk; none if it does not tell.
pub fn free_bytes(at: &Path) -> Option<u64> {
    let stat = statvfs(at).ok()?;
    Some(stat.blocks_available() * stat.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("an id")
    }

    #[test]
    fn what_is_promised_is_nobody_elses() {
        let dir = tempfile::tempdir().expect("a folder");
        let room = Room::of(dir.path());
        let (one, two) = (tenant("one"), tenant("two"));
        assert!(room.check().is_ok(), "tests need some disk, too");
        // Other programs write beside the test: all but a third of what is free, twice.
        let most = (free_bytes(dir.path()).expect("it tells") - FREE_BYTES) / 3 * 2;
        let refused = |asked: Result<Promise, ApiError>| asked.err().map(|error| error.code);
        let mut first = room.promise(&one, most).expect("there is room");
        assert_eq!(
            refused(room.promise(&two, most)),
            Some(ErrorCode::NoCapacity)
        );
        // What is written is counted by the disk, and nothing was.
        first.wrote(most - 1);
        assert_eq!(room.written(), HashMap::from([(one.clone(), most - 1)]));
        let second = room.promise(&two, most).expect("there is room");
        first.wrote(5);
        assert_eq!(lock(&room.open).left, most);
        drop(first);
        assert!(room.written().is_empty());
        assert_eq!(
            refused(room.promise(&one, most)),
            Some(ErrorCode::NoCapacity)
        );
        drop(second);
        assert_eq!(lock(&room.open).left, 0);
        assert!(room.promise(&one, most).is_ok());
        assert_eq!(
            refused(room.promise(&one, u64::MAX)),
            Some(ErrorCode::NoCapacity)
        );
    }
}
