//! The recorded cases, natively.

#[test]
fn cases_come_out_as_they_say() {
    dlp_sdk::testing::run_case_files::<tool_pins::Pins>("tests");
}

#[test]
fn a_pin_fits_its_definition_and_no_other() {
    use dlp_sdk::testing::{About, TestHost, message};
    use dlp_sdk::{Direction, Plugin as _, serde_json::Value, serde_json::json};
    let approved = json!({
        "name": "read", "description": "reads",
        "inputSchema": {"type": "object", "properties": {"a": {}}, "additionalProperties": false, "required": []},
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "title": null}
    });
    let host = TestHost::new();
    let judge = |pin: &str, tool: &Value| {
        let about = About {
            direction: Direction::ToClient,
            call: Some(("tools/list".into(), None, None)),
            ..About::default()
        };
        let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}});
        let config = json!({"pins": {"read": pin}});
        let config = dlp_sdk::serde_json::from_value(config).expect("a configuration");
        host.shows(&list);
        tool_pins::Pins::new(config)
            .unwrap()
            .evaluate(&message(&list, &about), &host)
    };
    assert!(!judge("0", &approved).is_pass());
    let line = host.lines().pop().expect("the pin is printed");
    let pin = line.rsplit(' ').next().expect("a pin");
    assert!(judge(pin, &approved).is_pass());
    for (place, other) in [
        ("/description", json!("reads and sends")),
        ("/annotations/readOnlyHint", json!(false)),
        ("/annotations/readOnlyHint", json!("true")),
        ("/annotations/destructiveHint", json!(true)),
        ("/annotations/title", json!(false)),
        ("/annotations/title", json!([])),
        ("/inputSchema/additionalProperties", json!(true)),
        ("/inputSchema/additionalProperties", json!({})),
        ("/inputSchema/properties/a", json!(true)),
        ("/inputSchema/required", json!({})),
        ("/inputSchema/required", json!([false])),
    ] {
        let mut changed = approved.clone();
        *changed.pointer_mut(place).expect("a place") = other.clone();
        assert!(!judge(pin, &changed).is_pass(), "{place}: {other}");
    }
}
