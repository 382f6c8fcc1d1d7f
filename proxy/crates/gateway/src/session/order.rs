//! The order of one session's messages.
//!
//! Each of them is a task of its own, and the judging of a large one takes longer than that of a small one behind it. So
//! each takes a turn when it is accepted, and waits until the one before it went up. Turns are as many as messages may be
//! under way.

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Gives turns, one after the other.
#[derive(Debug, Default)]
pub struct Order {
    /// Ends with the turn that was given last.
    last: Mutex<Option<Wait>>,
}

/// Ends when a turn is over; or says what else to wait for, where that turn was given up before it came.
#[derive(Debug)]
struct Wait(oneshot::Receiver<Wait>);

/// A message's place in the order. Dropped, the next one's turn comes when that of this one would have.
#[derive(Debug, Default)]
pub struct Turn {
    before: Option<Wait>,
    over: Option<oneshot::Sender<Wait>>,
}

impl Order {
    /// The turn after all that were given.
    pub fn turn(&self) -> Turn {
        let (over, next) = oneshot::channel();
        Turn {
            before: self.last.lock().replace(Wait(next)),
            over: Some(over),
        }
    }
}

impl Turn {
    /// Waits until every turn before it is over. One that was given by nobody waits for nothing.
    pub async fn come(&mut self) {
        while let Some(Wait(before)) = &mut self.before {
            // An error is what ends a turn.
            self.before = before.await.ok();
        }
    }

    /// The next may go.
    pub fn over(&mut self) {
        self.over = None;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let (Some(before), Some(over)) = (self.before.take(), self.over.take()) {
            // Nobody waits where this fails.
            let _ = over.send(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn whoever_came_first_goes_first_whatever_the_scheduler_does() {
        let order = Order::default();
        let went = Arc::new(Mutex::new(Vec::new()));
        let turns: Vec<Turn> = (0..100).map(|_| order.turn()).collect();
        let tasks: Vec<_> = turns
            .into_iter()
            .enumerate()
            .rev()
            .map(|(n, mut turn)| {
                let went = Arc::clone(&went);
                tokio::spawn(async move {
                    for _ in 0..n % 3 {
                        tokio::task::yield_now().await;
                    }
                    turn.come().await;
                    went.lock().push(n);
                    turn.over();
                    // What follows holds up nobody.
                    tokio::task::yield_now().await;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*went.lock(), (0..100).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn one_who_gives_up_holds_up_nobody_and_lets_nobody_overtake() {
        let order = Order::default();
        let mut turns: Vec<Turn> = (0..5).map(|_| order.turn()).collect();
        let (mut last, first) = (turns.pop().unwrap(), turns.swap_remove(0));
        drop(turns);
        tokio::select! {
            biased;
            () = last.come() => panic!("the first is not over"),
            () = tokio::task::yield_now() => {}
        }
        drop(first);
        last.come().await;
        Turn::default().come().await;
    }
}
