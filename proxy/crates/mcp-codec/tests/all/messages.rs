//! The JSON-RPC envelope: what is a message, of what kind, and what is refused.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;
use mcp_codec::stream::{Event, MessageReader, StreamLimits};
use mcp_codec::{
    BatchRule, DecodeError, DecodeErrorKind as Bad, Edits, Id, Limits, Message, MessageKind,
    Payload, decode,
};

fn message(text: &str) -> Result<Message, DecodeError> {
    Message::decode(Bytes::copy_from_slice(text.as_bytes()), &Limits::default())
}

fn in_pieces(text: &str) -> Result<(), Bad> {
    let limits = StreamLimits::of(&Limits::default(), 1 << 30);
    let mut reader = MessageReader::new(limits);
    let mut nobody = |_: Event<'_>, _: Range<u64>| Ok(());
    let read = reader.push(text.as_bytes(), &mut nobody);
    let read = read.and_then(|()| reader.finish(&mut nobody).map(|_| ()));
    read.map_err(|error| error.kind)
}

#[test]
fn what_is_remembered_of_a_message_has_a_bound() {
    type Wrap<'a> = &'a dyn Fn(&str) -> String;
    let of =
        |len: usize, wrap: Wrap<'_>| message(&wrap(&"x".repeat(len))).map_err(|error| error.kind);
    let method = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{text}"}}"#);
    let asked = |text: &str| {
        let meta = format!(r#"{{"progressToken":"{text}"}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta}}}}}"#)
    };
    let told = |text: &str| {
        let params = format!(r#"{{"progressToken":"{text}","progress":1}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
    };
    let cases: [(usize, Bad, Wrap<'_>); 3] = [
        (1024, Bad::NameTooLong, &method),
        (256, Bad::TokenTooLong, &asked),
        (256, Bad::TokenTooLong, &told),
    ];
    for (max, bad, wrap) in cases {
        assert!(of(max, wrap).is_ok(), "{bad:?}");
        assert_eq!(of(max + 1, wrap).unwrap_err(), bad);
        assert_eq!(of(1 << 20, wrap).unwrap_err(), bad);
        assert!(in_pieces(&wrap(&"x".repeat(max))).is_ok(), "{bad:?}");
        assert_eq!(in_pieces(&wrap(&"x".repeat(max + 1))).unwrap_err(), bad);
    }
    // Counted as it is when it is read: six letters of an escape are one byte.
    let escaped = "\\u0078".repeat(256);
    assert!(message(&asked(&escaped)).is_ok());
    assert!(message(&asked(&format!("{escaped}x"))).is_err());
    // In a tool's own arguments it is a word like any other.
    let text = "x".repeat(2000);
    let arguments = format!(r#"{{"arguments":{{"progressToken":"{text}","method":"{text}"}}}}"#);
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{arguments}}}"#);
    assert!(message(&call).is_ok());
}

#[test]
fn kinds() {
    use MessageKind::*;
    let cases = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Request),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#,
            Request,
        ),
        (
            r#"{"method":"x","id":1,"jsonrpc":"2.0","extra":[1]}"#,
            Request,
        ),
        (
            r#"{"jsonrpc":"\u0032.0","method":"tools\/call","\u0069d":1}"#,
            Request,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            Notification,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Response),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":""}}"#,
            ErrorResponse,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x","data":[]}}"#,
            ErrorResponse,
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
            ErrorResponse,
        ),
    ];
    for (text, kind) in cases {
        let message = message(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(message.kind(), kind, "{text}");
        assert_eq!(
            message.method().is_some(),
            matches!(kind, Request | Notification),
            "{text}"
        );
        assert_eq!(message.result().is_some(), kind == Response, "{text}");
        assert_eq!(message.error().is_some(), kind == ErrorResponse, "{text}");
    }
    let call = message(r#"{"jsonrpc":"2.0","method":"tools\/call","params":{"name":"x"},"id":1}"#)
        .unwrap();
    assert_eq!(call.method(), Some("tools/call"));
    assert_eq!(
        call.doc()
            .str(call.doc().member(call.params().unwrap(), "name").unwrap()),
        Some("x")
    );
    assert_eq!(call.result(), None);
}

#[test]
fn ids() {
    let id = |json: &str| message(&format!(r#"{{"jsonrpc":"2.0","method":"x","id":{json}}}"#));
    let good = [
        ("0", Id::Number(0)),
        ("-1", Id::Number(-1)),
        ("9007199254740992", Id::Number(1 << 53)),
        ("-9007199254740992", Id::Number(-(1 << 53))),
        (r#""""#, Id::String("".into())),
        (r#""1""#, Id::String("1".into())),
        (r#""a\"\u00e9\n""#, Id::String("a\"é\n".into())),
    ];
    for (json, expected) in &good {
        assert_eq!(id(json).unwrap().id(), Some(expected), "{json}");
    }
    assert_eq!(
        good.iter().map(|(_, id)| id).collect::<HashSet<_>>().len(),
        good.len()
    );
    assert_eq!(Id::String("a\"é\n".into()).to_string(), r#""a\"é\n""#);
    assert_eq!(Id::Number(-5).to_json(), "-5");
    assert!(!format!("{:?}", Id::String("hunter2".into())).contains("hunter2"));

    let refused = [
        "1.0",
        "14.0",
        "1e0",
        "1E2",
        "-0",
        "true",
        "false",
        "{}",
        "[]",
        "[1]",
        "null",
        "9007199254740993",
        "-9007199254740993",
        "99999999999999999999999",
        "0.5",
    ];
    for json in refused {
        assert_eq!(id(json).unwrap_err().kind, Bad::BadId, "{json}");
    }
    let longest = "a".repeat(256);
    assert!(id(&format!("\"{longest}\"")).is_ok());
    assert_eq!(
        id(&format!("\"{longest}a\"")).unwrap_err().kind,
        Bad::IdTooLong
    );
    assert_eq!(
        id(r#""a\u0000""#).unwrap_err().kind,
        Bad::NulInProtocolString
    );
}

#[test]
fn refused_envelopes() {
    let error = r#"{"code":1,"message":"x"}"#;
    let cases = [
        ("1".into(), Bad::NotAnObject),
        ("\"x\"".into(), Bad::NotAnObject),
        ("null".into(), Bad::NotAnObject),
        (r#"{"id":1,"method":"x"}"#.into(), Bad::BadVersion),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#.into(),
            Bad::BadVersion,
        ),
        (
            r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#.into(),
            Bad::BadVersion,
        ),
        (
            r#"{"jsonrpc":"2.0 ","id":1,"method":"x"}"#.into(),
            Bad::BadVersion,
        ),
        (r#"{"jsonrpc":"2.0"}"#.into(), Bad::AmbiguousMessage),
        (r#"{"jsonrpc":"2.0","id":1}"#.into(), Bad::AmbiguousMessage),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#.into(),
            Bad::AmbiguousMessage,
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","error":{error}}}"#),
            Bad::AmbiguousMessage,
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"error":{error}}}"#),
            Bad::AmbiguousMessage,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#.into(),
            Bad::AmbiguousMessage,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":1}"#.into(),
            Bad::BadMethod,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null}"#.into(),
            Bad::BadMethod,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":""}"#.into(),
            Bad::BadMethod,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x\u0000"}"#.into(),
            Bad::NulInProtocolString,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#.into(),
            Bad::BadId,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#.into(),
            Bad::BadParams,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#.into(),
            Bad::BadParams,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"y"}"#.into(),
            Bad::BadParams,
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#.into(), Bad::MissingId),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#.into(),
            Bad::MissingId,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":[]}"#.into(),
            Bad::BadResult,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#.into(),
            Bad::BadResult,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{}}"#.into(),
            Bad::BadError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#.into(),
            Bad::BadError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"x"}}"#.into(),
            Bad::BadError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}"#.into(),
            Bad::BadError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1e9,"message":"x"}}"#.into(),
            Bad::BadError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}"#.into(),
            Bad::BadError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#.into(),
            Bad::BadError,
        ),
    ];
    for (text, kind) in cases {
        let text: String = text;
        let error = message(&text)
            .err()
            .unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.kind, kind, "{text}");
        assert_eq!(error.json_rpc_code(), -32600, "{text}");
    }
}

#[test]
fn case_twins_in_protocol_places() {
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let refused = [
        r#"{"jsonrpc":"2.0","id":1,"method":"x","Method":"y"}"#.to_string(),
        r#"{"jsonrpc":"2.0","id":1,"method":"x","PARAMS":{}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"x","param\u017f":{}}"#.into(),
        r#"{"jsonrpc":"2.0","Id":1,"method":"x"}"#.into(),
        r#"{"jsonRPC":"2.0","id":1,"method":"x"}"#.into(),
        call(r#"{"nAme":"x"}"#),
        call(r#"{"name":"x","argumentſ":{}}"#),
        call(r#"{"name":"x","ARGUMENT\u017f":{}}"#),
        call(r#"{"name":"x","_META":{}}"#),
        call(r#"{"name":"x","_meta":{"progressToKen":1}}"#),
        call(r#"{"name":"x","_meta":{"progressTo\u212aen":1}}"#),
        call(r#"{"name":"x","_meta":{"io.modelcontextprotocol/ProtocolVersion":"x"}}"#),
        call(r#"{"messages":[{"role":"user","content":{"type":"text","Text":"x"}}]}"#),
        call(r#"{"inputResponses":{"k":{"Action":"accept"}}}"#),
        result(r#"{"Content":[]}"#),
        result(r#"{"iserror":true}"#),
        result(r#"{"content":[{"type":"text","tExt":"x"}]}"#),
        result(r#"{"content":[{"type":"resource","resource":{"URI":"x"}}]}"#),
        result(r#"{"content":[{"type":"text","_meta":{"ProgressToken":1}}]}"#),
        result(r#"{"contents":[{"Blob":"x"}]}"#),
        result(r#"{"messages":[{"role":"user","content":[{"Type":"text"}]}]}"#),
        result(r#"{"tools":[{"name":"a","Description":"x"}]}"#),
        result(r#"{"tools":[{"name":"a","Name":"b"}]}"#),
        result(r#"{"inputRequests":{"k":{"method":"elicitation/create","Params":{}}}}"#),
        result(r#"{"inputRequests":{"k":{"method":"elicitation/create","params":{"URL":"x"}}}}"#),
        result(r#"{"task":{"taskid":"x"}}"#),
        result(r#"{"result":{"structuredcontent":{}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","Data":1}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","Code":1}}"#.into(),
    ];
    for text in refused {
        let error = message(&text)
            .err()
            .unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.kind, Bad::FoldedKey, "{text}");
        assert_eq!(text.as_bytes()[error.offset], b'"', "{text}");
        if !text.contains("\"Id\"") {
            assert_eq!(error.recovered_id, Some(Id::Number(1)), "{text}");
        }
    }
    let accepted = [
        call(r#"{"name":"x","arguments":{"Name":1,"METHOD":2,"Arguments":{"_META":1}}}"#),
        call(r#"{"name":"x","_meta":{"Vendor":1,"com.example/Data":2}}"#),
        result(r#"{"content":[],"structuredContent":{"Content":1,"IsError":2}}"#),
        result(r#"{"tools":[{"name":"a","inputSchema":{"Type":"object","properties":{"Name":{}}}}]}"#),
        result(r#"{"action":"accept","content":{"Name":"x","Text":"y"}}"#),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":{"Code":1}}}"#.into(),
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"Message":1}}}"#.into(),
    ];
    for text in accepted {
        assert!(message(&text).is_ok(), "{text}");
    }
}

#[test]
fn nul_in_what_picks_something() {
    let refused = [
        r#""method":"tools/call","params":{"name":"a\u0000b"}"#,
        r#""method":"resources/read","params":{"uri":"file:///a\u0000"}"#,
        r#""method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"a\u0000"}}"#,
        r#""method":"tasks/get","params":{"taskId":"\u0000"}"#,
        r#""result":{"tools":[{"name":"ok"},{"name":"a\u0000"}]}"#,
        r#""result":{"contents":[{"uri":"a\u0000"}]}"#,
        r#""result":{"content":[{"type":"resource","resource":{"uri":"a\u0000"}}]}"#,
        r#""result":{"nextCursor":"\u0000"}"#,
        r#""method":"ping","method\u0000":"tools/call""#,
        r#""method":"tools/call","params":{"name":"a","arguments":{"b\u0000":1}}"#,
    ];
    for rest in refused {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#);
        assert_eq!(
            message(&text).unwrap_err().kind,
            Bad::NulInProtocolString,
            "{text}"
        );
    }
    let accepted = [
        r#""method":"tools/call","params":{"name":"a","arguments":{"text":"a\u0000b"}}"#,
        r#""result":{"content":[{"type":"text","text":"a\u0000b"}]}"#,
    ];
    for rest in accepted {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#);
        let message = message(&text).unwrap();
        assert_eq!(message.doc().to_bytes(), text);
    }
}

#[test]
fn batches() {
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let read = |text: String, rule| decode(Bytes::from(text), &Limits::default(), rule);
    let list = |count: usize| format!("[{}]", vec![one; count].join(", "));

    assert!(matches!(
        read(one.into(), BatchRule::Refused),
        Ok(Payload::Single(_))
    ));
    assert!(matches!(
        read(one.into(), BatchRule::Allowed),
        Ok(Payload::Single(_))
    ));
    for count in [1, 2, 64] {
        let Ok(Payload::Batch(messages)) = read(list(count), BatchRule::Allowed) else {
            panic!("{count} refused")
        };
        assert_eq!(messages.len(), count);
        assert!(
            messages
                .iter()
                .all(|message| message.doc().to_bytes() == one)
        );
    }
    let cases = [
        (list(1), BatchRule::Refused, Bad::BatchRefused),
        ("[]".into(), BatchRule::Refused, Bad::BatchRefused),
        ("[]".into(), BatchRule::Allowed, Bad::EmptyBatch),
        (list(65), BatchRule::Allowed, Bad::BatchTooLarge),
        (
            format!("[{one},[{one}]]"),
            BatchRule::Allowed,
            Bad::BatchRefused,
        ),
        (format!("[{one},1]"), BatchRule::Allowed, Bad::NotAnObject),
        (format!("[{one},{{}}]"), BatchRule::Allowed, Bad::BadVersion),
    ];
    for (text, rule, expected) in cases {
        // A nested list is an item that is no object.
        let kind = read(text.clone(), rule).unwrap_err().kind;
        let expected = if expected == Bad::BatchRefused && rule == BatchRule::Allowed {
            Bad::NotAnObject
        } else {
            expected
        };
        assert_eq!(kind, expected, "{text:.80}");
    }
    let bad = format!(r#"[{one}, {{"jsonrpc":"2.0","id":9,"method":"x","Method":"y"}}]"#);
    let error = read(bad.clone(), BatchRule::Allowed).unwrap_err();
    assert_eq!(error.offset, bad.find("\"Method\"").unwrap());
    assert_eq!(error.recovered_id, Some(Id::Number(9)));
}

#[test]
fn the_id_of_a_refused_message_is_recovered_where_it_is_certain() {
    let cases = [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}"#,
            Some(Id::Number(7)),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"q","method":"x","params":{"a":"\ud800"}}"#,
            Some(Id::String("q".into())),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":[1,"#,
            Some(Id::Number(7)),
        ),
        // What many clients write last.
        (
            r#"{"method":"x","params":{"a":"\ud800"},"jsonrpc":"2.0","id":7}"#,
            Some(Id::Number(7)),
        ),
        (
            r#"{"method":"x","params":{"a":1,"a":2},"jsonrpc":"2.0","id":"q"}"#,
            Some(Id::String("q".into())),
        ),
        (
            r#"{"method":"x","jsonrpc":"2.0","id":9007199254740993}"#,
            Some(Id::Number(9_007_199_254_740_993)),
        ),
        (
            r#"{"method":"x","jsonrpc":"2.0","id":18446744073709551616}"#,
            None,
        ),
        (r#"{"method":"x","jsonrpc":"2.0","id":-0}"#, None),
        (r#"{"params":{"id":3,"a":{"id":4},"b":nope}}"#, None),
        (r#"{"id":7,"id":8}"#, None),
        (r#"{"id":7,"jsonrpc":"2.0","method":"x","id":7}"#, None),
        (r#"{"id""#, None),
        (r#"{"id":"#, None),
        (r#"{"id":[1"#, None),
        (r#"{"id":1.5,"jsonrpc":"2.0","method":"x"}"#, None),
        (r#"{"id":null,"jsonrpc":"2.0","method":"x"}"#, None),
        (r#"[{"id":1}"#, None),
        (r#""id"#, None),
        (r#"{"id":7}"#, Some(Id::Number(7))),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text).unwrap_err().recovered_id, expected, "{text}");
    }
}

#[test]
fn every_prefix_of_a_message_is_refused() {
    let text = r#"{"jsonrpc":"2.0","id":"\u00e9😀","method":"tools/call","params":{"name":"x\ud83d\ude00","arguments":
        {"a":[-1.5e+3,true,false,null,{"b":""},[]],"é":"\"\\"}}}"#;
    assert!(message(text).is_ok());
    for end in 0..text.len() {
        let cut = Bytes::copy_from_slice(&text.as_bytes()[..end]);
        let error = decode(cut, &Limits::default(), BatchRule::Allowed).unwrap_err();
        assert!(
            matches!(error.kind, Bad::Empty | Bad::UnexpectedEnd | Bad::NotUtf8),
            "{end}: {error}"
        );
        assert!(error.offset <= end);
        assert_eq!(error.json_rpc_code(), -32700);
    }
}

#[test]
fn an_edited_message_is_checked_again() {
    let message =
        message(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"secret"}, "note":1}"#)
            .unwrap();
    let leaf = |text: &str| {
        message
            .doc()
            .leaves()
            .find(|leaf| leaf.text == text)
            .unwrap()
            .id
    };
    let mut edits = Edits::new();
    edits.replace(leaf("secret"), 0..6, "***");
    let edited = message.edited(&edits).unwrap();
    assert_eq!(
        edited
            .doc()
            .str(edited.doc().get(&["params", "a"]).unwrap()),
        Some("***")
    );

    // A key that turns into a protocol key's twin, or a method that vanishes, must not get through.
    let mut edits = Edits::new();
    edits.replace(leaf("note"), 0..4, "RESULT");
    assert!(message.edited(&edits).is_err());
    let mut edits = Edits::new();
    edits.replace(leaf("x"), 0..1, "");
    assert!(message.edited(&edits).is_err());
}
