//! The dialect that the parser is given: a server's own, within bounds.
//!
//! The parser tries a text in more than one way and goes back, and where what it tries holds what it tries again it
//! doubles with every level: sixteen CASTs around a mistake are a minute. So every expression that it begins is
//! counted, and there is an end to it.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{ColumnOption, Expr, GranteesType, Ident, ObjectNamePart, Statement};
use sqlparser::dialect::{
    Dialect, GenericDialect, MsSqlDialect, MySqlDialect, PostgreSqlDialect, Precedence,
    SQLiteDialect,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::DialectName;
use crate::reading::is_one_of;

/// Expressions that may be begun for each token, and for any text. Read once, there are fewer than tokens.
const TRIES_PER_TOKEN: usize = 2;
const TRIES: usize = 500;

/// Functions whose arguments have any expression for a name: `JSON_OBJECT(a: 1)`. To look for one the parser reads every
/// argument of every call twice, so it only does where one of these stands in the text.
const NAMING: &[&str] = &["JSON_OBJECT", "JSON_OBJECTAGG"];

/// The parser's own dialect for a server.
pub(crate) fn of_server(name: DialectName) -> &'static dyn Dialect {
    match name {
        DialectName::Generic => &GenericDialect {},
        DialectName::Mysql => &MySqlDialect {},
        DialectName::Mssql => &MsSqlDialect {},
        DialectName::Postgres => &PostgreSqlDialect {},
        DialectName::Sqlite => &SQLiteDialect {},
    }
}

/// A dialect that stops where reading a text once would long have ended.
#[derive(Debug)]
pub(crate) struct Bounded {
    name: DialectName,
    inner: &'static dyn Dialect,
    tries: Cell<usize>,
    names_are_expressions: bool,
}

impl Bounded {
    pub(crate) fn new(name: DialectName, tokens: &[TokenWithSpan]) -> Self {
        let inner = of_server(name);
        let names = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if is_one_of(&word.value, NAMING));
        Self {
            name,
            inner,
            tries: Cell::new(TRIES + tokens.len() * TRIES_PER_TOKEN),
            names_are_expressions: inner.supports_named_fn_args_with_expr_name()
                && tokens.iter().any(names),
        }
    }

    /// Whether it had to stop: the parser may have gone on with something else then.
    pub(crate) fn is_spent(&self) -> bool {
        self.tries.get() == 0
    }
}

/// What is asked of the server's dialect. A new version of the parser may ask more: what is not in this list is
/// answered as if it were not the dialect's own, and the test of everyday statements below would tell.
macro_rules! as_inner {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            self.inner.$name()
        })*
    };
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        self.inner.dialect()
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let left = self.tries.get().saturating_sub(1);
        self.tries.set(left);
        if left == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        self.inner.parse_prefix(parser)
    }

    /// None of its own: the ones there are panic where no operand follows. `reading::tamed` gives the parser operators
    /// of the same shape that do not.
    fn parse_infix(&self, _: &mut Parser, _: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        None
    }

    /// `GROUPING SETS`, which its dialect of Microsoft SQL Server does not have.
    fn supports_group_by_expr(&self) -> bool {
        self.name == DialectName::Mssql || self.inner.supports_group_by_expr()
    }

    /// `WITH ROLLUP`, which its dialect of MySQL does not have.
    fn supports_group_by_with_modifier(&self) -> bool {
        self.name == DialectName::Mysql || self.inner.supports_group_by_with_modifier()
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        self.names_are_expressions
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.inner.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.inner.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_delimited_identifier_start(ch)
    }

    fn is_nested_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_nested_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.inner.identifier_quote_style(identifier)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        self.inner.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        self.inner.get_next_precedence(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        self.inner.prec_value(prec)
    }

    fn prec_unknown(&self) -> u8 {
        self.inner.prec_unknown()
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        self.inner.parse_statement(parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        self.inner.parse_column_option(parser)
    }

    /// `interval` is a column where it begins no interval.
    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        kw != Keyword::INTERVAL && self.inner.is_reserved_for_identifier(kw)
    }

    fn get_reserved_keywords_for_select_item_operator(&self) -> &[Keyword] {
        self.inner.get_reserved_keywords_for_select_item_operator()
    }

    fn get_reserved_grantees_types(&self) -> &[GranteesType] {
        self.inner.get_reserved_grantees_types()
    }

    fn is_column_alias(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        self.inner.is_column_alias(kw, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        self.inner.is_select_item_alias(explicit, kw, parser)
    }

    fn is_table_factor(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        self.inner.is_table_factor(kw, parser)
    }

    fn is_table_alias(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        self.inner.is_table_alias(kw, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        self.inner.is_table_factor_alias(explicit, kw, parser)
    }

    fn is_identifier_generating_function_name(
        &self,
        ident: &Ident,
        name_parts: &[ObjectNamePart],
    ) -> bool {
        self.inner
            .is_identifier_generating_function_name(ident, name_parts)
    }

    as_inner! {
        supports_string_literal_backslash_escape
        ignores_wildcard_escapes
        supports_unicode_string_literal
        supports_filter_during_aggregation
        supports_window_clause_named_window_reference
        supports_within_after_array_aggregation
        supports_left_associative_joins_without_parens
        supports_outer_join_operator
        supports_cross_join_constraint
        supports_connect_by
        supports_execute_immediate
        supports_match_recognize
        supports_in_empty_list
        supports_start_transaction_modifier
        supports_end_transaction_modifier
        supports_named_fn_args_with_eq_operator
        supports_named_fn_args_with_colon_operator
        supports_named_fn_args_with_assignment_operator
        supports_named_fn_args_with_rarrow_operator
        supports_numeric_prefix
        supports_numeric_literal_underscores
        supports_window_function_null_treatment_arg
        supports_dictionary_syntax
        support_map_literal_syntax
        supports_lambda_functions
        supports_parenthesized_set_variables
        supports_comma_separated_set_assignments
        supports_select_wildcard_except
        convert_type_before_value
        supports_triple_quoted_string
        supports_trailing_commas
        supports_limit_comma
        supports_string_literal_concatenation
        supports_projection_trailing_commas
        supports_from_trailing_commas
        supports_column_definition_trailing_commas
        supports_object_name_double_dot_notation
        supports_struct_literal
        supports_empty_projections
        supports_select_expr_star
        supports_from_first_select
        supports_pipe_operator
        supports_user_host_grantee
        supports_match_against
        supports_select_wildcard_exclude
        supports_select_exclude
        supports_create_table_multi_schema_info_sources
        describe_requires_table_keyword
        allow_extract_custom
        allow_extract_single_quotes
        supports_dollar_placeholder
        supports_create_index_with_clause
        require_interval_qualifier
        supports_explain_with_utility_options
        supports_asc_desc_in_column_definition
        supports_factorial_operator
        supports_nested_comments
        supports_eq_alias_assignment
        supports_try_convert
        supports_bang_not_operator
        supports_listen_notify
        supports_load_data
        supports_load_extension
        supports_top_before_distinct
        supports_boolean_literals
        supports_show_like_before_in
        supports_comment_on
        supports_create_table_select
        supports_partiql
        supports_table_sample_before_alias
        supports_insert_set
        supports_insert_table_function
        supports_insert_format
        supports_set_stmt_without_operator
        supports_timestamp_versioning
        supports_string_escape_constant
        supports_table_hints
        requires_single_line_comment_whitespace
        supports_array_typedef_with_brackets
        supports_geometric_types
        supports_order_by_all
        supports_set_names
        supports_space_separated_column_options
        supports_alter_column_type_using
        supports_comma_separated_drop_column_list
        supports_notnull_operator
        supports_data_type_signed_suffix
        supports_interval_options
        supports_create_table_like_parenthesized
        supports_semantic_view_table_factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEPTH_MAX;
    use DialectName::{Generic, Mssql, Mysql, Postgres, Sqlite};
    use sqlparser::tokenizer::Tokenizer;

    const ALL: [DialectName; 5] = [Generic, Mssql, Mysql, Postgres, Sqlite];

    fn tokens(name: DialectName, sql: &str) -> Vec<TokenWithSpan> {
        let tokens = Tokenizer::new(of_server(name), sql).tokenize_with_location();
        crate::reading::tamed(name, tokens.expect("it ends"))
    }

    #[test]
    fn a_bounded_dialect_reads_as_the_dialect_does() {
        let texts = [
            include_str!("../tests/everyday/generic.sql"),
            include_str!("../tests/everyday/mssql.sql"),
            include_str!("../tests/everyday/mysql.sql"),
            include_str!("../tests/everyday/postgres.sql"),
            include_str!("../tests/everyday/sqlite.sql"),
        ];
        let mut same = 0;
        for name in ALL {
            for text in texts.iter().flat_map(|text| text.lines()) {
                // What is its own here, see above.
                if name == Mssql && text.contains("ROLLUP") {
                    continue;
                }
                let Ok(tokens) = Tokenizer::new(of_server(name), text).tokenize_with_location()
                else {
                    continue;
                };
                let tokens = crate::reading::tamed(name, tokens);
                let parsed = |dialect: &dyn Dialect| {
                    let parser = Parser::new(dialect).with_tokens_with_locations(tokens.clone());
                    let statements = { parser }.parse_statements();
                    statements.map(|statements| format!("{statements:?}"))
                };
                let bounded = Bounded::new(name, &tokens);
                let Ok(plain) = parsed(of_server(name)) else {
                    continue;
                };
                assert_eq!(parsed(&bounded), Ok(plain), "{bounded:?} {text}");
                assert!(!bounded.is_spent(), "{bounded:?} {text}");
                same += 1;
            }
        }
        assert!(same > 600, "{same}");
    }

    #[test]
    fn what_is_read_again_and_again_ends() {
        for name in ALL {
            for (before, behind) in [("CAST(", " AS INT)"), ("NOT(", ")")] {
                let sql = ["SELECT ", &before.repeat(16), "a b c", &behind.repeat(16)].concat();
                let tokens = tokens(name, &sql);
                let bounded = Bounded::new(name, &tokens);
                let parser = Parser::new(&bounded).with_recursion_limit(DEPTH_MAX);
                let parsed = parser.with_tokens_with_locations(tokens).parse_statements();
                assert!(parsed.is_err() && bounded.is_spent(), "{name:?} {before}");
            }
        }
    }

    #[test]
    fn calls_in_calls_are_read_once() {
        for name in ALL {
            let sql = [
                "SELECT ",
                &"replace(".repeat(16),
                "a",
                &", 'b', 'c')".repeat(16),
            ]
            .concat();
            let tokens = tokens(name, &sql);
            let bounded = Bounded::new(name, &tokens);
            let parser = Parser::new(&bounded).with_recursion_limit(DEPTH_MAX);
            let parsed = parser.with_tokens_with_locations(tokens).parse_statements();
            assert!(parsed.is_ok() && !bounded.is_spent(), "{name:?}");
        }
    }
}
