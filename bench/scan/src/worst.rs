//! Inputs that cost much: those known, and a search for more.
//!
//! The search builds texts by repeating a few pieces (keywords, context words, shapes of numbers, signs of encodings),
//! keeps the dearest, and varies them. What it ends with is then made four times as long: the cost of a byte may not
//! grow with the length.

use std::time::{Duration, Instant};

use anyhow::Context;
use dlp_scan::{RuleFacts, RuleSet};

use crate::engines::{Engine, scanner};
use crate::measure::cpu_time;
use crate::texts::{Dice, Message};

/// Dear inputs, by what makes them so: parts of the search's finds that are worth watching.
pub const KNOWN: &[(&str, &str)] = &[
    (
        "numbers under words for them",
        "passport number ssn tax id iban card national id 123456789 123-45-6789 ",
    ),
    ("spaced digits", "1 2 3 4 5 6 7 8 9 0 "),
    (
        "verbs of exfiltration",
        "send forward append attach post share include mention ",
    ),
    ("names without values", "token secret= api_key: password "),
    ("heads of columns in one line", "dob,ssn,mrn,"),
    ("percent signs", "%41%42"),
    (
        "base64",
        "QUFBQkJCQ0NDREREQUFBQkJCQ0NDREREQUFBQkJCQ0NDREREQUFBQkJCQ0NDRERE ",
    ),
    (
        "encodings side by side",
        "fd %73%6b%5f cGFzc3dvcmQ9SXF2bGRtOTgyK;&#97;",
    ),
    (
        "marks with nothing behind them",
        "\x1b!\n<~ab\nbegin 644 a\n",
    ),
    ("variables set side by side", "a='x';b + a + {a}{b}"),
    ("bold letters within a word", "a**b**"),
    ("titles with no name behind them", "Mr Mr 5 éé "),
    (
        "many rules at one place",
        "curl ignoruj\\u0041basic edrpou AA77 KKKK KKKK KKKK KKKK KK αγνόησε",
    ),
];

const SIGNS: [&str; 58] = [
    " ",
    "\n",
    "=",
    ": ",
    "\"",
    "'",
    "{\"a\":",
    "[",
    "]",
    "}",
    ",",
    ";",
    "|",
    "<",
    ">",
    "&#65;",
    "%41",
    "\\u0041",
    "\\x41",
    "QUFB",
    "4142",
    "1 ",
    "12-",
    "123456789 ",
    "123-45-6789 ",
    "4111 1111 1111 1111 ",
    "(415) 555-0132 ",
    "a@b.",
    "://",
    "a:b@",
    "10.0.0.1 ",
    "fe80::1 ",
    "00:11:22:",
    "eyJ",
    "-----BEGIN ",
    "aа",
    "\u{200b}",
    "\u{202e}",
    "ａ",
    "$1$",
    "a1 ",
    "e4m",
    "\" + \"",
    "=\n",
    "\x1b[1m",
    "\x1b!",
    "\u{8}",
    "<~ab",
    "~>",
    "b85decode(\"",
    "begin 644 a\n",
    "\nliteral 60\n",
    "0000000   g   h\n",
    "[char]103,",
    "\n1. ab",
    "{a}",
    "a + ",
    "b='x';",
];
const TRIED_BYTES: usize = 8 << 10;
const KEPT: usize = 24;
const PIECES_MAX: usize = 10;

struct Tried {
    pieces: Vec<usize>,
    nanos_per_byte: f64,
}

pub fn search(time: Duration, seed: u64) -> anyhow::Result<()> {
    let mut pool: Vec<String> = SIGNS.iter().map(|s| (*s).to_owned()).collect();
    for source in RuleSet::builtin_sources() {
        for rule in RuleFacts::of(source).context("the shipped rules")? {
            pool.extend(rule.keywords);
            pool.extend(rule.context.iter().map(|w| format!("{w} ")));
            pool.extend(
                rule.shapes
                    .iter()
                    .map(|s| s.replace('9', "7").replace('X', "K") + " "),
            );
        }
    }
    pool.sort();
    pool.dedup();
    let mut engine = scanner(
        "weir",
        RuleSet::builtin().with_engine(dlp_scan::Engine::Rust),
    );
    let mut dice = Dice::new(seed);
    let mut best: Vec<Tried> = Vec::new();
    let (mut tries, end) = (0_u64, Instant::now() + time);
    while Instant::now() < end {
        let pieces = match best.is_empty() || dice.below(4) == 0 {
            true => (0..1 + dice.below(PIECES_MAX))
                .map(|_| dice.below(pool.len()))
                .collect(),
            false => varied(&best[dice.below(best.len())].pieces, pool.len(), &mut dice),
        };
        let nanos_per_byte = cost(&mut engine, &text(&pool, &pieces, TRIED_BYTES), 2);
        tries += 1;
        if best.len() == KEPT && best[KEPT - 1].nanos_per_byte >= nanos_per_byte {
            continue;
        }
        let at = best.partition_point(|t| t.nanos_per_byte >= nanos_per_byte);
        best.insert(
            at,
            Tried {
                pieces,
                nanos_per_byte,
            },
        );
        best.truncate(KEPT);
    }
    println!("{tries} inputs tried\n");
    println!("| ns a byte at 8 KiB | at 32 KiB | growth | repeated |\n|---:|---:|---:|---|");
    let mut steepest: f64 = 0.0;
    for tried in &best {
        let small = cost(&mut engine, &text(&pool, &tried.pieces, TRIED_BYTES), 5);
        let large = cost(&mut engine, &text(&pool, &tried.pieces, 4 * TRIED_BYTES), 5);
        let growth = large / small;
        steepest = steepest.max(growth);
        let shown: String = tried.pieces.iter().map(|i| pool[*i].as_str()).collect();
        println!(
            "| {small:.0} | {large:.0} | {growth:.2} | `{}` |",
            shown.escape_debug()
        );
    }
    anyhow::ensure!(
        steepest < 2.0,
        "an input's cost grows faster than its length: {steepest:.1} times a byte at 4 times the length"
    );
    Ok(())
}

fn varied(pieces: &[usize], pool: usize, dice: &mut Dice) -> Vec<usize> {
    let mut pieces = pieces.to_vec();
    let at = dice.below(pieces.len());
    match dice.below(4) {
        0 if pieces.len() < PIECES_MAX => pieces.insert(at, dice.below(pool)),
        1 if pieces.len() > 1 => {
            pieces.remove(at);
        }
        2 => {
            let other = dice.below(pieces.len());
            pieces.swap(at, other);
        }
        _ => pieces[at] = dice.below(pool),
    }
    pieces
}

fn text(pool: &[String], pieces: &[usize], bytes: usize) -> Message {
    let piece: String = pieces.iter().map(|i| pool[*i].as_str()).collect();
    Message::of_text(&piece.repeat(bytes / piece.len() + 1))
}

/// Nanoseconds on the processor for a byte: the best of so many.
fn cost(engine: &mut Engine, message: &Message, times: usize) -> f64 {
    let once = |engine: &mut Engine| {
        let start = cpu_time();
        engine.run(message);
        (cpu_time() - start).as_nanos() as f64
    };
    let best = (0..times).map(|_| once(engine)).fold(f64::MAX, f64::min);
    best / message.leaves[0].text.len() as f64
}
