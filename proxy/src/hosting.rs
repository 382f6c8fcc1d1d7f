//! Joins the control plane of hosted servers with the gateway and the runner. Wiring, and no more.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context as _, bail};
use audit_log::AuditLog;
use control::{AdminToken, Api, ApiOptions, ExecKeys, HostedServers, Publisher, Store};
use domain::{Desired, Secret, TenantId};
use gateway::Gateway;
use runner_api::Runner;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};

use crate::config::Hosting;

/// The admin token's file in the data folder.
pub const TOKEN_FILE: &str = "admin.token";

/// A client of the runner's socket. Connects when something is asked.
pub fn runner(hosting: &Hosting) -> Arc<dyn Runner> {
    Arc::new(runner_api::Client::new(&hosting.runner))
}

/// What the configuration file says and what the control plane says, as one.
pub struct Joint {
    gateway: Weak<Gateway>,
    parts: Mutex<Parts>,
    exec_keys: ExecKeys,
    /// Another configuration was taken.
    reloaded: Notify,
}

struct Parts {
    file: Desired,
    hosted: HostedServers,
}

impl Joint {
    /// Begins with what the gateway was made from.
    pub fn new(gateway: &Arc<Gateway>, file: &Desired) -> anyhow::Result<Arc<Self>> {
        let parts = Parts {
            file: file.clone(),
            hosted: HostedServers::new(),
        };
        Ok(Arc::new(Self {
            gateway: Arc::downgrade(gateway),
            parts: Mutex::new(parts),
            exec_keys: ExecKeys::random()?,
            reloaded: Notify::new(),
        }))
    }

    /// Takes another configuration; what is hosted stays.
    ///
    /// # Errors
    /// The two do not fit, or do not compile. Then nothing changes.
    pub fn reload(&self, file: &Desired) -> anyhow::Result<()> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.apply(file, &parts.hosted)?;
        parts.file = file.clone();
        self.reloaded.notify_one();
        Ok(())
    }

    /// Counts a configuration that was refused, once however often it is tried.
    pub fn count_refused(&self) {
        if let Some(gateway) = self.gateway.upgrade() {
            gateway.count_refused();
        }
    }

    fn gateway(&self) -> anyhow::Result<Arc<Gateway>> {
        self.gateway.upgrade().context("the gateway has stopped")
    }

    fn apply(&self, file: &Desired, hosted: &HostedServers) -> anyhow::Result<()> {
        Ok(self.gateway()?.reload(&self.joined(file, hosted)?)?)
    }

    fn joined(&self, file: &Desired, hosted: &HostedServers) -> anyhow::Result<Desired> {
        if hosted.is_empty() {
            return Ok(file.clone());
        }
        let mut joined = file.clone();
        for (id, server) in hosted {
            if file.servers.contains_key(id) {
                bail!(
                    "server {id} is hosted, and stands in the configuration file too; rename one of the two"
                );
            }
            joined.servers.insert(id.clone(), server.clone());
        }
        let keys = file
            .tenants
            .keys()
            .filter_map(|tenant| self.exec_keys.for_gateway(tenant));
        joined.keys.extend(keys);
        // Executions come over loopback, wherever clients come in.
        joined.hosts.push(Ipv4Addr::LOCALHOST.to_string());
        Ok(joined)
    }
}

impl Publisher for Joint {
    fn publish(&self, servers: HostedServers) -> Result<(), String> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.apply(&parts.file, &servers) {
            self.count_refused();
            return Err(format!("{error:#}"));
        }
        parts.hosted = servers;
        Ok(())
    }

    fn check(&self, servers: HostedServers) -> Result<(), String> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let joined = self.joined(&parts.file, &servers);
        let checked = joined.and_then(|joined| Ok(self.gateway()?.check(&joined)?));
        checked.map_err(|error| format!("{error:#}"))
    }

    fn tenants(&self) -> BTreeSet<TenantId> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.file.tenants.keys().cloned().collect()
    }
}

/// The running control plane.
pub struct Plane {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Plane {
    /// Opens the store, publishes what is in it, and serves the admin API. What the runner tells goes into `audit`. `shown` is the gateway's address as a URL.
    pub async fn start(
        hosting: &Hosting,
        data_dir: &Path,
        gateway: &Arc<Gateway>,
        joint: &Arc<Joint>,
        shown: &str,
        audit: Option<Arc<AuditLog>>,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data_dir)
            .with_context(|| format!("the folder {} cannot be made", data_dir.display()))?;
        let token = admin_token(data_dir)?;
        // A door of its own, so that executions need neither TLS nor the name that clients use.
        let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("no port of loopback is free")?;
        let door_address = door.local_addr()?;
        tokio::spawn(gateway::serve(Arc::clone(gateway), door, None));
        let api = Api::start(ApiOptions {
            store: Store::open(&data_dir.join("control.db")).await?,
            runner: runner(hosting),
            publisher: Arc::clone(joint) as Arc<dyn Publisher>,
            gateway: door_address,
            exec_keys: joint.exec_keys.clone(),
            audit,
            public_url: hosting
                .public_url
                .clone()
                .unwrap_or_else(|| shown.to_owned()),
        })
        .await
        .context("the control plane cannot start")?;
        let joint = Arc::clone(joint);
        let listener = TcpListener::bind(hosting.listen).await;
        let listener = listener
            .with_context(|| format!("hosting.listen: {} cannot be bound", hosting.listen))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        // Behind a proxy that ends TLS, requests carry the name that people use.
        let public = hosting.public_url.as_deref();
        let public = public.and_then(|url| url.parse::<http::Uri>().ok());
        let names: Vec<String> = public
            .and_then(|url| url.host().map(str::to_owned))
            .into_iter()
            .collect();
        let serving = tokio::spawn(async move {
            let stopped = Box::pin(async { drop(stopped.await) });
            let token = AdminToken::new(&token);
            tokio::select! {
                served = control::serve(Arc::clone(&api), listener, token, names, stopped) => served,
                never = try_after_reloads(&api, &joint) => match never {},
            }
        });
        Ok(Self {
            address,
            stop,
            serving,
        })
    }

    /// Where the admin API is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no new request. Followed logs and builds are cut: builds go on in the runner.
    pub async fn stop(self) {
        drop(self.stop);
        let abort = self.serving.abort_handle();
        if tokio::time::timeout(std::time::Duration::from_secs(2), self.serving)
            .await
            .is_err()
        {
            abort.abort();
        }
    }
}

/// Another configuration may have what a refused server lacked, or no longer what was in its way.
async fn try_after_reloads(api: &Api, joint: &Joint) -> Infallible {
    loop {
        joint.reloaded.notified().await;
        api.try_refused().await;
    }
}

/// The admin token, made when it is first wanted: 64 hexadecimal digits in a file for its owner only.
fn admin_token(data_dir: &Path) -> anyhow::Result<Secret> {
    let path = data_dir.join(TOKEN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().len() >= 32 => return Ok(Secret::new(text.trim())),
        Ok(_) => bail!(
            "{} holds no token of at least 32 characters; remove it, and a new one is made",
            path.display()
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    }
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).context("the system gives no random numbers")?;
    let token: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    write_new(&path, format!("{token}\n").as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(Secret::new(token))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use domain::ServerId;
    use gateway::GatewayOptions;
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn what_is_only_checked_is_in_no_metric() {
        let text = "tenants: {acme: {servers: {one: {upstream: {url: 'http://127.0.0.1:9/mcp'}}}}}";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.yaml");
        std::fs::write(&path, text).unwrap();
        let file = crate::config::load(&path).unwrap().desired;
        let new = ServerId::parse("new").unwrap();
        let servers = || {
            let server = file.servers.values().next().unwrap();
            HostedServers::from([(new.clone(), server.clone())])
        };
        let recorder = PrometheusBuilder::new().build_recorder();
        let shown = || recorder.handle().render().contains(r#"server="new""#);
        metrics::with_local_recorder(&recorder, || {
            let gateway = Gateway::new(&file, GatewayOptions::default()).unwrap();
            let joint = Joint::new(&gateway, &file).unwrap();
            joint.check(servers()).unwrap();
            assert!(!shown());
            joint.publish(servers()).unwrap();
            assert!(shown());
        });
    }
}
