//! Names of people beside what says whose they are, and what only looks like one.

#[path = "common/found.rs"]
mod found;

use dlp_scan::{Category, RuleSet};

/// The names that are found beside a number, as they are written.
fn names(text: &str) -> Vec<String> {
    let rules = RuleSet::builtin();
    found::found(text, |f| {
        f.category == Category::Pii && rules.rule(f.rule).id.contains("name")
    })
}

#[test]
fn a_name_beside_a_number_that_only_a_person_has_is_found() {
    for (text, name) in [
        // In a sentence, a row and a form.
        ("Jörg Brandt (SSN 512-44-9165) called", "Jörg Brandt"),
        (
            "Csaba Halmos, born March 3, 1979 in Tallahassee",
            "Csaba Halmos",
        ),
        ("| Veikko Rytkönen | 560-14-0905 |", "Veikko Rytkönen"),
        (
            "id;who;ssn\n4;Dong-hyun Park;512-44-9165\n",
            "Dong-hyun Park",
        ),
        (
            "Cliente Adaeze Maria da Silva, passport number 563892071",
            "Adaeze Maria da Silva",
        ),
        (
            "Name: Małgorzata Wrona\nBorn: 1954-01-05\n",
            "Małgorzata Wrona",
        ),
        (
            "Nom : Aurélien Chabrol\nNotes : none\nSSN: 512-44-9165\n",
            "Aurélien Chabrol",
        ),
        ("the SSN of Nguyễn Thị Hoa is 512-44-9165", "Nguyễn Thị Hoa"),
        // An address of mail.
        (
            "Author: Yuki Holloway <yuki.h@mailbox.org>",
            "Yuki Holloway",
        ),
        ("To: \"Zsolt Brandt\" <zb@mailbox.org>", "Zsolt Brandt"),
        ("Zsolt Brandt <mailto:zb@mailbox.org>", "Zsolt Brandt"),
        // Nothing of what stands beside the name.
        ("Yours Anna Brandt, SSN 512-44-9165", "Anna Brandt"),
        ("Martin Holloway's SSN 512-44-9165", "Martin Holloway"),
        // In the same object, whatever its members are called.
        (
            r#"{"citizen_no":"512-44-9165","fullName":"Tariq Holloway"}"#,
            "Tariq Holloway",
        ),
        (
            r#"{"cust_nm":"Haruto Brandt","ssn":"512-44-9165"}"#,
            "Haruto Brandt",
        ),
        (
            r#"{"ssn":"512-44-9165","Naam":"Joost de Graaf"}"#,
            "Joost de Graaf",
        ),
        (
            r#"[{"n":0,"person":"Ximena Brandt","mail":"xb@mailbox.org"}]"#,
            "Ximena Brandt",
        ),
    ] {
        assert!(
            names(text).contains(&name.to_owned()),
            "{text}: {:?}",
            names(text)
        );
    }
}

#[test]
fn what_stands_beside_such_a_number_and_is_no_name_is_left_alone() {
    for text in [
        "Social Security Number 512-44-9165 was sent",
        "The Quarterly Report of 2021, SSN 512-44-9165",
        "Visual Studio Code, SSN 512-44-9165",
        "Acme Holdings Ltd <office@acme.com>",
        "Support Team <support@mailbox.org>",
        "SSN of Santa Clara County is 512-44-9165",
        "Call Anna Now SSN 512-44-9165",
        r#"{"name":"Visual Studio","ssn":"512-44-9165"}"#,
        r#"{"name":"Patient Record","ssn":"512-44-9165"}"#,
        r#"{"owner":"Platform Team","ssn":"512-44-9165"}"#,
        // Too far away, or in another object.
        "Jörg Brandt wrote the text that you read here and it has been a while since he did so, and SSN 512-44-9165",
        r#"[{"name":"Jörg Brandt"},{"ssn":"512-44-9165"}]"#,
        // Nothing else says that it is somebody.
        "Jörg Brandt is the name of the hill",
    ] {
        assert_eq!(names(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn names_are_cut_nowhere_by_what_was_not_read() {
    for pad in 0..260 {
        let text = format!("{}ä Jörg Brandt (SSN 512-44-9165)", "é, ".repeat(pad));
        assert_eq!(names(&text), ["Jörg Brandt"], "{pad}");
        let form = format!("{}Name: Ola Wrona\nSSN: 512-44-9165", "é\n".repeat(pad));
        assert_eq!(names(&form), ["Ola Wrona"], "{pad}");
    }
}
