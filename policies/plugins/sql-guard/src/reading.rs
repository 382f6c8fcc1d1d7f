//! Whether the server will read a text as it was read here: where comments and strings end decides
//! what is statement, and dialects do not agree about it.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::{DialectName, regions};

/// Words that begin a statement in Microsoft SQL Server, where none needs a `;` before it: a parser that does not
/// know that takes them for the name of a column or a table. They are reserved there; names are written in brackets.
pub(crate) const MSSQL_STATEMENTS: &[&str] = &[
    "ALTER",
    "BACKUP",
    "BULK",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "CREATE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DENY",
    "DROP",
    "DUMP",
    "EXEC",
    "EXECUTE",
    "GOTO",
    "GRANT",
    "INSERT",
    "KILL",
    "LOAD",
    "MERGE",
    "OPEN",
    "PRINT",
    "RAISERROR",
    "READTEXT",
    "RECONFIGURE",
    "RESTORE",
    "REVERT",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SETUSER",
    "SHUTDOWN",
    "TRUNCATE",
    "UPDATE",
    "UPDATETEXT",
    "USE",
    "WAITFOR",
    "WRITETEXT",
];

/// Of those, the ones that are whole without another word that no name may have before it (`SELECT 1 DELETE FROM t`
/// gives a column a name, or empties a table), and that nobody names a column by.
const STATEMENTS: &[&str] = &[
    "DELETE",
    "EXEC",
    "EXECUTE",
    "RECONFIGURE",
    "SHUTDOWN",
    "WAITFOR",
];

/// How deep operators that follow each other may make what is parsed: each adds a level. What is deeper than the stack
/// is a trap and no answer, and after three of those the plugin is left alone for a while; 500 were too many for it.
const CHAIN_MAX: usize = 250;
/// So many queries in a row take the stack that one operator does, with room to spare.
const QUERIES_PER_OPERATOR: usize = 4;

/// Words that do as operators do.
const OPERATORS: &[&str] = &[
    "AND", "AT", "BETWEEN", "COLLATE", "DIV", "ESCAPE", "GLOB", "ILIKE", "IN", "IS", "ISNULL",
    "LIKE", "MATCH", "MEMBER", "MOD", "NOT", "NOTNULL", "OPERATOR", "OR", "OVERLAPS", "REGEXP",
    "RLIKE", "SIMILAR", "XOR",
];

/// Words between queries in a row.
const SETS: &[&str] = &["EXCEPT", "INTERSECT", "MINUS", "UNION"];

/// Words that begin another expression, and stand in none outside of brackets.
const CLAUSES: &[&str] = &["HAVING", "ON", "SELECT", "WHERE"];

/// Refuses what another server than the one that was thought of would read in another way.
pub(crate) fn check(
    dialect: DialectName,
    sql: &str,
    tokens: &[TokenWithSpan],
) -> Result<(), String> {
    // MySQL runs what stands in /*! ... */, which a parser takes for a comment.
    if sql.contains("/*!") || sql.contains("/*M!") {
        return Err("the SQL holds a comment that some servers run".into());
    }
    let statements = match dialect {
        DialectName::Mssql => MSSQL_STATEMENTS,
        DialectName::Generic => STATEMENTS,
        _ => &[],
    };
    if begins_statement(tokens, statements) {
        return Err("only statements that read are allowed".into());
    }
    if is_too_deep(tokens) {
        return Err("the SQL has too many operators in a row".into());
    }
    let unlike = sql.contains('\0')
        || !regions::agree(dialect, sql, tokens)
        || (dialect == DialectName::Generic && is_doubtful(tokens))
        || (!statements.is_empty() && has_money_with_point(tokens));
    if unlike {
        return Err(
            "servers read this SQL in different ways: set the dialect, or write it plainly".into(),
        );
    }
    Ok(())
}

/// Whether one of the words that begin a statement stands where it is no column of a table.
fn begins_statement(tokens: &[TokenWithSpan], statements: &[&str]) -> bool {
    let (mut behind_name, mut behind_point) = (false, false);
    for TokenWithSpan { token, .. } in tokens {
        let is_name = matches!(token, Token::Word(_));
        if matches!(token, Token::Word(word) if word.quote_style.is_none()
            && !behind_point
            && is_one_of(&word.value, statements))
        {
            return true;
        }
        // A number may end with a point: `$1.DELETE` is an amount and a statement.
        behind_point = behind_name && *token == Token::Period;
        behind_name = is_name;
    }
    false
}

/// Whether an amount ends with a point, which is a parameter with a field to the parser: what stands behind it is a
/// word of its own to Microsoft SQL Server (`$1.INTO t`).
fn has_money_with_point(tokens: &[TokenWithSpan]) -> bool {
    tokens.windows(2).any(|pair| {
        matches!(&pair[0].token, Token::Placeholder(name) if name.starts_with('$'))
            && pair[1].token == Token::Period
    })
}

/// Whether something in it is of another kind for some server, though it begins and ends where it does for all.
fn is_doubtful(tokens: &[TokenWithSpan]) -> bool {
    tokens.iter().any(|token| match &token.token {
        // The same to all.
        Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::NationalStringLiteral(_) => false,
        Token::DollarQuotedString(_) => true,
        // A comment to some, an operator to others.
        Token::Sharp => true,
        Token::Word(word) => word.quote_style.is_none() && word.value.contains('#'),
        token => regions::is_string(token),
    })
}

/// Whether the operators that follow each other, those around what is in brackets among them, are too many.
fn is_too_deep(tokens: &[TokenWithSpan]) -> bool {
    let mut around = Vec::new();
    let (mut here, mut outside, mut queries) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                around.push(here);
                outside += here;
                here = 0;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                here = around.pop().unwrap_or(here);
                outside = outside.saturating_sub(here);
                // An index is one more of them.
                here += usize::from(token.token != Token::RParen);
            }
            Token::Comma | Token::SemiColon => here = 0,
            Token::Word(word) if word.quote_style.is_none() && is_one_of(&word.value, SETS) => {
                queries += 1;
            }
            Token::Word(word) if word.quote_style.is_none() && is_one_of(&word.value, CLAUSES) => {
                here = 0;
            }
            token => here += usize::from(deepens(token)),
        }
        if outside + here + queries / QUERIES_PER_OPERATOR > CHAIN_MAX {
            return true;
        }
    }
    false
}

/// Whether a token may be an operator: what cannot is named.
fn deepens(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && is_one_of(&word.value, OPERATORS),
        Token::EOF
        | Token::Whitespace(_)
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
        | Token::HexStringLiteral(_) => false,
        _ => true,
    }
}

pub(crate) fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// The tokens as the parser may have them: where an operand fails that should follow one of these operators it does
/// not say so, it panics. Operators of the same shape stand in for them. And an amount is one number.
pub(crate) fn tamed(dialect: DialectName, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let (operators, other): (&[&str], _) = match dialect {
        DialectName::Mssql => return with_money(tokens),
        DialectName::Mysql => (&["DIV"], Token::Div),
        DialectName::Sqlite => (&["MATCH", "REGEXP"], Token::make_keyword("LIKE")),
        _ => return tokens,
    };
    let told = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let is_operator = |at: usize| match &tokens[at].token {
        Token::Word(word) if word.quote_style.is_none() && is_one_of(&word.value, operators) => {
            // A function has the same name.
            let before = tokens[..at].iter().rev().find(told);
            let called = tokens[at + 1..].iter().find(told);
            called.is_none_or(|next| next.token != Token::LParen)
                || before.is_some_and(|before| ends_operand(&before.token))
        }
        _ => false,
    };
    let places: Vec<usize> = (0..tokens.len()).filter(|at| is_operator(*at)).collect();
    let mut tokens = tokens;
    for at in places {
        tokens[at].token = other.clone();
    }
    tokens
}

/// Whether these are an amount of money to Microsoft SQL Server: `$5.00`.
pub(crate) fn is_money(whole: &Token, part: &Token) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match (whole, part) {
        (Token::Placeholder(whole), Token::Number(part, false)) => {
            whole.strip_prefix('$').is_some_and(digits)
                && part.strip_prefix('.').is_some_and(digits)
        }
        _ => false,
    }
}

fn with_money(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut with_money = Vec::<TokenWithSpan>::with_capacity(tokens.len());
    for token in tokens {
        match with_money.last_mut() {
            Some(whole) if is_money(&whole.token, &token.token) => whole.token = token.token,
            _ => with_money.push(token),
        }
    }
    with_money
}

fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.keyword == Keyword::NoKeyword,
        Token::RParen
        | Token::Number(..)
        | Token::Placeholder(_)
        | Token::SingleQuotedString(_)
        | Token::HexStringLiteral(_) => true,
        _ => false,
    }
}
