//! The control plane's database.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use domain::{Plan, ServerId, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use runner_api::{Event, UsageWindow};
use serde::de::DeserializeOwned;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Row as _, Sqlite, Transaction};

use crate::error::ControlError;
use crate::model::{Stored, UsageView};

/// Events that are kept over all servers; the oldest go first.
pub const EVENTS_MAX: i64 = 200_000;
const CONNECTIONS_MAX: u32 = 8;
const GIB: f64 = (1u64 << 30) as f64;

/// It holds the environment of all tenants' servers: for nobody but us.
const FILE_MODE: u32 = 0o600;

/// SQLite behind a pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pool: SqlitePool,
}

impl Store {
    /// Opens the database, makes it where it is missing (its folder too), and brings its tables up to date.
    ///
    /// # Errors
    /// The database's.
    pub fn open(path: &Path) -> BoxFuture<'_, Result<Self, ControlError>> {
        Self::opened(path).boxed()
    }

    async fn opened(path: &Path) -> Result<Self, ControlError> {
        keep_private(path).map_err(sqlx::Error::Io)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was answered must survive a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .connect_with(options)
            .await?;
        sqlx::migrate!("./migrations").run(&pool).await?;
        Ok(Self { pool })
    }

    pub(crate) async fn servers(
        &self,
        tenant: Option<&TenantId>,
    ) -> Result<Vec<Stored>, ControlError> {
        let all = "SELECT * FROM servers WHERE ?1 IS NULL OR tenant = ?1 ORDER BY id";
        let rows = sqlx::query(all)
            .bind(tenant.map(TenantId::as_str))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(stored).collect()
    }

    pub(crate) async fn server(&self, id: &ServerId) -> Result<Stored, ControlError> {
        let row = sqlx::query("SELECT * FROM servers WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(stored).unwrap_or_else(|| Err(missing(id)))
    }

    /// Adds a server; `false` if there is one of this id.
    pub(crate) async fn add_server(&self, server: &Stored) -> Result<bool, ControlError> {
        let text = "INSERT INTO servers (id, tenant, created_ms, changed_ms, settings, policy) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
        let done = sqlx::query(text)
            .bind(server.id.as_str())
            .bind(server.tenant.as_str())
            .bind(server.created_ms)
            .bind(server.changed_ms)
            .bind(json(&server.settings)?)
            .bind(json(&server.policy)?)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    pub(crate) async fn change_server(&self, server: &Stored) -> Result<(), ControlError> {
        let text = "UPDATE servers SET changed_ms = ?, settings = ?, policy = ?, uploaded = ?, deployed = ? WHERE id = ?";
        let done = sqlx::query(text)
            .bind(crate::ids::now_ms())
            .bind(json(&server.settings)?)
            .bind(json(&server.policy)?)
            .bind(server.uploaded.as_ref().map(json).transpose()?)
            .bind(server.deployed.as_ref().map(json).transpose()?)
            .bind(server.id.as_str())
            .execute(&self.pool)
            .await?;
        if done.rows_affected() == 1 {
            Ok(())
        } else {
            Err(missing(&server.id))
        }
    }

    /// Removes a server. Its events and its usage stay.
    pub(crate) async fn remove_server(&self, id: &ServerId) -> Result<(), ControlError> {
        sqlx::query("DELETE FROM servers WHERE id = ?")
            .bind(id.as_str())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    pub(crate) async fn plan(&self, tenant: &TenantId) -> Result<(String, Plan), ControlError> {
        let row = sqlx::query("SELECT plan FROM tenants WHERE id = ?")
            .bind(tenant.as_str())
            .fetch_optional(&self.pool)
            .await?;
        let name: Option<String> = row.map(|row| row.try_get("plan")).transpose()?;
        let all = Plan::built_in();
        let found = all
            .iter()
            .find(|(n, _)| name.as_deref().is_none_or(|wanted| wanted == *n));
        found
            .map(|(n, plan)| ((*n).to_owned(), plan.clone()))
            .ok_or(ControlError::Damaged("plan"))
    }

    pub(crate) async fn set_plan(&self, tenant: &TenantId, plan: &str) -> Result<(), ControlError> {
        let text = "INSERT INTO tenants (id, plan) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET plan = excluded.plan";
        sqlx::query(text)
            .bind(tenant.as_str())
            .bind(plan)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// How far a numbered stream of the runner was taken in.
    pub(crate) async fn cursor(&self, name: &str) -> Result<u64, ControlError> {
        let row = sqlx::query("SELECT value FROM cursors WHERE name = ?")
            .bind(name)
            .fetch_optional(&self.pool)
            .await?;
        let value: i64 = row
            .map(|row| row.try_get("value"))
            .transpose()?
            .unwrap_or(0);
        Ok(u64::try_from(value).unwrap_or(0))
    }

    /// Adds windows and their highest number in one transaction; those that are known already are passed over.
    pub(crate) async fn add_usage(&self, windows: &[UsageWindow]) -> Result<(), ControlError> {
        const ADD: &str = "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, server, hour_unix_s) DO UPDATE SET \
            cpu_us = cpu_us + excluded.cpu_us, memory_byte_s = memory_byte_s + excluded.memory_byte_s, \
            storage_byte_s = storage_byte_s + excluded.storage_byte_s, egress_bytes = egress_bytes + excluded.egress_bytes, \
            requests = requests + excluded.requests";
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let mut upto = cursor_in(&mut tx, "usage").await?;
        for window in windows
            .iter()
            .filter(|w| w.seq > upto.max(0).unsigned_abs())
            .collect::<Vec<_>>()
        {
            sqlx::query(ADD)
                .bind(window.tenant.as_str())
                .bind(window.server.as_str())
                .bind(signed(window.hour_unix_s))
                .bind(signed(window.cpu_us))
                .bind(i64::try_from(window.memory_byte_s).unwrap_or(i64::MAX))
                .bind(i64::try_from(window.storage_byte_s).unwrap_or(i64::MAX))
                .bind(signed(window.egress_bytes))
                .bind(signed(window.requests))
                .execute(&mut *tx)
                .await?;
            upto = upto.max(signed(window.seq));
        }
        set_cursor_in(&mut tx, "usage", upto).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Adds events and their highest number in one transaction, and drops the oldest above the bound.
    pub(crate) async fn add_events(&self, events: &[Event]) -> Result<(), ControlError> {
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let mut upto = cursor_in(&mut tx, "events").await?;
        for event in events {
            let text = "INSERT INTO events (seq, tenant, server, at_ms, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
            sqlx::query(text)
                .bind(signed(event.seq))
                .bind(event.tenant.as_str())
                .bind(event.server.as_str())
                .bind(signed(event.at_unix_ms))
                .bind(json(event)?)
                .execute(&mut *tx)
                .await?;
            upto = upto.max(signed(event.seq));
        }
        set_cursor_in(&mut tx, "events", upto).await?;
        sqlx::query("DELETE FROM events WHERE seq <= ?")
            .bind(upto - EVENTS_MAX)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Events of a server after number `after`, oldest first. Of a removed one of the same id that was another tenant's,
    /// none.
    pub(crate) async fn events(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        after: i64,
        max: i64,
    ) -> Result<Vec<serde_json::Value>, ControlError> {
        let text = "SELECT body FROM events WHERE server = ? AND tenant = ? AND seq > ? ORDER BY seq LIMIT ?";
        let rows = sqlx::query(text)
            .bind(server.as_str())
            .bind(tenant.as_str())
            .bind(after)
            .bind(max)
            .fetch_all(&self.pool)
            .await?;
        rows.iter()
            .map(|row| parsed(&row.try_get::<String, _>("body")?, "event"))
            .collect()
    }

    /// Usage by hour, from hour `from` to before `to` (seconds since 1970), at most `max` rows.
    pub(crate) async fn usage(
        &self,
        tenant: Option<&TenantId>,
        server: Option<&ServerId>,
        (from, to): (i64, i64),
        max: i64,
    ) -> Result<Vec<UsageView>, ControlError> {
        let text = "SELECT * FROM usage WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR server = ?2) \
            AND hour_unix_s >= ?3 AND hour_unix_s < ?4 ORDER BY hour_unix_s, server LIMIT ?5";
        let query = sqlx::query(text)
            .bind(tenant.map(TenantId::as_str))
            .bind(server.map(ServerId::as_str));
        let rows = query
            .bind(from)
            .bind(to)
            .bind(max)
            .fetch_all(&self.pool)
            .await?;
        rows.iter()
            .map(|row| usage_view(row).map_err(Into::into))
            .collect()
    }

    /// Processor time by tenant since `from` (seconds since 1970), in microseconds.
    pub(crate) async fn cpu_since(
        &self,
        from: i64,
    ) -> Result<BTreeMap<TenantId, u64>, ControlError> {
        let text = "SELECT tenant, SUM(cpu_us) AS cpu_us FROM usage WHERE hour_unix_s >= ? GROUP BY tenant";
        let rows = sqlx::query(text).bind(from).fetch_all(&self.pool).await?;
        let mut sums = BTreeMap::new();
        for row in rows {
            let tenant: String = row.try_get("tenant")?;
            let cpu_us: i64 = row.try_get("cpu_us")?;
            let tenant = TenantId::parse(&tenant).map_err(|_| ControlError::Damaged("tenant"))?;
            sums.insert(tenant, u64::try_from(cpu_us).unwrap_or(0));
        }
        Ok(sums)
    }
}

async fn cursor_in(tx: &mut Transaction<'_, Sqlite>, name: &str) -> Result<i64, sqlx::Error> {
    let row = sqlx::query("SELECT value FROM cursors WHERE name = ?")
        .bind(name)
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row
        .map(|row| row.try_get("value"))
        .transpose()?
        .unwrap_or(0))
}

async fn set_cursor_in(
    tx: &mut Transaction<'_, Sqlite>,
    name: &str,
    value: i64,
) -> Result<(), sqlx::Error> {
    let text = "INSERT INTO cursors (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    sqlx::query(text)
        .bind(name)
        .bind(value)
        .execute(&mut **tx)
        .await
        .map(|_| ())
}

fn stored(row: &SqliteRow) -> Result<Stored, ControlError> {
    let text = |name: &str| row.try_get::<String, _>(name);
    let optional = |name: &str| -> Result<_, ControlError> {
        let text: Option<String> = row.try_get(name)?;
        text.map(|text| parsed(&text, "bundle")).transpose()
    };
    Ok(Stored {
        id: ServerId::parse(&text("id")?).map_err(|_| ControlError::Damaged("server"))?,
        tenant: TenantId::parse(&text("tenant")?).map_err(|_| ControlError::Damaged("server"))?,
        created_ms: row.try_get("created_ms")?,
        changed_ms: row.try_get("changed_ms")?,
        settings: parsed(&text("settings")?, "server")?,
        policy: parsed(&text("policy")?, "policy")?,
        uploaded: optional("uploaded")?,
        deployed: optional("deployed")?,
    })
}

fn usage_view(row: &SqliteRow) -> Result<UsageView, sqlx::Error> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "these are for people; sums are made in whole numbers"
    )]
    let float = |name: &str| row.try_get::<i64, _>(name).map(|n| n as f64);
    Ok(UsageView {
        tenant: row.try_get("tenant")?,
        server: row.try_get("server")?,
        hour_unix_s: row.try_get("hour_unix_s")?,
        cpu_s: float("cpu_us")? / 1e6,
        memory_gb_s: float("memory_byte_s")? / GIB,
        storage_gb_s: float("storage_byte_s")? / GIB,
        egress_bytes: row.try_get("egress_bytes")?,
        requests: row.try_get("requests")?,
    })
}

/// Makes folder and file before SQLite would, under whatever mask for new files, and takes from others what an earlier
/// version let them read. SQLite gives the files beside it the mode of this one.
fn keep_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::create_dir_all(folder)?;
    }
    let mut new = OpenOptions::new();
    match new.write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for end in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        // By name: to open and close it would end the locks of whoever has it open in this process.
        match fs::metadata(&file) {
            Ok(meta) if meta.permissions().mode() & 0o077 != 0 => {
                // It may be another's, or on a file system that has no modes: it worked so before.
                if let Err(error) = fs::set_permissions(&file, Permissions::from_mode(FILE_MODE)) {
                    let path = Path::new(&file).display();
                    tracing::warn!(%path, %error, "others may read the control plane's database");
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn missing(id: &ServerId) -> ControlError {
    ControlError::NotFound {
        what: "server",
        id: id.to_string(),
    }
}

fn parsed<T: DeserializeOwned>(text: &str, what: &'static str) -> Result<T, ControlError> {
    serde_json::from_str(text).map_err(|_| ControlError::Damaged(what))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, ControlError> {
    serde_json::to_string(value).map_err(|_| ControlError::Damaged("value"))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        let meta = fs::metadata(path).expect("it is there");
        meta.permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn nobody_else_may_read_the_database() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("data");
        let file = |end: &str| folder.join(format!("control.db{end}"));
        let store = Store::open(&file("")).await.expect("made");
        for end in ["", "-wal", "-shm"] {
            assert_eq!(mode(&file(end)), FILE_MODE, "{end:?}");
        }
        // As an earlier version left them.
        for end in ["", "-wal", "-shm"] {
            fs::set_permissions(file(end), Permissions::from_mode(0o644)).expect("set");
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("set");
        let again = Store::open(&file("")).await.expect("opened");
        for end in ["", "-wal", "-shm"] {
            assert_eq!(mode(&file(end)), FILE_MODE, "{end:?}");
        }
        assert_eq!(
            mode(&folder),
            0o755,
            "the operator's folder is the operator's"
        );
        drop((store, again));
    }
}
