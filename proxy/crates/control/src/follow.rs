//! What the runner tells, taken in: events as they come, usage windows every half minute, each exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join;
use runner_api::{Event, RunnerError};
use tokio::sync::watch;

use crate::api::Api;
use crate::error::ControlError;

/// How often closed usage windows are asked for.
const USAGE_EVERY: Duration = Duration::from_secs(30);
/// How long to wait after the runner failed.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Events that are stored together.
const BATCH_MAX: usize = 256;

/// Whether the runner has been given again what it has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It is being given it: that may take as long as every server takes to be put.
    Giving,
    Given,
    Failed,
}

/// Follows the events until the task is dropped.
pub async fn events(api: Arc<Api>) {
    let told = AtomicBool::new(false);
    loop {
        // The servers as well: what the runner lost, or never got, it gets when it is back. Meanwhile what it tells is taken
        // in: all this is told of too, and the runner keeps only so much for who does not listen. Neither is dropped in the
        // middle when the other fails: servers would not be put, prints not be published, events be in the audit log twice.
        let state = watch::Sender::new(Again::Giving);
        let again = async {
            let done = give_again(&api).await;
            told.fetch_and(done.is_err(), Relaxed);
            state.send_replace(done.as_ref().map_or(Again::Failed, |()| Again::Given));
            done
        };
        let (again, followed) = join(again, follow(&api, state.subscribe(), &told)).await;
        if let Err(error) = again.and(followed) {
            tell(&told, &error);
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// Says once that it does not work.
fn tell(told: &AtomicBool, error: &ControlError) {
    if !told.swap(true, Relaxed) {
        let error: &dyn std::error::Error = error;
        tracing::warn!(error, "the runner cannot be followed; trying again");
    }
}

async fn give_again(api: &Api) -> Result<(), ControlError> {
    api.put_all().await?;
    api.learn_all_prints().await?;
    api.try_refused().await;
    Ok(())
}

/// Follows the events until that fails. While servers are given again it is tried again: they may take for ever.
async fn follow(
    api: &Api,
    mut again: watch::Receiver<Again>,
    told: &AtomicBool,
) -> Result<(), ControlError> {
    loop {
        let followed = follow_events(api, &mut again).await;
        if *again.borrow() != Again::Giving {
            return followed;
        }
        if let Err(error) = &followed {
            tell(told, error);
        }
        let over = again.wait_for(|again| *again != Again::Giving);
        // Either way it is tried again, or told to stop at once.
        let _ = tokio::time::timeout(AGAIN_AFTER, over).await;
    }
}

/// Until it fails, or is to stop: between two batches.
async fn follow_events(api: &Api, again: &mut watch::Receiver<Again>) -> Result<(), ControlError> {
    let mut upto = api.store.cursor("events").await?;
    let Some(events) = unless_failed(again, api.runner.events(upto)).await else {
        return Ok(());
    };
    let mut events = events?.ready_chunks(BATCH_MAX);
    while let Some(Some(batch)) = unless_failed(again, events.next()).await {
        take_in(api, &mut upto, batch).await?;
    }
    Ok(())
}

/// What comes of it, or nothing if it is time to stop; of the two either, if both are there: neither can keep the other away.
async fn unless_failed<T>(
    again: &mut watch::Receiver<Again>,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        _ = again.wait_for(|again| *again == Again::Failed) => None,
        done = work => Some(done),
    }
}

async fn take_in(
    api: &Api,
    upto: &mut u64,
    batch: Vec<Result<Event, RunnerError>>,
) -> Result<(), ControlError> {
    let (good, mut bad): (Vec<_>, Vec<_>) = batch.into_iter().partition(Result::is_ok);
    let good: Vec<Event> = good.into_iter().flatten().collect();
    if !good.is_empty() {
        let lost = lost_before(upto, &good);
        if lost > 0 {
            tracing::error!(
                lost,
                "events of the runner were lost before they were taken in"
            );
        }
        if let Some(log) = &api.audit {
            crate::audit::append(log, lost, &good).await?;
        }
        api.store.add_events(&good).await?;
    }
    bad.pop().map_or(Ok(()), |failed| Ok(failed.map(|_| ())?))
}

/// How many numbers are missing between the last event that was taken in and these; `upto` is the last of these then. Who has
/// taken in none yet misses none: what an earlier owner of the runner was told is not for it.
fn lost_before(upto: &mut u64, events: &[Event]) -> u64 {
    let mut lost = 0;
    for event in events {
        if *upto > 0 {
            lost += event.seq.saturating_sub(*upto + 1);
        }
        *upto = event.seq.max(*upto);
    }
    lost
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
