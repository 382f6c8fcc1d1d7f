//! Peers: what a user could put in the proxy's place. nginx and haproxy are forwarders that look at nothing; the MCP proxies
//! in [`programs`] come from package registries.

pub mod contextforge;
pub mod install;
pub mod programs;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A program on the path or where distributions put servers.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// nginx as a plain reverse proxy that streams bodies and keeps upstream connections.
pub fn nginx_config(
    listen: SocketAddr,
    upstream: SocketAddr,
    threads: usize,
    scratch: &Path,
) -> String {
    let scratch = scratch.display();
    format!(
        "daemon off;\nworker_processes {threads};\npid {scratch}/nginx.pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 2048; }}\nhttp {{\n  access_log off;\n  client_max_body_size 64m;\n\
         \x20 client_body_buffer_size 2m;\n  keepalive_requests 1000000;\n\
         \x20 client_body_temp_path {scratch}/nginx-body;\n  proxy_temp_path {scratch}/nginx-proxy;\n\
         \x20 fastcgi_temp_path {scratch}/nginx-f;\n  uwsgi_temp_path {scratch}/nginx-u;\n  scgi_temp_path {scratch}/nginx-s;\n\
         \x20 upstream up {{ server {upstream}; keepalive 128; keepalive_requests 1000000; }}\n\
         \x20 server {{\n    listen {listen};\n    location / {{\n      proxy_pass http://up;\n      proxy_http_version 1.1;\n\
         \x20     proxy_set_header Connection \"\";\n      proxy_request_buffering off;\n      proxy_buffering off;\n    }}\n  }}\n}}\n"
    )
}

/// The same of haproxy.
pub fn haproxy_config(
    listen: SocketAddr,
    upstream: SocketAddr,
    threads: usize,
    _scratch: &Path,
) -> String {
    format!(
        "global\n  nbthread {threads}\n  maxconn 4096\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n\
         \x20 timeout server 60s\n  http-reuse always\n  option http-no-delay\nfrontend in\n  bind {listen}\n  default_backend up\nbackend up\n  server one {upstream}\n"
    )
}
