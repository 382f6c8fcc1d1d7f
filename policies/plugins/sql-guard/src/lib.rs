//! SQL in arguments, read by a real parser: statements that write, that call what is not known to only
//! read, or that no parser understands, do not reach the server.

mod depth;
mod dialects;
mod functions;
mod reading;
mod regions;
mod rows;

use std::ops::ControlFlow;

use dlp_sdk::{Host, JsonSchema, Message, Plugin, Verdict, serde::Deserialize};
use sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart,
    PipeOperator, Query, SetExpr, Statement, TableFactor, Visit, Visitor,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Tokenizer;

use dialects::Bounded;
use rows::Rows;

/// Longest statement text that is parsed.
const SQL_BYTES_MAX: usize = 64 << 10;
/// How deep expressions may be nested. Thirty calls in each other, or nineteen queries, are deeper than the stack.
const DEPTH_MAX: usize = 20;

/// The plugin.
pub struct SqlGuard(Config);

/// Where SQL stands, and what it may do.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Paths of the arguments that hold SQL.
    #[serde(default = "paths_default")]
    pub paths: Vec<String>,
    /// Whose SQL it is. Default generic.
    #[serde(default)]
    pub dialect: DialectName,
    /// Statements in one text. Default 1.
    #[serde(default = "one")]
    pub statements_max: usize,
    /// Functions that may be called beside those that are known to only compute and read: your own, in
    /// small letters, with their schema if they are called by it. `reports.*` means all that begin so.
    /// To Postgres `(address).city` may be a call of `city`, and `r.city` too if `r` is a function of your own in FROM:
    /// fields of rows that are asked for so belong here too. Columns that are listed (`r(city)`) do not.
    #[serde(default)]
    pub functions_allowed: Vec<String>,
    /// Functions that may not be called though they are known, in small letters.
    #[serde(default)]
    pub functions_denied: Vec<String>,
}

/// A dialect of SQL.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(crate = "dlp_sdk::serde", rename_all = "lowercase")]
#[schemars(crate = "dlp_sdk::schemars")]
pub enum DialectName {
    /// What most understand, and what all of them read alike: set the real one where you know it.
    #[default]
    Generic,
    /// MySQL and MariaDB.
    Mysql,
    /// Microsoft SQL Server.
    Mssql,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// Tables that reach files by themselves, without being called.
const TABLES_DENIED: &[&str] = &["fsdir", "zipfile"];

/// Hints of Microsoft SQL Server that lock what is read against others.
const LOCKING_HINTS: &[&str] = &["TABLOCKX", "UPDLOCK", "XLOCK"];
/// And those that may stand behind a table in brackets alone.
const HINTS: &[&str] = &[
    "FORCESCAN",
    "FORCESEEK",
    "HOLDLOCK",
    "NOEXPAND",
    "NOLOCK",
    "NOWAIT",
    "PAGLOCK",
    "READCOMMITTED",
    "READCOMMITTEDLOCK",
    "READPAST",
    "READUNCOMMITTED",
    "REPEATABLEREAD",
    "ROWLOCK",
    "SERIALIZABLE",
    "SNAPSHOT",
    "TABLOCK",
];

fn paths_default() -> Vec<String> {
    ["sql", "query", "statement"]
        .map(|name| format!("$.params.arguments.{name}"))
        .into()
}

fn one() -> usize {
    1
}

impl Plugin for SqlGuard {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.paths.is_empty() || config.paths.iter().any(|path| !path.starts_with("$.")) {
            return Err("paths: name at least one, each beginning with `$.`".into());
        }
        if config.statements_max == 0 {
            return Err("statements_max: at least 1".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, _: &dyn Host) -> Verdict {
        if !message.to_server() {
            return Verdict::pass();
        }
        if message.twins_of(&self.0.paths).next().is_some() {
            return Verdict::block(
                "an argument's name differs from one that holds SQL by case only",
            );
        }
        for path in &self.0.paths {
            for leaf in message.under(path) {
                if let Err(why) = self.check(leaf.text) {
                    return Verdict::block(why);
                }
            }
        }
        Verdict::pass()
    }
}

impl SqlGuard {
    fn check(&self, sql: &str) -> Result<(), String> {
        if sql.len() > SQL_BYTES_MAX {
            return Err(format!("the SQL is longer than {SQL_BYTES_MAX} bytes"));
        }
        let sql = &*regions::without_bare_dashes(self.0.dialect, sql);
        let tokens = Tokenizer::new(dialects::of_server(self.0.dialect), sql)
            .tokenize_with_location()
            .map_err(unread)?;
        reading::check(self.0.dialect, sql, &tokens)?;
        let tokens = reading::tamed(self.0.dialect, tokens);
        let dialect = Bounded::new(self.0.dialect, &tokens);
        let statements = Parser::new(&dialect)
            .with_recursion_limit(DEPTH_MAX)
            .with_tokens_with_locations(tokens)
            .parse_statements();
        if dialect.is_spent() {
            return Err("the SQL can be read in too many ways".into());
        }
        let statements = statements.map_err(unread)?;
        if statements.len() > self.0.statements_max {
            return Err(format!(
                "there are {} statements; at most {}",
                statements.len(),
                self.0.statements_max
            ));
        }
        let mut rows = Rows::default();
        let _ = statements.visit(&mut rows);
        let mut only_reads = OnlyReads(&self.0, rows);
        match statements.visit(&mut only_reads) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(why) => Err(why.into()),
        }
    }
}

fn unread(_: impl std::error::Error) -> String {
    "the SQL cannot be parsed".into()
}

/// Goes through everything that was parsed, to any depth, and ends at the first thing that does more than
/// read.
struct OnlyReads<'a>(&'a Config, Rows);

type Step = ControlFlow<&'static str>;

const WRITES: &str = "only statements that read are allowed";
const LOCKS: &str = "the SQL locks rows";
const CALLS: &str = "the SQL calls a function that is not allowed";
const REACHES: &str = "the SQL reads from something that is no table of this database";

impl Visitor for OnlyReads<'_> {
    type Break = &'static str;

    fn pre_visit_statement(&mut self, statement: &Statement) -> Step {
        match statement {
            Statement::Query(_) => ControlFlow::Continue(()),
            // A procedure's name to this server, and behind it another statement.
            _ if self.0.dialect == DialectName::Mssql => ControlFlow::Break(WRITES),
            Statement::ShowVariable { variable }
                if self.0.dialect == DialectName::Generic
                    && variable
                        .iter()
                        .any(|word| reading::is_one_of(&word.value, reading::MSSQL_STATEMENTS)) =>
            {
                ControlFlow::Break(WRITES)
            }
            // EXPLAIN ANALYZE runs what it explains; that is looked at all the same.
            Statement::Explain { .. }
            | Statement::ExplainTable { .. }
            | Statement::ShowColumns { .. }
            | Statement::ShowTables { .. }
            | Statement::ShowDatabases { .. }
            | Statement::ShowSchemas { .. }
            | Statement::ShowVariable { .. } => ControlFlow::Continue(()),
            // To others `SHOW` may be a procedure, and a statement behind it.
            Statement::ShowCreate { .. }
            | Statement::ShowVariables { .. }
            | Statement::ShowStatus { .. }
            | Statement::ShowCollation { .. }
                if self.0.dialect == DialectName::Mysql =>
            {
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(WRITES),
        }
    }

    /// Every query, also those in WITH, in FROM and in expressions.
    fn pre_visit_query(&mut self, query: &Query) -> Step {
        if !query.locks.is_empty() {
            return ControlFlow::Break(LOCKS);
        }
        if query.settings.is_some() {
            return ControlFlow::Break("the SQL changes settings");
        }
        for pipe in &query.pipe_operators {
            if let PipeOperator::Call { function, .. } = pipe {
                self.call(&function.name)?;
            }
        }
        body(&query.body)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Step {
        match table {
            TableFactor::Table {
                name,
                args,
                with_hints,
                ..
            } => {
                if with_hints.iter().any(|hint| is_word(hint, LOCKING_HINTS)) {
                    return ControlFlow::Break(LOCKS);
                }
                match args {
                    Some(args) if args.settings.is_some() => ControlFlow::Break(CALLS),
                    Some(args) => self.call_in_from(name, &args.args),
                    None => ControlFlow::Continue(()),
                }
            }
            TableFactor::Function { name, args, .. } => self.call_in_from(name, args),
            _ => ControlFlow::Continue(()),
        }
    }

    /// A table by its name.
    fn pre_visit_relation(&mut self, name: &ObjectName) -> Step {
        // A table behind three names is one of another server.
        let mut reaches = name.0.len() > 3;
        for part in &name.0 {
            reaches |= match part {
                // Some take a file's name or an address for a table.
                ObjectNamePart::Identifier(part) => {
                    part.quote_style == Some('\'') || part.value.contains(['/', '\\'])
                }
                ObjectNamePart::Function(_) => true,
            };
        }
        let last = name.0.last().and_then(ObjectNamePart::as_ident);
        if reaches || last.is_some_and(|last| is_denied(&last.value)) {
            return ControlFlow::Break(REACHES);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Step {
        match expr {
            Expr::Function(function) => self.call(&function.name),
            Expr::CompoundIdentifier(names) => match &names[..] {
                [.., table, name] => self.column(table, name),
                _ => ControlFlow::Continue(()),
            },
            Expr::CompoundFieldAccess { root, access_chain } => self.fields(root, access_chain),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl OnlyReads<'_> {
    /// A call in FROM, unless it is a table with hints in the old way of writing them.
    fn call_in_from(&self, name: &ObjectName, args: &[FunctionArg]) -> Step {
        let words = |words: &[&str]| {
            args.iter().any(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => is_word(arg, words),
                _ => false,
            })
        };
        if matches!(self.0.dialect, DialectName::Mssql) && !args.is_empty() {
            if words(LOCKING_HINTS) {
                return ControlFlow::Break(LOCKS);
            }
            if args.iter().all(is_hint) {
                return ControlFlow::Continue(());
            }
        }
        self.call(name)
    }

    /// Whether a point may call what stands behind it.
    fn points_call(&self) -> bool {
        matches!(self.0.dialect, DialectName::Postgres | DialectName::Generic)
    }

    fn column(&self, table: &Ident, name: &Ident) -> Step {
        if self.points_call() && self.1.may_call(&table.value, &name.value) {
            return self.call(&ObjectName::from(vec![name.clone()]));
        }
        ControlFlow::Continue(())
    }

    /// What stands behind the points. To Postgres `(x).f` is a field of a row, or `f(x)`.
    fn fields(&self, root: &Expr, chain: &[AccessExpr]) -> Step {
        if !self.points_call() {
            return ControlFlow::Continue(());
        }
        let of_call = matches!(root, Expr::Nested(root) if matches!(**root, Expr::Function(_)));
        // `t.c[1]` begins with a column's name.
        let mut table = match root {
            Expr::Identifier(table) => Some(table),
            _ => None,
        };
        for access in chain {
            match (access, table) {
                (AccessExpr::Subscript(_), _) => table = None,
                (AccessExpr::Dot(Expr::Identifier(name)), Some(before)) => {
                    self.column(before, name)?;
                    table = Some(name);
                }
                (AccessExpr::Dot(Expr::Identifier(field)), None)
                    if of_call && Rows::is_field(&field.value) => {}
                (AccessExpr::Dot(Expr::Identifier(field)), None) => {
                    self.call(&ObjectName::from(vec![field.clone()]))?;
                }
                // Looked at as what it is.
                (AccessExpr::Dot(_), _) => table = None,
            }
        }
        ControlFlow::Continue(())
    }

    fn call(&self, name: &ObjectName) -> Step {
        let parts = name.0.iter().map(|part| match part {
            ObjectNamePart::Identifier(part) => Some(part.value.to_lowercase()),
            ObjectNamePart::Function(_) => None,
        });
        let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
            return ControlFlow::Break(CALLS);
        };
        let full = parts.join(".");
        let Some((last, schema)) = parts.split_last() else {
            return ControlFlow::Break(CALLS);
        };
        let is = |entry: &String| match entry.strip_suffix('*') {
            Some(beginning) => full.starts_with(beginning),
            None => *entry == full || entry == last,
        };
        let denied = self.0.functions_denied.iter().any(is);
        // By the name alone it would be another schema's too.
        let allowed = |entry: &String| match entry.strip_suffix('*') {
            Some(beginning) => full.starts_with(beginning),
            None => *entry == full,
        };
        let last_is_ascii = matches!(name.0.last(), Some(ObjectNamePart::Identifier(part)) if part.value.is_ascii());
        let own = match schema {
            [] => true,
            [schema] => functions::SCHEMAS.contains(&schema.as_str()),
            _ => false,
        };
        // No other letters that have these for their small ones.
        let known = own && last_is_ascii && functions::is_known(last);
        if denied || !(known || self.0.functions_allowed.iter().any(allowed)) {
            return ControlFlow::Break(CALLS);
        }
        ControlFlow::Continue(())
    }
}

fn is_denied(table: &str) -> bool {
    TABLES_DENIED
        .iter()
        .any(|denied| denied.eq_ignore_ascii_case(table))
}

fn is_hint(arg: &FunctionArg) -> bool {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => is_word(arg, HINTS),
        _ => false,
    }
}

fn is_word(expr: &Expr, words: &[&str]) -> bool {
    let Expr::Identifier(ident) = expr else {
        return false;
    };
    words
        .iter()
        .any(|word| word.eq_ignore_ascii_case(&ident.value))
}

/// What a query is made of; queries inside of it have their own turn.
fn body(body: &SetExpr) -> Step {
    let mut left = vec![body];
    while let Some(body) = left.pop() {
        match body {
            SetExpr::Select(select) if select.into.is_some() => {
                return ControlFlow::Break("the SQL selects INTO something");
            }
            SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Query(_) => {}
            SetExpr::Table(table) => {
                if is_denied(table.table_name.as_deref().unwrap_or_default()) {
                    return ControlFlow::Break(REACHES);
                }
            }
            SetExpr::SetOperation {
                left: one,
                right: other,
                ..
            } => left.extend([&**one, &**other]),
            _ => return ControlFlow::Break(WRITES),
        }
    }
    ControlFlow::Continue(())
}

dlp_sdk::export!(SqlGuard);
