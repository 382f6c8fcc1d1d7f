//! The functions that a statement may call: those that compute, look at what is in the database, or say
//! what time it is, in the dialects that are read here. What is not named may do anything: reach files or
//! other servers, wait, run text as SQL, or write, as every function of somebody's own may.
//!
//! A name stands here only if none of the dialects has something else by it.

/// Whether `name`, in small letters, is one of them.
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN
        .iter()
        .any(|line| line.split_ascii_whitespace().any(|known| known == name))
}

/// Schemas whose functions are the server's own.
pub(crate) const SCHEMAS: &[&str] = &["pg_catalog"];

const KNOWN: &[&str] = &[
    // Aggregates, and functions over windows.
    "any_value approx_count_distinct array_agg avg bit_and bit_or bit_xor bool_and bool_or checksum_agg corr",
    "count count_big covar_pop covar_samp cume_dist dense_rank every first_value group_concat grouping",
    "grouping_id json_agg json_arrayagg json_group_array json_group_object json_object_agg json_objectagg",
    "jsonb_agg jsonb_group_array jsonb_group_object jsonb_object_agg lag last_value lead listagg max median min",
    "mode nth_value ntile percent_rank percentile_cont percentile_disc range_agg rank regr_avgx regr_avgy",
    "regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number std stddev stddev_pop",
    "stddev_samp stdev stdevp string_agg sum total var var_pop var_samp variance varp xmlagg",
    // Choices and casts.
    "cast choose coalesce convert decode greatest if ifnull iif isnull least nullif num_nonnulls num_nulls nvl",
    "nvl2 parse try_cast try_convert try_parse typeof pg_typeof",
    // Numbers.
    "abs acos acosh asin asinh atan atan2 atanh atn2 cbrt ceil ceiling conv cos cosh cot crc32 degrees div erf",
    "exp factorial floor gcd lcm ln log log10 log2 mod pi pow power radians rand random round sign sin sinh sqrt",
    "square tan tanh trunc truncate width_bucket bit_count isnumeric",
    // Texts and bytes.
    "ascii bin bit_length btrim char char_length character_length charindex chr concat concat_ws difference elt",
    "encode field find_in_set format from_base64 hex index initcap insert instr lcase left len length like likely",
    "locate lower lpad ltrim md5 mid nchar normalize oct octet_length ord overlay parse_ident patindex position",
    "printf quote quote_ident quote_literal quote_nullable quotename regexp regexp_count regexp_instr regexp_like",
    "regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat",
    "replace replicate reverse right rpad rtrim sha sha1 sha2 sha224 sha256 sha384 sha512 hashbytes soundex space",
    "split_part starts_with str strcmp string_escape string_split string_to_array string_to_table strpos stuff",
    "substr substring substring_index to_ascii to_base64 to_char to_hex to_number translate trim ucase unhex",
    "unicode unistr unlikely upper datalength similarity word_similarity levenshtein metaphone unaccent",
    // Days and times.
    "adddate addtime age clock_timestamp convert_tz curdate current_date current_time current_timestamp curtime",
    "date date_add date_bin date_bucket date_diff date_format date_part date_sub date_trunc dateadd datediff",
    "datediff_big datefromparts datename datepart datetime datetime2fromparts datetimefromparts day dayname",
    "dayofmonth dayofweek dayofyear eomonth extract from_days from_unixtime get_format getdate getutcdate hour",
    "isdate isfinite julianday justify_days justify_hours justify_interval last_day localtime localtimestamp",
    "make_date make_interval make_time make_timestamp make_timestamptz makedate maketime microsecond minute month",
    "monthname months_between add_months now period_add period_diff quarter sec_to_time second",
    "statement_timestamp str_to_date strftime subdate subtime switchoffset sysdate sysdatetime sysdatetimeoffset",
    "sysutcdatetime time time_format time_to_sec timediff timeofday timestamp timestampadd timestampdiff timezone",
    "to_date to_days to_seconds to_timestamp todatetimeoffset transaction_timestamp unix_timestamp unixepoch",
    "utc_date utc_time utc_timestamp week weekday weekofyear year yearweek timefromparts",
    // JSON, XML, arrays, ranges and rows.
    "isjson json json_array json_array_elements json_array_elements_text json_array_length json_build_array",
    "json_build_object json_contains json_contains_path json_depth json_each json_each_text json_error_position",
    "json_extract json_extract_path json_extract_path_text json_insert json_keys json_length json_merge_patch",
    "json_merge_preserve json_modify json_object json_object_keys json_overlaps json_patch json_path_exists",
    "json_populate_record json_populate_recordset json_pretty json_query json_quote json_remove json_replace",
    "json_scalar json_search json_serialize json_set json_strip_nulls json_to_record json_to_recordset json_tree",
    "json_type json_typeof json_unquote json_valid json_value json_exists openjson row_to_json to_json to_jsonb",
    "jsonb jsonb_array jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array",
    "jsonb_build_object jsonb_contains jsonb_each jsonb_each_text jsonb_exists jsonb_extract jsonb_extract_path",
    "jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys jsonb_patch jsonb_path_exists",
    "jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_populate_record",
    "jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_to_record jsonb_to_recordset",
    "jsonb_typeof array_to_json array array_append array_cat array_dims array_fill array_length array_lower",
    "array_ndims array_position array_positions array_prepend array_remove array_replace array_to_string",
    "array_upper cardinality trim_array unnest generate_series generate_subscripts row isempty lower_inc",
    "lower_inf upper_inc upper_inf range_merge daterange int4range int8range numrange tsrange tstzrange hstore",
    "akeys avals skeys svals xmlconcat xmlelement xmlforest xml_is_well_formed",
    // Searching in texts.
    "bm25 highlight match matchinfo offsets snippet numnode phraseto_tsquery plainto_tsquery querytree setweight",
    "strip to_tsquery to_tsvector ts_delete ts_filter ts_headline ts_rank ts_rank_cd tsvector_to_array",
    "websearch_to_tsquery contains freetext",
    // What the database says about itself and about who asks.
    "changes charset coercibility col_description col_length collation columnproperty connection_id",
    "current_catalog current_database current_query current_role current_schema current_schemas current_setting",
    "current_user currval database databasepropertyex db_id db_name format_type found_rows has_any_column_privilege",
    "has_column_privilege has_database_privilege has_schema_privilege has_table_privilege index_col",
    "indexproperty lastval last_insert_rowid obj_description object_definition object_id object_name",
    "object_schema_name objectproperty objectpropertyex original_login pg_backend_pid pg_column_size",
    "pg_database_size pg_encoding_to_char pg_function_is_visible pg_get_constraintdef pg_get_expr",
    "pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result pg_get_functiondef",
    "pg_get_indexdef pg_get_keywords pg_get_partkeydef pg_get_ruledef pg_get_serial_sequence pg_get_triggerdef",
    "pg_get_userbyid pg_get_viewdef pg_indexes_size pg_is_in_recovery pg_postmaster_start_time pg_relation_size",
    "pg_size_pretty pg_table_is_visible pg_table_size pg_tablespace_size pg_total_relation_size",
    "pg_type_is_visible pragma_foreign_key_list pragma_index_info pragma_index_list pragma_index_xinfo",
    "pragma_table_info pragma_table_list pragma_table_xinfo row_count schema schema_id schema_name scope_identity",
    "serverproperty session_user shobj_description sqlite_version stats_date suser_name suser_sname system_user",
    "to_regclass to_regnamespace to_regproc to_regprocedure to_regrole to_regtype total_changes type_id type_name",
    "user user_id user_name version",
    // Identifiers.
    "bin_to_uuid gen_random_uuid is_uuid newid uuid uuid_generate_v4 uuid_short uuid_to_bin uuidv4 uuidv7",
    // Addresses.
    "abbrev broadcast family host hostmask inet_aton inet_ntoa inet6_aton inet6_ntoa inet_merge",
    "inet_same_family is_ipv4 is_ipv6 masklen netmask network",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_further_is_not_known() {
        for name in [
            "benchmark",
            "connectby",
            "crosstab",
            "cursor_to_xml",
            "database_to_xml",
            "dblink",
            "dblink_connect",
            "dblink_exec",
            "dblink_send_query",
            "edit",
            "eval",
            "file",
            "fts3_tokenizer",
            "get_lock",
            "httpuritype",
            "lo_export",
            "lo_import",
            "load_extension",
            "load_file",
            "master_pos_wait",
            "nextval",
            "opendatasource",
            "openquery",
            "openrowset",
            "pg_advisory_lock",
            "pg_ls_dir",
            "pg_notify",
            "pg_read_file",
            "pg_sleep",
            "pg_stat_file",
            "pg_terminate_backend",
            "query_to_xml",
            "readfile",
            "remote",
            "request",
            "set_config",
            "setval",
            "sleep",
            "sys_exec",
            "ts_rewrite",
            "ts_stat",
            "url",
            "writefile",
            "xmltype",
            "xp_cmdshell",
            "xp_dirtree",
            "",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn names_are_written_once_and_in_small_letters() {
        let mut seen = std::collections::HashSet::new();
        for name in KNOWN.iter().flat_map(|line| line.split_ascii_whitespace()) {
            assert_eq!(name, name.to_lowercase());
            assert!(seen.insert(name), "{name}");
        }
        assert!(is_known("count") && is_known("jsonb_path_query"));
    }
}
