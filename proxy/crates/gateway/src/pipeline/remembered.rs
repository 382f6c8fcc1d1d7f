//! Messages in which nothing was found are known again, and need no second scan.
//!
//! Agents ask for the same listing at the start of each session, poll the same status, read the same document. What a scan
//! finds follows from the rules, the budget and the bytes alone, so the same bytes are as clean the second time.
//!
//! Kept of a message is a hash by a key of this process (POLYVAL, RFC 8452, section 3): a polynomial over GF(2^128) at a secret
//! point, and of that a keyed BLAKE3. Two messages of `n` blocks of 16 bytes have the same for at most `n` of 2^128 points, whoever chose
//! them. The second hash hides the first: where a print stands in the table may be told by the clock, and of a polynomial alone the
//! point would follow from that. It covers everything that a scan depends on, and the tenant, who shall not learn by the clock what
//! another one's servers say. Nothing is kept of a message that something was found in, or whose scan ran over its budget. Most
//! messages never come again: a hash is made only of those that look like one before, by a few of their bytes. What was said before
//! on the same stream is no part of it: [`Said`](super::Said) looks at the seam each time.
//!
//! An id or a progress token is another one each time. Those that are short numbers are left out of the hash, and so of the
//! scan as well, in every message: what is found never depends on what came before. All others are scanned and hashed.

use std::cell::RefCell;
use std::sync::OnceLock;

use dlp_scan::{Budget, Outcome};
use mcp_codec::{Document, Node};
use polyval::Polyval;
use polyval::universal_hash::UniversalHash as _;
use smallvec::SmallVec;

use super::judge::Judge;
use super::scratch::random_key;
use super::stage::HeaderLeaf;

/// Prints beside each other, of which one gives way to a new one.
const WAYS: usize = 4;
/// The handles of a message, which are new each time, are neither scanned nor part of its print where they are numbers of so
/// few digits. Clients count from 0 in each session, so few come further; with one digit more a number could be a date, a
/// part of a card's number, or what a tenant lists as its own.
const HANDLE_DIGITS_MAX: usize = 4;
/// Where a client puts them: the id, and the token that it wants progress to be reported under.
const HANDLES: [&[&str]; 2] = [&["id"], &["params", "_meta", "progressToken"]];

static POINT: OnceLock<[u8; polyval::KEY_SIZE]> = OnceLock::new();
static KEY: OnceLock<[u8; 32]> = OnceLock::new();

/// Bits of the filter for each print that there is room for, and marks after which it is wiped.
const BITS: usize = 16;
const MARKS: usize = 4;

thread_local! {
    static REMEMBERED: RefCell<Remembered> = const { RefCell::new(Remembered::new()) };
}

/// What a message is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print(u128);

/// The prints of clean messages that one worker has seen, in a table that never grows.
#[derive(Debug)]
struct Remembered {
    sets: Vec<Set>,
    /// A bit for each look of a message that came, and how many are set.
    looks: Vec<u64>,
    marks: usize,
}

/// Prints that fall into the same place; 0 is none. The oldest that was not asked for since the hand came by last gives way
/// (CLOCK), so that a flood of new messages does not wash out what comes again and again.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    prints: [u128; WAYS],
    asked_for: [bool; WAYS],
    hand: u8,
}

/// The handles of a message that are left out.
pub(super) struct Handles(SmallVec<[Node; HANDLES.len()]>);

impl Handles {
    pub(super) fn of(doc: &Document) -> Self {
        let is_short = |node: &Node| {
            doc.number(*node).is_some_and(|digits| {
                digits.len() <= HANDLE_DIGITS_MAX && digits.bytes().all(|b| b.is_ascii_digit())
            })
        };
        let handles = HANDLES.iter().filter_map(|path| doc.get(path));
        let mut handles: SmallVec<_> = handles.filter(is_short).collect();
        handles.sort_unstable();
        Self(handles)
    }

    /// Whether this is the value of one.
    pub(super) fn have(&self, node: Node) -> bool {
        self.0.contains(&node)
    }
}

/// What `scan` finds in this message, or nothing where it is remembered as clean. The second says which it was.
///
/// `scan` must not look at `handles`: by them no two messages are told apart.
pub(super) fn unless_remembered(
    doc: &Document,
    handles: &Handles,
    headers: &[HeaderLeaf],
    judge: &Judge<'_>,
    budget: &Budget,
    scan: impl FnOnce() -> Outcome,
) -> (Outcome, bool) {
    let most = judge.limits.clean_messages_max;
    if most == 0 {
        return (scan(), false);
    }
    let pieces = Pieces::of(doc, handles);
    if !REMEMBERED.with_borrow_mut(|all| all.sized(most).seems_known(pieces.look())) {
        return (scan(), false);
    }
    let print = Print::of(&pieces, headers, judge, budget);
    if REMEMBERED.with_borrow_mut(|all| all.sized(most).knows(print)) {
        return (Outcome::default(), true);
    }
    let outcome = scan();
    if outcome.findings.is_empty() && outcome.over_budget.is_none() {
        REMEMBERED.with_borrow_mut(|all| all.sized(most).keep(print));
    }
    (outcome, false)
}

/// A message without its handles.
struct Pieces<'a>(SmallVec<[&'a [u8]; HANDLES.len() + 1]>);

impl<'a> Pieces<'a> {
    fn of(doc: &'a Document, handles: &Handles) -> Self {
        let (source, mut from) = (doc.source(), 0);
        let mut pieces = SmallVec::new();
        for node in &handles.0 {
            let span = doc.raw_span(*node);
            pieces.push(&source[from..span.start]);
            from = span.end;
        }
        pieces.push(&source[from..]);
        Self(pieces)
    }

    /// The same for messages that are the same, and seldom for others: the length of the longest piece and some of its bytes.
    fn look(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let longest = self.0.iter().max_by_key(|piece| piece.len());
        let longest = longest.copied().unwrap_or_default();
        let words = longest.as_chunks::<8>().0;
        let some = (0..8).filter_map(|part| words.get((words.len() * (2 * part + 1)) / 16));
        some.fold(longest.len() as u64, |look, word| {
            (look ^ u64::from_le_bytes(*word))
                .wrapping_mul(ODD)
                .rotate_left(29)
        })
    }
}

impl Print {
    fn of(pieces: &Pieces<'_>, headers: &[HeaderLeaf], judge: &Judge<'_>, budget: &Budget) -> Self {
        // The lengths of all parts come first, so that no two messages are written alike, and before them what is no 0, so that
        // those of another length are not, either.
        let mut numbers: SmallVec<[u64; 16]> = SmallVec::from_slice(&[
            1,
            judge.rules.serial(),
            budget.decoded_bytes_max.into(),
            budget.depth_max.into(),
            budget.candidates_max.into(),
            budget.findings_max.into(),
            judge.tenant.len() as u64,
            headers.len() as u64,
            pieces.0.len() as u64,
        ]);
        for header in headers {
            numbers.extend([header.name.len() as u64, header.value.len() as u64]);
        }
        numbers.extend(pieces.0.iter().map(|piece| piece.len() as u64));
        let bytes: SmallVec<[u8; 128]> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut hash = Polyval::new(POINT.get_or_init(random_key).into());
        hash.update_padded(&bytes);
        hash.update_padded(judge.tenant.as_bytes());
        for header in headers {
            hash.update_padded(header.name.as_bytes());
            hash.update_padded(header.value.as_bytes());
        }
        for piece in &pieces.0 {
            hash.update_padded(piece);
        }
        let sum: [u8; 16] = hash.finalize().into();
        let hidden = blake3::keyed_hash(KEY.get_or_init(random_key), &sum);
        let mut print = [0; 16];
        print.copy_from_slice(&hidden.as_bytes()[..16]);
        // 0 is the mark of a free place.
        Self(u128::from_le_bytes(print).max(1))
    }
}

impl Remembered {
    const fn new() -> Self {
        Self {
            sets: Vec::new(),
            looks: Vec::new(),
            marks: 0,
        }
    }

    /// The table with room for so many, empty if it had another size.
    fn sized(&mut self, most: usize) -> &mut Self {
        let sets = most.div_ceil(WAYS);
        if self.sets.len() != sets {
            *self = Self {
                sets: vec![Set::default(); sets],
                looks: vec![0; (most * BITS).div_ceil(64)],
                marks: 0,
            };
        }
        self
    }

    /// Did a message come lately that looks like this? There are false ones among them.
    fn seems_known(&mut self, look: u64) -> bool {
        let bit = look as usize % (self.looks.len() * 64);
        let (word, bit) = (&mut self.looks[bit / 64], 1 << (bit % 64));
        if *word & bit != 0 {
            return true;
        }
        *word |= bit;
        self.marks += 1;
        if self.marks > self.sets.len() * WAYS * MARKS {
            self.looks.fill(0);
            self.marks = 0;
        }
        false
    }

    fn set_of(&mut self, print: Print) -> &mut Set {
        let at = print.0 % self.sets.len() as u128;
        &mut self.sets[at as usize]
    }

    fn knows(&mut self, print: Print) -> bool {
        let set = self.set_of(print);
        let at = set.prints.iter().position(|known| *known == print.0);
        if let Some(at) = at {
            set.asked_for[at] = true;
        }
        at.is_some()
    }

    fn keep(&mut self, print: Print) {
        let set = self.set_of(print);
        // One round takes all marks away, so the second finds a place.
        for _ in 0..2 * WAYS {
            let at = usize::from(set.hand);
            set.hand = (set.hand + 1) % WAYS as u8;
            if !std::mem::take(&mut set.asked_for[at]) {
                set.prints[at] = print.0;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dlp_policy::{Evaluators, PolicyTable};
    use dlp_scan::{Category, Own, RuleSet, RuleSource, ValueList};
    use domain::{Era, Limits, Policy};
    use mcp_codec::Message;

    use super::*;
    use crate::pipeline::{Attribution, Decoded, Release, ToClient, Whose};

    /// What a message is judged by here.
    struct Bench {
        rules: Arc<RuleSet>,
        policy: PolicyTable,
        limits: Limits,
        tenant: &'static str,
    }

    impl Bench {
        fn new() -> Self {
            Self::with(RuleSet::builtin())
        }

        fn with(rules: &Arc<RuleSet>) -> Self {
            let (none, rules) = (Policy::default(), Arc::clone(rules));
            Self {
                policy: PolicyTable::compile(&none, &none, &rules).expect("a policy"),
                rules,
                limits: Limits::default(),
                tenant: "acme",
            }
        }

        fn limited(limits: Limits) -> Self {
            Self {
                limits,
                ..Self::new()
            }
        }

        /// What was found, and whether the message was remembered.
        fn look(&self, text: &str, headers: Vec<HeaderLeaf>) -> (Outcome, bool) {
            let judge = Judge {
                rules: &self.rules,
                tenant: self.tenant,
                policy: &self.policy,
                limits: &self.limits,
                attribution: Attribution::NoTool,
                schemas: None,
                era: Era::Handshake,
                evaluators: &Evaluators::default(),
                whose: Whose::default(),
                said: None,
            };
            let message =
                Message::decode(text.to_owned().into(), &crate::codec_limits(&self.limits));
            let decoded = Decoded::<ToClient>::new(message.expect("a message"), headers);
            let report = match crate::pipeline::run(decoded, &judge) {
                Release::Cleared(mut cleared) => cleared.take_report().expect("a report"),
                Release::Blocked(blocked) => blocked.report,
            };
            (report.outcome, report.times.remembered)
        }

        fn remembers(&self, text: &str) -> bool {
            self.look(text, Vec::new()).1
        }

        /// The first time shows that it comes at all, the second that it comes again.
        fn learns(&self, text: &str) {
            for _ in 0..2 {
                assert!(!self.remembers(text), "{text}");
            }
            assert!(self.remembers(text), "{text}");
        }
    }

    fn answer(id: &str, text: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    }

    fn call(token: &str, text: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"_meta":{{"progressToken":{token}}},"name":"{text}"}}}}"#
        )
    }

    #[test]
    fn the_same_again_needs_no_scan() {
        let bench = Bench::new();
        let said = answer("1", "ten ships lay in the harbour");
        bench.learns(&said);
        assert_eq!(
            bench.look(&said, Vec::new()),
            (Outcome::default(), true),
            "nothing was found in it"
        );
    }

    #[test]
    fn handles_are_new_each_time() {
        let bench = Bench::new();
        let text = "ten ships lay in the harbour";
        bench.learns(&answer("1", text));
        for id in ["2", "1234"] {
            assert!(bench.remembers(&answer(id, text)), "{id}");
        }
        bench.learns(&call("1", text));
        assert!(bench.remembers(&call("9876", text)));
        // What could be more than a handle is looked at.
        for id in ["12345", "\"1\"", "-1"] {
            assert!(!bench.remembers(&answer(id, text)), "{id}");
        }
        for token in ["\"1\"", "1e3", "1.5"] {
            assert!(!bench.remembers(&call(token, text)), "{token}");
        }
        let blind = Bench::limited(Limits {
            clean_messages_max: 0,
            ..Limits::default()
        });
        let card = call("4929420573595709", text);
        assert_eq!(
            bench.look(&card, Vec::new()).0,
            blind.look(&card, Vec::new()).0
        );
    }

    /// A message with a number in it, and numbers.
    type Form<'f> = (&'f dyn Fn(&str) -> String, &'f [&'f str]);

    /// Numbers that are something by what stands beside them, and by what a tenant lists.
    #[test]
    fn what_is_found_in_a_handle_does_not_depend_on_what_came_before() {
        let passport = |token: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{"passport number":"is below","_meta":{{"progressToken":{token}}}}}}}"#
            )
        };
        let birth = |id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","params":{{"note":"date of birth"}},"id":{id},"method":"tools/list"}}"#
            )
        };
        let own = |id: &str| answer(id, "ten ships");
        let forms: [Form<'_>; 3] = [
            (&passport, &["48213377", "4821", "12345"]),
            (&birth, &["19800514", "800514", "1980"]),
            (&own, &["77331", "773311", "7733"]),
        ];
        let (with, without) = (
            Bench::with(&own_values()),
            Bench {
                limits: Limits {
                    clean_messages_max: 0,
                    ..Limits::default()
                },
                ..Bench::with(&own_values())
            },
        );
        let mut found = 0;
        for (form, numbers) in forms {
            for id in 1..9 {
                with.remembers(&form(&id.to_string()));
            }
            assert!(with.remembers(&form("9")), "the others are known");
            for number in numbers {
                let said = form(number);
                let fresh = without.look(&said, Vec::new()).0;
                found += usize::from(!fresh.findings.is_empty());
                for _ in 0..3 {
                    assert_eq!(with.look(&said, Vec::new()).0, fresh, "{said}");
                }
                if number.len() <= HANDLE_DIGITS_MAX {
                    assert_eq!(fresh, Outcome::default(), "{said}");
                }
            }
        }
        assert!(found >= 3, "{found} of them are something");
    }

    fn own_values() -> Arc<RuleSet> {
        let lists = [ValueList {
            id: "acme-vault",
            title: "Numbers of the vault",
            category: Category::Secret,
            values: &["77331", "773311", "7733"],
        }];
        let own = Own {
            lists: &lists,
            ..Own::default()
        };
        Arc::new(RuleSet::builtin().with(&own).expect("values"))
    }

    #[test]
    fn anything_else_makes_another_message_of_it() {
        let text = "ten ships lay in the harbour";
        let said = answer("1", text);
        Bench::new().learns(&said);
        let known = || {
            let bench = Bench::new();
            assert!(bench.remembers(&said));
            bench
        };
        for other in [
            answer("1", "ten ships lay in the harbous"),
            answer("1", "ten ships lay in the harbour "),
            said.replace("\"id\":1,", "\"id\": 1,"),
            said.replace("\"text\":", "\"text2\":"),
        ] {
            // That another tenant's looked like it is enough to have it hashed.
            let mut bench = known();
            bench.tenant = "globex";
            bench.remembers(&other);
            bench.tenant = "acme";
            assert!(!bench.remembers(&other), "{other}");
            assert!(bench.remembers(&other), "{other}");
        }
        let mut bench = known();
        bench.tenant = "globex";
        assert!(!bench.remembers(&said), "another tenant");
        let mut bench = known();
        bench.limits.decode_depth_max += 1;
        assert!(!bench.remembers(&said), "another budget");
        let bench = known();
        let header = |name: &str, value: &str| HeaderLeaf {
            name: name.into(),
            value: value.into(),
        };
        assert!(!bench.look(&said, vec![header("a", "bc")]).1, "a header");
        assert!(bench.look(&said, vec![header("a", "bc")]).1);
        assert!(
            !bench.look(&said, vec![header("ab", "c")]).1,
            "another header"
        );
        assert!(!Bench::with(&own_rules()).remembers(&said), "other rules");
    }

    fn own_rules() -> Arc<RuleSet> {
        let yaml = "rules: [{id: acme-ships, title: Ships, category: pii, keywords: [ships], pattern: 'ships lay',
          examples: [ships lay]}]";
        let sources = [RuleSource {
            name: "acme.yml",
            yaml,
        }];
        let own = Own {
            sources: &sources,
            ..Own::default()
        };
        Arc::new(RuleSet::builtin().with(&own).expect("a rule"))
    }

    #[test]
    fn what_was_clean_to_other_rules_is_found() {
        let said = answer("1", "ten ships lay in the harbour");
        let (builtin, own) = (Bench::new(), Bench::with(&own_rules()));
        builtin.learns(&said);
        assert_eq!(own.look(&said, Vec::new()).0.findings.len(), 1);
    }

    #[test]
    fn what_something_was_found_in_is_never_remembered() {
        let bench = Bench::new();
        let said = answer("1", "write to ana@mailbox.org");
        let (first, _) = bench.look(&said, Vec::new());
        assert_eq!(first.findings.len(), 1);
        for _ in 0..3 {
            assert_eq!(bench.look(&said, Vec::new()), (first.clone(), false));
        }
    }

    #[test]
    fn what_was_not_looked_at_to_its_end_is_never_remembered() {
        let bench = Bench::limited(Limits {
            decoded_bytes_max: 1024,
            ..Limits::default()
        });
        let long = "aGFsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0".repeat(100);
        for _ in 0..3 {
            let (outcome, remembered) = bench.look(&answer("1", &long), Vec::new());
            assert!(outcome.over_budget.is_some() && !remembered);
        }
    }

    #[test]
    fn with_and_without_a_memory_the_same_is_found() {
        let with = Bench::limited(Limits {
            clean_messages_max: 8,
            ..Limits::default()
        });
        let without = Bench::limited(Limits {
            clean_messages_max: 0,
            ..Limits::default()
        });
        let words = ["ana@mailbox.org", "harbour", "ships", "219-09-3100", "ten"];
        let (mut seed, mut remembered) = (7_u64, 0);
        for _ in 0..3000 {
            let mut draw = |n: usize| {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (seed >> 33) as usize % n
            };
            let text: Vec<_> = (0..draw(3)).map(|_| words[draw(words.len())]).collect();
            let said = answer(&draw(1000).to_string(), &text.join(" "));
            let (found, known) = with.look(&said, Vec::new());
            assert_eq!(found, without.look(&said, Vec::new()).0, "{said}");
            remembered += usize::from(known);
        }
        assert!(remembered > 500, "{remembered}");
    }

    #[test]
    fn what_comes_once_is_not_hashed() {
        let mut all = Remembered::new();
        let looks =
            || (1..50_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        let known = looks()
            .filter(|look| all.sized(4096).seems_known(*look))
            .count();
        assert!(known < 50_000 / 6, "{known} seem to have come before");
        let last = looks().next_back().expect("some");
        assert!(all.seems_known(last));
        assert_eq!(all.looks.len() * 64, 4096 * BITS);
    }

    #[test]
    fn a_flood_of_new_messages_does_not_grow_it_nor_wash_out_what_is_asked_for() {
        let mut all = Remembered::new();
        let print = |n: u128| Print((n * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).max(1));
        let often = print(0);
        all.sized(64).keep(often);
        for n in 1..100_000 {
            all.sized(64).keep(print(n));
            if n % 16 == 0 {
                assert!(all.knows(often), "lost after {n}");
            }
        }
        assert_eq!(all.sets.len() * WAYS, 64);
        let known = (0..100_000).filter(|n| all.knows(print(*n))).count();
        assert_eq!(known, 64, "all places are taken, and by the last");
        assert!(!all.sized(128).knows(often), "another size begins anew");
    }
}
