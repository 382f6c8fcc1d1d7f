//! SQL in arguments, read by a real parser: statements that write, or that no parser understands, do
//! not reach the server.

use dlp_sdk::{Host, JsonSchema, Message, Plugin, Verdict, serde::Deserialize};
use sqlparser::ast::{Query, SetExpr, Statement};
use sqlparser::dialect::{
    Dialect, GenericDialect, MsSqlDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect,
};
use sqlparser::parser::Parser;

/// Longest statement text that is parsed.
const SQL_BYTES_MAX: usize = 64 << 10;
/// How deep expressions may be nested.
const DEPTH_MAX: usize = 40;

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
    /// Functions that may not be called, in small letters, beside those that reach files, the network
    /// or the clock of the server.
    #[serde(default)]
    pub functions_denied: Vec<String>,
}

/// A dialect of SQL.
#[derive(Deserialize, JsonSchema, Clone, Copy, Default)]
#[serde(crate = "dlp_sdk::serde", rename_all = "lowercase")]
#[schemars(crate = "dlp_sdk::schemars")]
pub enum DialectName {
    /// What most understand.
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

/// Functions that do more than compute.
const FUNCTIONS_DENIED: &[&str] = &[
    "benchmark",
    "copy_from_program",
    "dblink",
    "dblink_exec",
    "load_extension",
    "load_file",
    "lo_export",
    "lo_import",
    "nextval",
    "pg_cancel_backend",
    "pg_ls_dir",
    "pg_read_binary_file",
    "pg_read_file",
    "pg_reload_conf",
    "pg_sleep",
    "pg_terminate_backend",
    "pg_write_file",
    "query_to_xml",
    "readfile",
    "set_config",
    "setval",
    "sleep",
    "sys_eval",
    "sys_exec",
    "writefile",
    "xp_cmdshell",
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
        let dialect: &dyn Dialect = match self.0.dialect {
            DialectName::Generic => &GenericDialect {},
            DialectName::Mysql => &MySqlDialect {},
            DialectName::Mssql => &MsSqlDialect {},
            DialectName::Postgres => &PostgreSqlDialect {},
            DialectName::Sqlite => &SQLiteDialect {},
        };
        // MySQL runs what stands in /*! ... */, which a parser takes for a comment.
        if sql.contains("/*!") || sql.contains("/*M!") {
            return Err("the SQL holds a comment that some servers run".into());
        }
        let parser = Parser::new(dialect).with_recursion_limit(DEPTH_MAX);
        let statements = parser
            .try_with_sql(sql)
            .and_then(|mut parser| parser.parse_statements())
            .map_err(|_| "the SQL cannot be parsed".to_owned())?;
        if statements.len() > self.0.statements_max {
            return Err(format!(
                "there are {} statements; at most {}",
                statements.len(),
                self.0.statements_max
            ));
        }
        statements
            .iter()
            .try_for_each(|statement| self.reads_only(statement))
    }

    fn reads_only(&self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Query(query) => query_reads_only(query)?,
            Statement::Explain {
                statement, analyze, ..
            } => {
                // EXPLAIN ANALYZE runs what it explains; that is looked at all the same.
                let _ = analyze;
                self.reads_only(statement)?;
            }
            Statement::ExplainTable { .. }
            | Statement::ShowColumns { .. }
            | Statement::ShowTables { .. }
            | Statement::ShowDatabases { .. }
            | Statement::ShowSchemas { .. }
            | Statement::ShowVariable { .. } => {}
            _ => return Err("only statements that read are allowed".into()),
        }
        self.functions(statement)
    }

    fn functions(&self, statement: &Statement) -> Result<(), String> {
        use sqlparser::ast::{Expr, visit_expressions};
        use std::ops::ControlFlow;
        let found = visit_expressions(statement, |expr| {
            let Expr::Function(function) = expr else {
                return ControlFlow::Continue(());
            };
            let full = function.name.to_string().to_lowercase();
            let full = full.replace(['"', '`', '[', ']'], "");
            let name = full.rsplit('.').next().unwrap_or_default();
            let denied = FUNCTIONS_DENIED.contains(&name)
                || self
                    .0
                    .functions_denied
                    .iter()
                    .any(|f| f == name || *f == full);
            if denied {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        match found {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err("the SQL calls a function that is not allowed".into()),
        }
    }
}

/// Whether nothing in a query writes: not its body, not what stands in WITH, no INTO, no lock.
fn query_reads_only(query: &Query) -> Result<(), String> {
    if !query.locks.is_empty() {
        return Err("the SQL locks rows".into());
    }
    if let Some(with) = &query.with {
        for table in &with.cte_tables {
            query_reads_only(&table.query)?;
        }
    }
    body_reads_only(&query.body)
}

fn body_reads_only(body: &SetExpr) -> Result<(), String> {
    match body {
        SetExpr::Select(select) if select.into.is_some() => {
            Err("the SQL selects INTO something".into())
        }
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
        SetExpr::Query(query) => query_reads_only(query),
        SetExpr::SetOperation { left, right, .. } => {
            body_reads_only(left)?;
            body_reads_only(right)
        }
        _ => Err("only statements that read are allowed".into()),
    }
}

dlp_sdk::export!(SqlGuard);
