//! What the packet filter drops of guests that begin too many flows, said in the runner's log: their owners see connections
//! that take a second and more, and their operator would not know why.

use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;

/// Between two looks at the counters.
const EVERY: Duration = Duration::from_secs(60);

/// Looks for as long as the runner runs.
pub async fn run(ctx: Arc<Context>) {
    let mut before = [0; 2];
    loop {
        tokio::time::sleep(EVERY).await;
        match ctx.filter.spared().await {
            Ok(now) => {
                let [questions, connections] = risen(before, now);
                if questions + connections > 0 {
                    tracing::warn!(
                        questions,
                        connections,
                        "packets of sandboxes that begin too many questions or connections in a second were dropped"
                    );
                }
                before = now;
            }
            Err(error) => {
                tracing::debug!(%error, "the packet filter does not tell what it dropped")
            }
        }
    }
}

/// By how much counters rose that begin again with a new table.
fn risen(before: [u64; 2], now: [u64; 2]) -> [u64; 2] {
    [0, 1].map(|n| now[n].checked_sub(before[n]).unwrap_or(now[n]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_may_begin_again() {
        assert_eq!(risen([0, 0], [0, 3]), [0, 3]);
        assert_eq!(risen([5, 5], [5, 9]), [0, 4]);
        assert_eq!(risen([5, 5], [2, 0]), [2, 0]);
    }
}
