//! The recorded cases, natively.

#[test]
fn cases_come_out_as_they_say() {
    dlp_sdk::testing::run_case_files::<call_budget::Budget>("tests");
}
