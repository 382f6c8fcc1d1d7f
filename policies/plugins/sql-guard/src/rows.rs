//! What a point calls. To Postgres `t.f` is a column of `t`, or `f(t)` where there is no such column.
//!
//! A row of a table is of a type of its own, and only functions that somebody has made for it take one. But what a
//! function in FROM gives may be a plain text or number, and then any function of one argument can be called on it:
//! `SELECT t.pg_read_file FROM unnest(ARRAY['/etc/passwd']) t`.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectNamePart, TableAlias, TableFactor, Visitor};

/// Fields of the rows that known functions give; no function of the server's own is called so.
const FIELDS: &[&str] = &["key", "ordinality", "value"];

/// Functions whose results are rows with columns and never plain values, and those that Postgres does not have.
const GIVE_ROWS: &[&str] = &[
    "json_each",
    "json_each_text",
    "json_populate_record",
    "json_populate_recordset",
    "json_to_record",
    "json_to_recordset",
    "json_tree",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_populate_record",
    "jsonb_populate_recordset",
    "jsonb_to_record",
    "jsonb_to_recordset",
    "openjson",
    "pg_get_keywords",
    "pragma_foreign_key_list",
    "pragma_index_info",
    "pragma_index_list",
    "pragma_index_xinfo",
    "pragma_table_info",
    "pragma_table_list",
    "pragma_table_xinfo",
    "string_split",
];

/// Functions whose one column is called as the table is. The others may have a name of their own for it, and then the
/// table's name is free to be a function's.
const NAMED_AS_TABLE: &[&str] = &[
    "generate_series",
    "generate_subscripts",
    "json_object_keys",
    "jsonb_object_keys",
    "jsonb_path_query",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];

/// The functions in FROM, whose rows may be plain values: by the name of the rows, the columns that every one by that name
/// has, for which one is meant is not known here. All names are in small letters: to take two for one only asks more.
#[derive(Default)]
pub(crate) struct Rows(HashMap<String, HashSet<String>>);

impl Rows {
    /// Whether `table.name` may be a call of `name`.
    pub(crate) fn may_call(&self, table: &str, name: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let (table, name) = (table.to_lowercase(), name.to_lowercase());
        let rows = self.0.get(&table);
        !FIELDS.contains(&name.as_str()) && rows.is_some_and(|columns| !columns.contains(&name))
    }

    pub(crate) fn is_field(name: &str) -> bool {
        crate::reading::is_one_of(name, FIELDS)
    }

    fn add(&mut self, function: &[Option<&Ident>], alias: Option<&TableAlias>) {
        let small = |name: &Ident| name.value.to_lowercase();
        let last = function.last().copied().flatten().map(small);
        // Another schema's may be another function.
        let known = last.as_deref().filter(|_| function.len() == 1);
        if known.is_some_and(|known| GIVE_ROWS.contains(&known)) {
            return;
        }
        let is_named_as_table = known.is_some_and(|known| NAMED_AS_TABLE.contains(&known));
        let name = alias.map_or_else(|| last.clone().unwrap_or_default(), |a| small(&a.name));
        let listed = alias.map_or(&[][..], |alias| &alias.columns);
        let mut columns: HashSet<String> =
            listed.iter().map(|column| small(&column.name)).collect();
        if columns.is_empty() && is_named_as_table {
            columns.insert(name.clone());
        }
        match self.0.entry(name) {
            Entry::Vacant(none) => drop(none.insert(columns)),
            Entry::Occupied(mut rows) => rows.get_mut().retain(|column| columns.contains(column)),
        }
    }
}

impl Visitor for Rows {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table {
                name,
                args: Some(_),
                alias,
                ..
            }
            | TableFactor::Function { name, alias, .. } => {
                let name: Vec<_> = name.0.iter().map(ObjectNamePart::as_ident).collect();
                self.add(&name, alias.as_ref());
            }
            TableFactor::UNNEST { alias, .. } => {
                self.add(&[Some(&Ident::new("unnest"))], alias.as_ref());
            }
            TableFactor::TableFunction { alias, .. } => self.add(&[], alias.as_ref()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
