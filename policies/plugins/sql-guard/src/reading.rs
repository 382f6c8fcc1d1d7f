//! Whether the server will read a text as it was read here: where comments and strings end decides
//! what is statement, and dialects do not agree about it.

use sqlparser::tokenizer::{Token, Whitespace};

use crate::DialectName;

/// Words that are a statement by themselves in Microsoft SQL Server, where none needs a `;` before it:
/// a parser that does not know them takes them for the name of a column or a table.
const MSSQL_STATEMENTS: &[&str] = &[
    "CHECKPOINT",
    "COMMIT",
    "DBCC",
    "EXEC",
    "EXECUTE",
    "KILL",
    "RECONFIGURE",
    "REVERT",
    "ROLLBACK",
    "SHUTDOWN",
    "WAITFOR",
];

/// Of those, the ones that nobody names a column by.
const STATEMENTS: &[&str] = &["EXEC", "EXECUTE", "RECONFIGURE", "SHUTDOWN", "WAITFOR"];

/// Refuses what another server than the one that was thought of would read in another way.
pub(crate) fn check(dialect: DialectName, sql: &str, tokens: &[Token]) -> Result<(), String> {
    // MySQL runs what stands in /*! ... */, which a parser takes for a comment.
    if sql.contains("/*!") || sql.contains("/*M!") {
        return Err("the SQL holds a comment that some servers run".into());
    }
    let statements = match dialect {
        DialectName::Mssql => MSSQL_STATEMENTS,
        DialectName::Generic => STATEMENTS,
        _ => &[],
    };
    let is_statement = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => statements
            .iter()
            .any(|s| s.eq_ignore_ascii_case(&word.value)),
        _ => false,
    };
    if tokens.iter().any(is_statement) {
        return Err("only statements that read are allowed".into());
    }
    let unlike = match dialect {
        DialectName::Generic => {
            sql.contains("\\'")
                || sql.contains("\\\"")
                || sql.contains("\\`")
                || is_doubtful(tokens)
        }
        DialectName::Postgres => false,
        // A name in MySQL, a parameter in SQLite, nothing in the others.
        _ => tokens
            .iter()
            .any(|token| matches!(token, Token::DollarQuotedString(_))),
    };
    if unlike {
        return Err(
            "servers read this SQL in different ways: set the dialect, or write it plainly".into(),
        );
    }
    Ok(())
}

/// Whether something in it begins or ends elsewhere for some server.
fn is_doubtful(tokens: &[Token]) -> bool {
    let mut brackets = 0_usize;
    for token in tokens {
        let doubtful = match token {
            Token::LBracket => {
                brackets += 1;
                false
            }
            Token::RBracket => {
                brackets = brackets.saturating_sub(1);
                false
            }
            // `[x']` is a name to some and the beginning of a string to others.
            Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_) => brackets > 0,
            Token::DollarQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            // A comment to some, an operator to others.
            | Token::Sharp => true,
            Token::Whitespace(Whitespace::SingleLineComment { comment, prefix }) => {
                prefix != "--" || !comment.starts_with(char::is_whitespace) && !comment.is_empty()
            }
            // Some count them, some end at the first `*/`.
            Token::Whitespace(Whitespace::MultiLineComment(comment)) => comment.contains("/*"),
            Token::Word(word) if word.quote_style.is_some() => brackets > 0,
            Token::Word(word) => word.value.contains('#'),
            _ => false,
        };
        if doubtful {
            return true;
        }
    }
    false
}
