//! Which type an answer says it has, for the log.

use http::HeaderValue;

/// The types that tell what answered: a server, a proxy's page, a program that is no server.
const KNOWN: [&str; 8] = [
    "application/json",
    "text/event-stream",
    "text/html",
    "text/plain",
    "application/problem+json",
    "application/xml",
    "text/xml",
    "application/octet-stream",
];

/// The type by its name where it is one that is known: any other is text of the server's.
pub(super) fn named(content_type: Option<&HeaderValue>) -> &'static str {
    let Some(value) = content_type else {
        return "none";
    };
    let text = value.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    let known = KNOWN.iter().find(|name| name.eq_ignore_ascii_case(essence));
    known.copied().unwrap_or("another")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_repeated() {
        let of = |text: &'static str| named(Some(&HeaderValue::from_static(text)));
        assert_eq!(of("Text/HTML; charset=utf-8"), "text/html");
        assert_eq!(of("application/json"), "application/json");
        assert_eq!(of("secret/thing"), "another");
        assert_eq!(of(""), "another");
        assert_eq!(named(None), "none");
    }
}
