//! How many connections the limit on open files leaves room for. At the limit nothing goes on for anybody: no connection can
//! be accepted, none be opened to an upstream, and no page of metrics be read.

/// Kept for everything else: the audit log and other files, the admin listeners, pipes of servers that are programs, and
/// connections to upstreams that wait for their next request.
const KEPT: u64 = 256;
/// A connection of a client, and the one to the upstream that its request goes on.
const EACH: u64 = 2;

/// The connections of clients that so many open files are enough for.
pub(crate) fn connections_within(files: u64) -> usize {
    let kept = KEPT.min(files / 4);
    let room = files.saturating_sub(kept) / EACH;
    usize::try_from(room).unwrap_or(usize::MAX).max(1)
}

/// The open files that so many connections of clients need.
fn files_for(connections: usize) -> u64 {
    let connections = u64::try_from(connections).unwrap_or(u64::MAX);
    connections.saturating_mul(EACH).saturating_add(KEPT)
}

/// Says that there will be fewer connections than were asked for, and what to do about it.
pub(crate) fn warn_if_few(files: Option<u64>, connections_max: usize) {
    let Some(files) = files else { return };
    let in_force = connections_within(files);
    if in_force >= connections_max {
        return;
    }
    let needed = files_for(connections_max);
    tracing::warn!(
        connections_max,
        in_force,
        files,
        needed,
        "limits.connections_max is {connections_max}, but this process may have only {files} open files: at most {in_force} connections are taken. Give it {needed} (LimitNOFILE={needed} of systemd, --ulimit nofile={needed} of docker, ulimit -Hn {needed} of a shell), or set limits.connections_max to {in_force}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_upstreams_and_files() {
        for (files, connections) in [
            (0, 1),
            (4, 1),
            (64, 24),
            (256, 96),
            (1024, 384),
            (8448, 4096),
            (1 << 20, 524_160),
        ] {
            assert_eq!(connections_within(files), connections, "{files}");
        }
        assert!(connections_within(u64::MAX) > 1 << 30);
    }

    #[test]
    fn what_is_asked_for_is_enough() {
        for connections in [1, 20, 384, 4096, 1_000_000] {
            assert!(connections_within(files_for(connections)) >= connections);
        }
    }
}
