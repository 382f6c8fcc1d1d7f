//! What the runner tells, taken in: events as they come, usage windows every half minute, each exactly once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use runner_api::Event;

use crate::api::Api;
use crate::error::ControlError;

/// How often closed usage windows are asked for.
const USAGE_EVERY: Duration = Duration::from_secs(30);
/// How long to wait after the runner failed.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Events that are stored together.
const BATCH_MAX: usize = 256;

/// Follows the events until the task is dropped.
pub async fn events(api: Arc<Api>) {
    let mut told = false;
    loop {
        // The servers as well: what the runner lost, or never got, it gets when it is back.
        let followed = async {
            api.put_all().await?;
            api.learn_all_prints().await?;
            told = false;
            follow_events(&api).await
        };
        if let Err(error) = followed.await
            && !std::mem::replace(&mut told, true)
        {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the runner cannot be followed; trying again");
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn follow_events(api: &Api) -> Result<(), ControlError> {
    let after = api.store.cursor("events").await?;
    let mut events = api.runner.events(after).await?.ready_chunks(BATCH_MAX);
    while let Some(batch) = events.next().await {
        let (good, mut bad): (Vec<_>, Vec<_>) = batch.into_iter().partition(Result::is_ok);
        let good: Vec<Event> = good.into_iter().flatten().collect();
        if !good.is_empty() {
            if let Some(log) = &api.audit {
                crate::audit::append(log, &good).await?;
            }
            api.store.add_events(&good).await?;
        }
        if let Some(Err(error)) = bad.pop() {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Takes in usage until the task is dropped.
pub async fn usage(api: Arc<Api>) {
    loop {
        if let Err(error) = take_usage(&api).await {
            let error: &dyn std::error::Error = &error;
            tracing::debug!(error, "no usage could be taken in");
        }
        tokio::time::sleep(USAGE_EVERY).await;
    }
}

/// One round: everything that is closed.
pub async fn take_usage(api: &Api) -> Result<(), ControlError> {
    loop {
        let after = api.store.cursor("usage").await?;
        let windows = api.runner.usage(after).await?;
        let Some(upto) = windows.iter().map(|window| window.seq).max() else {
            break;
        };
        api.store.add_usage(&windows).await?;
        // Only now may the runner forget them.
        api.runner.ack_usage(upto).await?;
    }
    api.publish_if_spent_changed().await
}
