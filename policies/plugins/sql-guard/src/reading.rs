//! Whether the server will read a text as it was read here: where comments and strings end decides
//! what is statement, and dialects do not agree about it.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::{DialectName, depth, regions};

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
    if depth::is_too_deep(tokens) {
        return Err("the SQL has too many operators in a row, or brackets in brackets".into());
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

pub(crate) fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

/// The tokens as the parser may have them: operators that only one server has are given to it as others of the same
/// shape, for it does not know them or panics where no operand follows. And an amount is one number.
pub(crate) fn tamed(dialect: DialectName, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let (operators, other): (&[&str], _) = match dialect {
        DialectName::Mssql => return with_money(tokens),
        DialectName::Mysql => (&["DIV", "MOD"], Token::Div),
        DialectName::Sqlite => (&["GLOB", "MATCH", "REGEXP"], Token::make_keyword("LIKE")),
        _ => return tokens,
    };
    let told = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let told: Vec<usize> = (0..tokens.len()).filter(told).collect();
    let at = |place: usize| told.get(place).map(|at| &tokens[*at].token);
    let is_operator = |place: usize| {
        let before = |n: usize| place.checked_sub(n).and_then(at);
        let is_word = matches!(at(place), Some(Token::Word(word)) if word.quote_style.is_none()
            && is_one_of(&word.value, operators));
        // There are functions by the same names. A guess that is wrong cannot be parsed.
        let is_function =
            at(place + 1) == Some(&Token::LParen) && begins_operand(before(1), before(2));
        is_word && !is_function && before(1) != Some(&Token::Period)
    };
    let places = (0..told.len()).filter(|place| is_operator(*place));
    let places: Vec<usize> = places.map(|place| told[place]).collect();
    let mut tokens = tokens;
    for place in places {
        tokens[place].token = other.clone();
    }
    tokens
}

/// Words that an operand follows, beside operators.
const BEFORE_OPERANDS: &[&str] = &[
    "ALL", "BY", "CASE", "DISTINCT", "ELSE", "FROM", "HAVING", "INTERVAL", "JOIN", "LIMIT",
    "OFFSET", "ON", "SELECT", "THEN", "WHEN", "WHERE",
];

/// Whether an operand begins behind these two, the nearer one first.
fn begins_operand(before: Option<&Token>, farther: Option<&Token>) -> bool {
    match before {
        Some(Token::Word(word)) if word.quote_style.is_some() => false,
        // `a NOT MATCH (b)`, or `WHERE NOT match(a, b)`.
        Some(Token::Word(word)) if is_one_of(&word.value, &["NOT"]) => {
            begins_operand(farther, None)
        }
        Some(Token::Word(word)) => {
            is_one_of(&word.value, BEFORE_OPERANDS) || is_one_of(&word.value, depth::OPERATORS)
        }
        Some(before) => depth::deepens(before) || matches!(before, Token::LParen | Token::Comma),
        None => true,
    }
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
