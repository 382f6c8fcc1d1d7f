//! The way from a server to its sandbox. It has a place for each kind of command and so is never full: an order to end
//! comes through whatever else waits, and of rules the last ones count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use runner_api::{GoneReason, SessionKey};
use tokio::sync::Notify;

/// What a server tells its sandbox.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Stand still.
    Freeze,
    /// Go on.
    Thaw,
    /// Go to the disk, if it stands still.
    Checkpoint,
    /// Come back from there.
    Restore,
    /// New egress rules.
    Rules(egress::Allowlist),
    /// It belongs to a session from now on.
    Session(SessionKey),
    /// End.
    Stop(GoneReason),
}

/// The server's end. When it is dropped, its sandbox is to end.
pub struct Commands(Arc<Inner>);

/// Another way to end it, for who has to take from it what all need.
pub struct Ender(Weak<Inner>);

/// The sandbox's end.
pub struct Told(Arc<Inner>);

#[derive(Default)]
struct Inner {
    waiting: Mutex<Waiting>,
    told: Notify,
}

#[derive(Default)]
struct Waiting {
    stop: Option<GoneReason>,
    rules: Option<egress::Allowlist>,
    session: Option<SessionKey>,
    /// To stand still, to go on, and so on: each stands for all before it.
    step: Option<Command>,
    left: bool,
}

/// Both ends of one.
pub fn commands() -> (Commands, Told) {
    let inner = Arc::new(Inner::default());
    (Commands(Arc::clone(&inner)), Told(inner))
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ender {
    /// Tells it to end. It may have ended.
    pub fn end(&self, reason: GoneReason) {
        if let Some(inner) = self.0.upgrade() {
            Commands::tell_to(&inner, Command::Stop(reason));
        }
    }
}

impl Commands {
    /// For others than its server.
    pub fn ender(&self) -> Ender {
        Ender(Arc::downgrade(&self.0))
    }

    /// Tells it. It is heard as soon as the sandbox can do something about it.
    pub fn tell(&self, command: Command) {
        Self::tell_to(&self.0, command);
    }

    fn tell_to(inner: &Inner, command: Command) {
        let mut waiting = inner.waiting();
        match command {
            // The first reason is the reason.
            Command::Stop(reason) => drop(waiting.stop.get_or_insert(reason)),
            Command::Rules(rules) => waiting.rules = Some(rules),
            Command::Session(session) => waiting.session = Some(session),
            step => waiting.step = Some(step),
        }
        drop(waiting);
        inner.told.notify_one();
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        self.0.waiting().left = true;
        self.0.told.notify_one();
    }
}

impl Told {
    /// The next command; an end comes first, also that of the server.
    pub async fn next(&self) -> Command {
        self.when(Waiting::take).await
    }

    /// Waits until it is to end. Everything else waits on.
    pub async fn stopped(&self) -> GoneReason {
        self.when(Waiting::take_stop).await
    }

    async fn when<T>(&self, take: fn(&mut Waiting) -> Option<T>) -> T {
        loop {
            if let Some(taken) = take(&mut self.0.waiting()) {
                return taken;
            }
            self.0.told.notified().await;
        }
    }
}

impl Waiting {
    fn take_stop(&mut self) -> Option<GoneReason> {
        self.stop
            .take()
            .or_else(|| self.left.then_some(GoneReason::Stopped))
    }

    fn take(&mut self) -> Option<Command> {
        self.take_stop()
            .map(Command::Stop)
            .or_else(|| self.rules.take().map(Command::Rules))
            .or_else(|| self.session.take().map(Command::Session))
            .or_else(|| self.step.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn rules(number: usize) -> egress::Allowlist {
        egress::Allowlist::parse(&[format!("h{number}.example.com")]).expect("a list")
    }

    #[test]
    fn an_end_and_the_last_rules_come_through_whatever_waits() {
        let (commands, told) = commands();
        assert!(told.next().now_or_never().is_none());
        for number in 0..100 {
            commands.tell(Command::Rules(rules(number)));
            commands.tell(Command::Freeze);
            commands.tell(Command::Thaw);
        }
        assert!(told.stopped().now_or_never().is_none(), "nobody said so");
        commands.tell(Command::Stop(GoneReason::CallTimeout));
        commands.tell(Command::Stop(GoneReason::Stopped));
        let next = || told.next().now_or_never();
        assert_eq!(next(), Some(Command::Stop(GoneReason::CallTimeout)));
        assert_eq!(next(), Some(Command::Rules(rules(99))));
        assert_eq!(next(), Some(Command::Thaw));
        assert_eq!(next(), None);
        drop(commands);
        assert_eq!(told.stopped().now_or_never(), Some(GoneReason::Stopped));
        assert_eq!(next(), Some(Command::Stop(GoneReason::Stopped)));
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let (commands, told) = commands();
        let waits = tokio::spawn(async move { (told.next().await, told.stopped().await) });
        commands.tell(Command::Restore);
        tokio::task::yield_now().await;
        drop(commands);
        let heard = waits.await.expect("no panic");
        assert_eq!(heard, (Command::Restore, GoneReason::Stopped));
    }
}
