//! Methods that are written almost like one of the protocol.
//!
//! What may be called is decided by the method's exact name. A server that trims it, or compares without case, would take
//! `Tools/Call` or `tools/call ` for a call that nobody decided about. So a name that is none of the protocol's, but becomes
//! one when blanks, control and invisible characters are taken out and its letters are folded, is refused. Any other unknown
//! one is a vendor's own.

/// The methods of all revisions and of the tasks extension, in lower case.
const KNOWN: [&str; 36] = [
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setlevel",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createmessage",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];
/// Those that are not written in lower case.
const MIXED: [&str; 2] = ["logging/setLevel", "sampling/createMessage"];
/// Drafts have further methods of tasks, and those are told by this.
const TASKS: &str = "tasks/";

/// Whether a method is almost one of the protocol, and is none.
pub(crate) fn has_known_twin(method: &str) -> bool {
    // Nearly all are written in lower case and plain.
    if KNOWN.binary_search(&method).is_ok() {
        return MIXED.iter().any(|known| known.eq_ignore_ascii_case(method));
    }
    if MIXED.contains(&method) {
        return false;
    }
    let folded: String = method.chars().filter_map(folded).collect();
    let is_task = |method: &str| method.starts_with(TASKS);
    KNOWN.binary_search(&folded.as_str()).is_ok() || is_task(&folded) && !is_task(method)
}

/// What a lenient reader may take a character for; nothing where he may not see it.
fn folded(c: char) -> Option<char> {
    if c.is_whitespace() || c.is_control() || is_invisible(c) {
        return None;
    }
    let c = match c {
        // Fullwidth forms of ASCII.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        _ => c,
    };
    Some(looks_like(c).unwrap_or_else(|| c.to_ascii_lowercase()))
}

/// Format characters, fillers, joiners, variation selectors, tags, and marks that combine.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFD}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
        | '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}')
}

/// The ASCII character that one of another script, or of a mathematical alphabet, looks like or folds to.
fn looks_like(c: char) -> Option<char> {
    Some(match c {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        '/' | '\u{2044}' | '\u{2215}' | '\u{29F8}' => '/',
        // Greek and Cyrillic, small and capital.
        'α' | 'Α' | 'а' | 'А' => 'a',
        'Β' | 'В' => 'b',
        'с' | 'С' | 'ϲ' | 'Ϲ' => 'c',
        'ԁ' => 'd',
        'ε' | 'Ε' | 'е' | 'Е' => 'e',
        'ɡ' => 'g',
        'һ' | 'Η' | 'Н' => 'h',
        'ι' | 'Ι' | 'і' | 'І' | 'ı' | 'İ' => 'i',
        'ј' | 'Ј' => 'j',
        'κ' | 'Κ' | 'к' | 'К' => 'k',
        'ӏ' | 'Ӏ' => 'l',
        'Μ' | 'М' => 'm',
        'Ν' => 'n',
        'ο' | 'Ο' | 'о' | 'О' | 'օ' => 'o',
        'ρ' | 'Ρ' | 'р' | 'Р' => 'p',
        'ѕ' | 'Ѕ' => 's',
        'τ' | 'Τ' | 'т' | 'Т' => 't',
        'υ' | 'Υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'χ' | 'Χ' | 'х' | 'Х' => 'x',
        'у' | 'У' | 'γ' => 'y',
        'Ζ' => 'z',
        'ℊ' => 'g',
        'ℎ' => 'h',
        'ℓ' => 'l',
        'ℯ' => 'e',
        'ℴ' => 'o',
        // Thirteen alphabets of 52 letters each, capitals first.
        '\u{1D400}'..='\u{1D6A3}' => {
            let nth = ((u32::from(c) - 0x1D400) % 26) as u8;
            char::from(b'a' + nth)
        }
        'ⓐ'..='ⓩ' => char::from(b'a' + (u32::from(c) - 0x24D0) as u8),
        'Ⓐ'..='Ⓩ' => char::from(b'a' + (u32::from(c) - 0x24B6) as u8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_sorted_and_lower_case() {
        assert!(KNOWN.is_sorted());
        assert!(KNOWN.iter().all(|m| *m == m.to_ascii_lowercase()));
        for mixed in MIXED {
            assert!(KNOWN.contains(&mixed.to_ascii_lowercase().as_str()));
        }
    }

    #[test]
    fn the_protocols_own_and_a_vendors_are_no_twins() {
        for method in KNOWN {
            let is_mixed = MIXED.iter().any(|m| m.eq_ignore_ascii_case(method));
            assert_eq!(has_known_twin(method), is_mixed, "{method}");
        }
        for method in [
            "logging/setLevel",
            "sampling/createMessage",
            "tasks/newer",
            "x",
            "tools",
            "tools/call2",
            "tools/Call2",
            "vendor/tools/call",
            "tools//call",
            "Ping2",
            "notifications/vendor",
            "приве\u{442}",
            "工具",
        ] {
            assert!(!has_known_twin(method), "{method}");
        }
    }

    #[test]
    fn twins_are_told_however_they_are_written() {
        for method in [
            "Tools/Call",
            "TOOLS/CALL",
            "tools/call ",
            " tools/call",
            "tools /call",
            "tools/call\n",
            "tools/call\0",
            "tools/call\u{85}",
            "tools/call\u{A0}",
            "tools/call\u{3000}",
            "tools/call\u{200B}",
            "to\u{AD}ols/call",
            "tools/call\u{FE0F}",
            "tools/call\u{E0020}",
            "tools/ca\u{301}ll",
            "\u{FEFF}tools/call",
            "ｔools/call",
            "ＴＯＯＬＳ／ＣＡＬＬ",
            "tool\u{17F}/call",
            "t\u{43E}ols/call",
            "tools\u{2215}call",
            "tοοls/call",
            "𝐭𝐨𝐨𝐥𝐬/call",
            "𝚝𝚘𝚘𝚕𝚜/𝙲𝙰𝙻𝙻",
            "ⓣools/call",
            "Initialize",
            "tas\u{212A}s/get",
            "Tasks/newer",
            "tasks\u{200B}/newer",
            "logging/setlevel",
            "Logging/setLevel",
            "sampling/createmessage",
            "Notifications/Cancelled",
        ] {
            assert!(has_known_twin(method), "{method:?}");
        }
    }
}
