//! How deep what is parsed may become. The parser bounds expressions within expressions and queries within queries, and
//! nothing else: operators that follow each other, joins in brackets and types of types go as deep as the text is long,
//! and what is deeper than the stack is a trap and no answer. After three of those the plugin is left alone for a while.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::DEPTH_MAX;
use crate::reading::is_one_of;

/// How deep operators that follow each other may make what is parsed: each adds a level. 500 were too many.
const CHAIN_MAX: usize = 250;
/// A query within another takes the stack of so many operators, with room to spare: nineteen with 245 of them were too many.
const OPERATORS_PER_QUERY: usize = 10;
/// Most queries in each other.
const NESTED_MAX: usize = 10;
/// So many queries in a row take the stack that one operator does, with room to spare.
const QUERIES_PER_OPERATOR: usize = 4;

/// Words that do as operators do.
pub(crate) const OPERATORS: &[&str] = &[
    "AND", "AT", "BETWEEN", "COLLATE", "DIV", "ESCAPE", "GLOB", "ILIKE", "IN", "IS", "ISNULL",
    "LIKE", "MATCH", "MEMBER", "MOD", "NOT", "NOTNULL", "OPERATOR", "OR", "OVERLAPS", "PIVOT",
    "REGEXP", "RLIKE", "SIMILAR", "UNPIVOT", "XOR",
];

/// Words between queries in a row, and what may stand between them and the next one.
const SETS: &[&str] = &["EXCEPT", "INTERSECT", "MINUS", "UNION"];
const ALL: &[&str] = &["ALL", "DISTINCT"];

/// Words that begin another expression where one has just ended. Where none has, they are names.
const CLAUSES: &[&str] = &["HAVING", "ON", "SELECT", "WHERE"];

/// Words that the parser knows and that are an operand, or the end of one.
const OPERANDS: &[&str] = &["END", "FALSE", "NULL", "TRUE"];

/// Words that begin a query. The parser tries brackets before one as those of a query and as those of a join, each as
/// often as it tries the ones around them.
const QUERIES: &[&str] = &["FROM", "SELECT", "TABLE", "VALUES", "WITH"];
/// Those of them that stand nowhere else.
const NESTED: &[&str] = &["SELECT", "TABLE", "VALUES", "WITH"];
/// How often a query in brackets may be read for that.
const READINGS_MAX: usize = 64;

/// Types that hold others between `<` and `>`.
const TYPES: &[&str] = &["ARRAY", "STRUCT"];

/// Whether the operators that follow each other, those around what is in brackets among them, are too many, or the
/// brackets themselves.
pub(crate) fn is_too_deep(tokens: &[TokenWithSpan]) -> bool {
    let mut levels = Levels {
        readings: 1,
        ..Levels::default()
    };
    let told = |token: &&Token| !matches!(token, Token::Whitespace(_));
    let mut tokens = tokens.iter().map(|token| &token.token).filter(told);
    tokens.any(|token| {
        levels.go_on(token);
        levels.are_too_many()
    })
}

/// An open bracket.
struct Around {
    /// The operators before it.
    here: usize,
    /// Whether it is that of `OPERATOR(+)`.
    is_operator: bool,
    /// How often what is in it is read for each time that it is.
    readings: usize,
    /// Whether a query is in it.
    is_query: bool,
}

/// What is open before a token.
#[derive(Default)]
struct Levels<'t> {
    around: Vec<Around>,
    outside: usize,
    here: usize,
    queries: usize,
    nested: usize,
    /// Brackets in a row, up to here.
    brackets: usize,
    readings: usize,
    types: usize,
    /// `INTERVAL INTERVAL` is one in the other, without a bracket.
    is_interval_twice: bool,
    before: Option<&'t Token>,
    /// Whether an operand has just ended.
    has_ended: bool,
}

impl<'t> Levels<'t> {
    fn are_too_many(&self) -> bool {
        let nested = self.nested * OPERATORS_PER_QUERY;
        self.outside + self.here + self.queries / QUERIES_PER_OPERATOR + nested > CHAIN_MAX
            || self.nested > NESTED_MAX
            || self.around.len() > DEPTH_MAX
            || self.types > DEPTH_MAX
            || self.readings > READINGS_MAX
            || self.is_interval_twice
    }

    fn go_on(&mut self, token: &'t Token) {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                let is_operator = self.is_behind(&["OPERATOR"]);
                self.around.push(Around {
                    here: self.here,
                    is_operator,
                    readings: 1,
                    is_query: false,
                });
                self.outside += self.here;
                (self.here, self.has_ended) = (0, false);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if let Some(around) = self.around.pop() {
                    self.here = around.here;
                    self.outside -= around.here;
                    self.readings /= around.readings;
                    self.nested -= usize::from(around.is_query);
                    self.has_ended = !around.is_operator;
                }
                // An index is one more of them.
                self.here += usize::from(*token != Token::RParen);
            }
            Token::Comma | Token::SemiColon => (self.here, self.has_ended) = (0, false),
            Token::Word(_) if self.before == Some(&Token::Period) => self.has_ended = true,
            Token::Word(word) if word.quote_style.is_some() => self.has_ended = true,
            Token::Word(word) => {
                let is_known = word.keyword != Keyword::NoKeyword;
                self.word(&word.value, is_known);
            }
            token => {
                let deepens = deepens(token);
                self.here += usize::from(deepens);
                self.types += usize::from(*token == Token::Lt && self.is_behind(TYPES));
                self.has_ended = !deepens && *token != Token::Period;
            }
        }
        self.brackets = match token {
            Token::LParen => self.brackets + 1,
            _ => 0,
        };
        self.before = Some(token);
    }

    fn word(&mut self, word: &str, is_known: bool) {
        let is = |words| is_one_of(word, words);
        let next_query = is(&["SELECT"]) && (self.is_behind(SETS) || self.is_behind(ALL));
        if is(CLAUSES) && (self.has_ended || next_query) {
            self.here = 0;
        }
        if let Some(around) = self.around.last_mut()
            && is(QUERIES)
        {
            let readings = self.brackets.max(1);
            around.readings *= readings;
            self.readings *= readings;
            self.nested += usize::from(is(NESTED) && !around.is_query);
            around.is_query |= is(NESTED);
        }
        self.queries += usize::from(is(SETS));
        self.here += usize::from(is(OPERATORS));
        self.is_interval_twice |= is(&["INTERVAL"]) && self.is_behind(&["INTERVAL"]);
        self.has_ended = !is(OPERATORS) && (!is_known || is(OPERANDS));
    }

    fn is_behind(&self, words: &[&str]) -> bool {
        matches!(self.before, Some(Token::Word(word)) if word.quote_style.is_none() && is_one_of(&word.value, words))
    }
}

/// Whether a token may be an operator: what cannot is named.
pub(crate) fn deepens(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Comma
            | Token::SemiColon
            | Token::LParen
            | Token::LBracket
            | Token::LBrace
            | Token::RParen
            | Token::RBracket
            | Token::RBrace
            | Token::Word(_)
            | Token::Period
            | Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::GenericDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn check(sql: &str) -> bool {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
        is_too_deep(&tokens.expect("it ends"))
    }

    #[test]
    fn what_goes_deep_without_end_is_too_deep() {
        for (before, again, times) in [
            ("SELECT 1", "+1", 251),
            ("SELECT 1", "+on", 251),
            ("SELECT 1", "+having", 251),
            ("SELECT 1", "+select", 251),
            ("SELECT 1", "+t.where", 251),
            ("SELECT 1", " OPERATOR(+) on", 251),
            ("SELECT 1", "+CASE where WHEN a THEN b END", 251),
            ("SELECT 1", "+NULL.on", 251),
            ("SELECT * FROM ", "(a JOIN ", 38),
            ("SELECT CAST(1 AS ", "Nullable(", 38),
            ("SELECT CAST(1 AS ", "STRUCT<a INT, b ", 38),
            ("SELECT CAST(1 AS ", "ARRAY<", 38),
            ("SELECT ", "{fn ", 38),
            ("SELECT * FROM t ", "PIVOT(a) ", 251),
            ("SELECT ", "INTERVAL ", 2),
            ("SELECT ", "INTERVAL/**/", 2),
            ("SELECT * FROM ", "(SELECT * FROM ", 11),
            ("SELECT ", "1 + 1 + 1 + 1 + 1 + (SELECT ", 18),
            ("SELECT * FROM ", "((SELECT * FROM ", 7),
            ("SELECT * FROM ", "((((TABLE ", 4),
            ("SELECT 1", " UNION ALL SELECT 1", 1_004),
        ] {
            assert!(check(&[before, &again.repeat(times)].concat()), "{again}");
            assert!(
                !check(&[before, &again.repeat(times / 2)].concat()),
                "{again}"
            );
        }
    }

    #[test]
    fn what_stands_side_by_side_is_not_deep() {
        for (before, again) in [
            ("SELECT 1", ", a.x + b.y * 2"),
            ("SELECT 1", " UNION SELECT a + b FROM t WHERE c = d"),
            (
                "SELECT * FROM t",
                " JOIN u ON u.a = t.year JOIN v ON (v.a = 1)",
            ),
            (
                "SELECT 1",
                ", (SELECT a FROM t WHERE b = CASE WHEN c = 1 THEN 2 END)",
            ),
            (
                "SELECT 1 FROM t WHERE a IN (1)",
                "; SELECT a FROM t WHERE b[1] = 1",
            ),
            ("SELECT 1", ", INTERVAL '1' DAY + ((SELECT 1))"),
        ] {
            assert!(!check(&[before, &again.repeat(200)].concat()), "{again}");
        }
    }
}
