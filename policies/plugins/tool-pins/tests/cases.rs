//! The recorded cases, natively.

#[test]
fn cases_come_out_as_they_say() {
    dlp_sdk::testing::run_case_files::<tool_pins::Pins>("tests");
}

#[test]
fn a_pin_fits_its_definition_and_no_other() {
    use dlp_sdk::testing::{About, TestHost, message};
    use dlp_sdk::{Direction, Plugin as _, serde_json::json};
    let list = |description: &str| {
        let tools = json!([{"name": "read", "description": description, "inputSchema": {"type": "object"}}]);
        let about = About {
            direction: Direction::ToClient,
            call: Some(("tools/list".into(), None, None)),
            ..About::default()
        };
        message(
            &json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}),
            &about,
        )
    };
    let host = TestHost::new();
    let config = |pin: &str| {
        dlp_sdk::serde_json::from_value(json!({"pins": {"read": pin}})).expect("a configuration")
    };
    tool_pins::Pins::new(config("0"))
        .unwrap()
        .evaluate(&list("reads"), &host);
    let line = host.lines().pop().expect("the pin is printed");
    let pin = line.rsplit(' ').next().expect("a pin");
    let pins = tool_pins::Pins::new(config(pin)).unwrap();
    assert!(pins.evaluate(&list("reads"), &host).is_pass());
    assert!(!pins.evaluate(&list("reads and sends"), &host).is_pass());
}
