//! Call limits: concurrency and rate, per key, server and tenant.
//!
//! A call that finds all places taken waits a moment for one: most bursts are over by then, and who is refused anyway
//! comes back later than one who is refused at once, so that refusing never becomes most of the work. After that moment
//! it stays only where the line has moved so fast that its turn will come soon. Both the time and the number of those
//! who wait are bounded.
//!
//! What wants no answer (a word: a notification, a response, the opening or ending of a stream or session) takes no
//! place and is counted by itself: a client at its limit of calls must still be able to cancel one, or to answer what
//! one of them waits for, and words cannot use up the rate of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use domain::{CallLimits, RateLimit};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time;

/// Shortest wait that a refusal asks for.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// When a call that waits looks how far the line in front of it has moved: with what a worker under overload adds before
/// and after, a refusal is out after some 30 ms.
const LOOK: Duration = Duration::from_millis(25);
/// How long a call may wait for places, over all its gates, where the line moves. A whole line (32 places and sixteen calls for each)
/// is served in it at some 1,100 calls a second: who is refused comes back at once, and refusing him slows the line for all others.
const PATIENCE: Duration = Duration::from_millis(500);
/// Words for each call of the rate: a call may be followed by its progress, by answers to what it asks, by its end.
const WORDS_PER_CALL: u32 = 4;
/// Calls that may wait for each place.
const WAITING_PER_PLACE: usize = 16;

/// Calls that wait for a place, at all gates.
static ALL_WAITING: AtomicUsize = AtomicUsize::new(0);

/// Whether calls wait for places: then whatever is done for one holds up others.
pub fn calls_wait() -> bool {
    ALL_WAITING.load(Ordering::Relaxed) > 0
}

/// Bounds the calls of one key, server or tenant.
#[derive(Debug)]
pub struct Gate {
    places: Option<Places>,
    bucket: Option<Mutex<Bucket>>,
    words: Option<Mutex<Bucket>>,
    limits: CallLimits,
}

/// Held while a call runs; dropping it ends the call.
#[derive(Debug)]
pub struct Permit {
    _place: Option<OwnedSemaphorePermit>,
}

/// A call that may not run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// When to try again.
    pub retry_after: Duration,
}

impl Gate {
    /// A gate with these limits; absent limits bound nothing.
    pub fn new(limits: &CallLimits) -> Arc<Self> {
        let bucket = |rate| Mutex::new(Bucket::full(rate, Instant::now()));
        Arc::new(Self {
            places: limits.concurrent_calls_max.map(Places::new),
            bucket: limits.rate.map(bucket),
            words: limits.rate.map(|rate| bucket(words_of(rate))),
            limits: limits.clone(),
        })
    }

    /// The limits it was made with, to tell whether a reload changed them.
    pub fn limits(&self) -> &CallLimits {
        &self.limits
    }

    /// Lets one call in through all of these gates, perhaps after a moment.
    ///
    /// # Errors
    /// Says how long to wait when the rate or the concurrency of one of them is used up.
    pub async fn enter_all<const N: usize>(gates: [&Self; N]) -> Result<[Permit; N], Refused> {
        let mut since = None;
        let mut permits = [const { Permit { _place: None } }; N];
        let mut tokens = [const { Token(None) }; N];
        for ((gate, permit), token) in gates.into_iter().zip(&mut permits).zip(&mut tokens) {
            *token = Token::take(gate.bucket.as_ref())?;
            *permit = gate.enter(&mut since).await?;
        }
        tokens.into_iter().for_each(Token::keep);
        Ok(permits)
    }

    /// Lets one word through all of these gates, at once or not at all. Through a gate without any place, which is
    /// closed, there is none.
    ///
    /// # Errors
    /// Says how long to wait when the rate of one of them is used up.
    pub fn word_all<const N: usize>(gates: [&Self; N]) -> Result<(), Refused> {
        let mut tokens = [const { Token(None) }; N];
        for (gate, token) in gates.into_iter().zip(&mut tokens) {
            if gate.limits.concurrent_calls_max == Some(0) {
                return Err(Refused {
                    retry_after: RETRY_MIN,
                });
            }
            *token = Token::take(gate.words.as_ref())?;
        }
        tokens.into_iter().for_each(Token::keep);
        Ok(())
    }

    /// `since` is when the first wait began.
    async fn enter(&self, since: &mut Option<time::Instant>) -> Result<Permit, Refused> {
        let Some(places) = &self.places else {
            return Ok(Permit { _place: None });
        };
        match places.take(since).await {
            Some(place) => Ok(Permit {
                _place: Some(place),
            }),
            None => Err(Refused {
                retry_after: RETRY_MIN,
            }),
        }
    }
}

/// Taken of a rate, and given back unless it is kept: who is refused by a later gate, or goes away while it waits, did
/// not use it.
struct Token<'a>(Option<&'a Mutex<Bucket>>);

impl<'a> Token<'a> {
    fn take(bucket: Option<&'a Mutex<Bucket>>) -> Result<Self, Refused> {
        if let Some(bucket) = bucket {
            bucket.lock().take(Instant::now())?;
        }
        Ok(Self(bucket))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        if let Some(bucket) = self.0 {
            bucket.lock().give_back();
        }
    }
}

fn words_of(rate: RateLimit) -> RateLimit {
    RateLimit {
        per_second: rate.per_second * f64::from(WORDS_PER_CALL),
        burst: rate.burst.saturating_mul(WORDS_PER_CALL),
    }
}

/// Places for calls that run at once, and those who wait for one, first come first served.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    /// How many of those who waited got a place, ever.
    served: AtomicUsize,
}

impl Places {
    fn new(concurrent_max: u32) -> Self {
        let places = (concurrent_max as usize).min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(places)),
            waiting: AtomicUsize::new(0),
            waiting_max: places.saturating_mul(WAITING_PER_PLACE),
            served: AtomicUsize::new(0),
        }
    }

    async fn take(&self, since: &mut Option<time::Instant>) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(place);
        }
        let line = Line {
            waiting: self.wait()?,
            served: self.served.load(Ordering::Acquire),
            joined: time::Instant::now(),
        };
        let since = *since.get_or_insert(line.joined);
        let mut place = std::pin::pin!(Arc::clone(&self.free).acquire_owned());
        let look = (line.joined + LOOK).min(since + PATIENCE);
        let place = match time::timeout_at(look, &mut place).await {
            Ok(place) => place,
            Err(_) if line.turn(self, time::Instant::now())? <= since + PATIENCE => {
                time::timeout_at(since + PATIENCE, place).await.ok()?
            }
            Err(_) => return None,
        };
        self.served.fetch_add(1, Ordering::AcqRel);
        place.ok()
    }

    /// One more who waits, unless there are too many.
    fn wait(&self) -> Option<Waiting<'_>> {
        let more = |n| (n < self.waiting_max).then_some(n + 1);
        self.waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()
            .map(|ahead| {
                ALL_WAITING.fetch_add(1, Ordering::Relaxed);
                Waiting {
                    all: &self.waiting,
                    ahead,
                }
            })
    }
}

/// Where a call stood when it began to wait.
struct Line<'a> {
    waiting: Waiting<'a>,
    served: usize,
    joined: time::Instant,
}

impl Line<'_> {
    /// When its turn will come, if the line moves on as it did. Those in front who give up are counted as if they stayed:
    /// whoever is told to wait shall not have waited for nothing.
    fn turn(&self, places: &Places, now: time::Instant) -> Option<time::Instant> {
        let served = places.served.load(Ordering::Acquire);
        let served = u32::try_from(served.wrapping_sub(self.served)).ok()?;
        let ahead = u32::try_from(self.waiting.ahead).ok()?;
        let each = now.duration_since(self.joined).checked_div(served)?;
        now.checked_add(each * (ahead.saturating_sub(served) + 1))
    }
}

/// Counted while a call waits.
struct Waiting<'a> {
    all: &'a AtomicUsize,
    ahead: usize,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        ALL_WAITING.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug)]
struct Bucket {
    rate: RateLimit,
    tokens: f64,
    filled_at: Instant,
}

impl Bucket {
    fn full(rate: RateLimit, now: Instant) -> Self {
        Self {
            rate,
            tokens: f64::from(rate.burst),
            filled_at: now,
        }
    }

    fn take(&mut self, now: Instant) -> Result<(), Refused> {
        let passed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate.per_second).min(f64::from(self.rate.burst));
        self.filled_at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - self.tokens) / self.rate.per_second.max(f64::MIN_POSITIVE);
        let wait = Duration::try_from_secs_f64(wait.min(3600.0)).unwrap_or(RETRY_MIN);
        Err(Refused {
            retry_after: wait.max(RETRY_MIN),
        })
    }

    /// A call that was let in by rate did not run after all.
    fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(f64::from(self.rate.burst));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(places: u32, rate: Option<RateLimit>) -> Arc<Gate> {
        Gate::new(&CallLimits {
            concurrent_calls_max: Some(places),
            rate,
        })
    }

    async fn enter(gate: &Gate) -> Result<[Permit; 1], Refused> {
        Gate::enter_all([gate]).await
    }

    #[tokio::test]
    async fn concurrency_is_bounded_and_given_back() {
        let gate = gate(2, None);
        let first = enter(&gate).await.unwrap();
        let _second = enter(&gate).await.unwrap();
        let begun = Instant::now();
        assert_eq!(enter(&gate).await.unwrap_err().retry_after, RETRY_MIN);
        assert!(begun.elapsed() >= LOOK, "it waited for a place");
        drop(first);
        assert!(enter(&gate).await.is_ok());
    }

    #[tokio::test]
    async fn who_waits_gets_the_next_free_place() {
        let gate = gate(1, None);
        let running = enter(&gate).await.unwrap();
        let mut waiting = Box::pin(enter(&gate));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(running);
        let permit = waiting.await.unwrap();
        assert!(enter(&gate).await.is_err(), "the place is taken");
        drop(permit);
        assert!(enter(&gate).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_stays_while_the_line_moves_fast_enough() {
        // Each row: a place becomes free every so many milliseconds, how many stand in front, whether the last one is served.
        for (every, ahead, served) in [
            (5, 10, true),
            (5, 36, true),
            (10, 30, true),
            (20, 16, true),
            (20, 23, false),
            (60, 0, false),
        ] {
            let gate = gate(5, None);
            let held = Arc::new(Mutex::new(Vec::new()));
            let join = |gate: Arc<Gate>, held: Arc<Mutex<Vec<_>>>| async move {
                let begun = time::Instant::now();
                let entered = enter(&gate).await.map(|permit| held.lock().push(permit));
                (entered.is_ok(), begun.elapsed())
            };
            let mut line = Vec::new();
            for _ in 0..5 + ahead + 1 {
                line.push(tokio::spawn(join(Arc::clone(&gate), Arc::clone(&held))));
                tokio::task::yield_now().await;
            }
            let last = line.pop().unwrap();
            while !last.is_finished() {
                time::sleep(Duration::from_millis(every)).await;
                held.lock().pop();
            }
            let (entered, after) = last.await.unwrap();
            assert_eq!(entered, served, "{every} ms, {ahead} in front");
            let bound = if served { PATIENCE } else { LOOK };
            assert!(after <= bound + Duration::from_millis(2), "{after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_line_is_looked_at_for_as_long() {
        let (first, second) = (gate(1, None), gate(1, None));
        let held = [enter(&first).await.unwrap(), enter(&second).await.unwrap()];
        let freed = tokio::spawn(async move {
            for place in held {
                time::sleep(LOOK - Duration::from_millis(1)).await;
                drop(place);
            }
        });
        assert!(Gate::enter_all([&*first, &*second]).await.is_ok());
        freed.await.unwrap();
    }

    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let gate = gate(1, None);
        let _running = enter(&gate).await.unwrap();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut waiting: Vec<_> = (0..WAITING_PER_PLACE)
            .map(|_| Box::pin(enter(&gate)))
            .collect();
        for one in &mut waiting {
            assert!(one.as_mut().poll(&mut context).is_pending());
        }
        assert!(
            matches!(
                Box::pin(enter(&gate)).as_mut().poll(&mut context),
                std::task::Poll::Ready(Err(_))
            ),
            "one too many is refused at once"
        );
        waiting.pop();
        let mut next = Box::pin(enter(&gate));
        assert!(next.as_mut().poll(&mut context).is_pending());
    }

    #[tokio::test]
    async fn a_gate_without_places_keeps_nobody_waiting() {
        let gate = gate(0, None);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(
            Box::pin(enter(&gate))
                .as_mut()
                .poll(&mut context)
                .is_ready()
        );
    }

    #[tokio::test]
    async fn a_refused_rate_gives_its_concurrency_back_and_the_other_way_round() {
        let rate = RateLimit {
            per_second: 0.1,
            burst: 2,
        };
        let gate = gate(1, Some(rate));
        let running = enter(&gate).await.unwrap();
        let refused = enter(&gate).await.unwrap_err();
        assert_eq!(refused.retry_after, RETRY_MIN, "no place");
        drop(running);
        drop(enter(&gate).await.expect("its token was given back"));
        for _ in 0..3 {
            let refused = enter(&gate).await.unwrap_err();
            assert!(refused.retry_after > RETRY_MIN, "no token");
        }
    }

    #[tokio::test]
    async fn words_have_a_rate_of_their_own_and_take_no_place() {
        let rate = RateLimit {
            per_second: 0.001,
            burst: 2,
        };
        let (gate, other) = (gate(1, Some(rate)), gate(1, None));
        let running = enter(&gate).await.unwrap();
        for n in 0..2 * WORDS_PER_CALL {
            assert!(Gate::word_all([&*other, &*gate]).is_ok(), "word {n}");
        }
        let refused = Gate::word_all([&*other, &*gate]).unwrap_err();
        assert!(refused.retry_after > RETRY_MIN);
        assert_eq!(enter(&gate).await.unwrap_err().retry_after, RETRY_MIN);
        drop(running);
        assert!(enter(&gate).await.is_ok(), "no word took a call's token");
    }

    #[test]
    fn no_word_comes_through_a_closed_gate() {
        let rate = RateLimit {
            per_second: 0.001,
            burst: 1,
        };
        let (open, closed) = (gate(1, Some(rate)), gate(0, None));
        for _ in 0..=2 * WORDS_PER_CALL {
            let refused = Gate::word_all([&*open, &*closed]).unwrap_err();
            assert_eq!(refused.retry_after, RETRY_MIN, "not for its rate");
        }
        assert!(
            Gate::word_all([&*open]).is_ok(),
            "its words were given back"
        );
    }

    #[tokio::test]
    async fn a_call_that_a_later_gate_refuses_uses_no_rate_of_an_earlier_one() {
        let rate = RateLimit {
            per_second: 0.001,
            burst: 1,
        };
        let (own, crowded) = (gate(9, Some(rate)), gate(1, None));
        let running = enter(&crowded).await.unwrap();
        assert!(Gate::enter_all([&*own, &*crowded]).await.is_err());
        // One that goes away while it waits.
        let mut waiting = Box::pin(Gate::enter_all([&*own, &*crowded]));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(waiting);
        drop(running);
        assert!(Gate::enter_all([&*own, &*crowded]).await.is_ok());
        let refused = Gate::enter_all([&*own, &*crowded]).await.unwrap_err();
        assert!(refused.retry_after > RETRY_MIN, "the one that ran used it");
    }

    #[test]
    fn the_bucket_refills_evenly_and_never_over_its_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::full(
            RateLimit {
                per_second: 2.0,
                burst: 2,
            },
            start,
        );
        assert!(bucket.take(start).is_ok() && bucket.take(start).is_ok());
        assert!(bucket.take(start).is_err());
        assert!(bucket.take(start + Duration::from_millis(600)).is_ok());
        let later = start + Duration::from_secs(3600);
        assert!(bucket.take(later).is_ok() && bucket.take(later).is_ok());
        assert!(bucket.take(later).is_err());
    }
}
