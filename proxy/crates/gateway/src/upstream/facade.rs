//! A face of the stateless era for servers that only know the handshake.
//!
//! Once per duplex the server is asked `server/discover`. One that answers speaks for itself. One
//! that does not is given a handshake by Weir, and what it says of itself there becomes the answer
//! to the client's `server/discover` (revision 2026-07-28, versioning).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::{Era, ProtocolVersion};
use mcp_codec::{Document, Id};

use super::{CallError, DuplexSession, Fault};
use crate::pipeline::{Cleared, ToServer};
use crate::reply;

/// How long a server may think about a method it does not know.
const PROBE_WAIT: Duration = Duration::from_secs(5);
/// How long it may take to shake hands.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(60);

/// Most of what is kept of that, in bytes. Real servers say some kilobytes.
const HANDSHAKE_BYTES_MAX: usize = 256 << 10;

/// What a handshake-only server said of itself. Unjudged: it goes through the line when it is told.
#[derive(Debug)]
pub struct Handshake {
    version: ProtocolVersion,
    capabilities: Vec<u8>,
    server_info: Option<Vec<u8>>,
    instructions: Option<Vec<u8>>,
}

/// Only a discovery asks for it: one that is too long to be kept is no other call's trouble.
pub type Told = Result<Handshake, Fault>;

impl DuplexSession {
    /// What stands in for the stateless era; `None` when the server speaks it itself.
    ///
    /// # Errors
    /// The server answers neither question.
    pub async fn facade(self: &Arc<Self>) -> Result<Option<&Told>, Fault> {
        let known = self.era().get_or_try_init(|| async {
            let id = self.fresh_handle();
            let probe = self.ask(&id, reply::probe(&id), PROBE_WAIT).await;
            match probe {
                Ok(Some(_)) => return Ok(None),
                Ok(None) | Err(Fault::TimedOut) => {}
                Err(fault) => return Err(fault),
            }
            let id = self.fresh_handle();
            let hello = self.ask(&id, reply::hello(&id), HANDSHAKE_WAIT).await?;
            let hello = hello.ok_or(Fault::Broken("the server refuses the handshake"))?;
            self.send(&Cleared::<ToServer>::of_ours(reply::initialized()))
                .await?;
            Ok(Some(hello))
        });
        known.await.map(Option::as_ref)
    }

    /// Asks something of our own; `None` when the answer is an error.
    async fn ask(
        self: &Arc<Self>,
        id: &Id,
        own: reply::Own,
        wait: Duration,
    ) -> Result<Option<Told>, Fault> {
        let request = Cleared::<ToServer>::of_ours(own);
        let asked = self.call(id.clone(), None, &request, None).await;
        let mut answers = asked.map_err(|error| match error {
            CallError::Fault(fault) => fault,
            CallError::TooMany | CallError::DuplicateId => Fault::Busy,
        })?;
        let answer = async {
            loop {
                let Some(incoming) = answers.next().await? else {
                    return Err(Fault::Broken("the server ended"));
                };
                let message = incoming.message;
                if message.id().is_none_or(|said| said == id) && message.method().is_none() {
                    return Ok(message.result().map(|_| Handshake::of(message.doc())));
                }
            }
        };
        tokio::time::timeout(wait, answer)
            .await
            .map_err(|_| Fault::TimedOut)?
    }
}

impl Handshake {
    /// Reads it from the answer to `initialize`.
    ///
    /// # Errors
    /// It is longer than may be kept.
    pub(super) fn of(doc: &Document) -> Told {
        let raw = |name| doc.get(&["result", name]).map(|node| doc.raw(node));
        let said = ["capabilities", "serverInfo", "instructions"].map(raw);
        if said.iter().flatten().map(|text| text.len()).sum::<usize>() > HANDSHAKE_BYTES_MAX {
            return Err(Fault::Broken("a handshake above the size limit"));
        }
        let [capabilities, server_info, instructions] = said.map(|text| text.map(<[u8]>::to_vec));
        let agreed = doc.get(&["result", "protocolVersion"]);
        let agreed = agreed.and_then(|node| ProtocolVersion::parse(doc.str(node)?));
        let agreed = agreed.filter(|version| version.era() == Era::Handshake);
        Ok(Self {
            version: agreed.unwrap_or(ProtocolVersion::V2025_11_25),
            capabilities: capabilities.unwrap_or_else(|| b"{}".to_vec()),
            server_info,
            instructions,
        })
    }

    /// The answer to `server/discover`, as the server would have given it, with the revision of its handshake.
    pub fn discovered(&self, id: &Id) -> Bytes {
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let instructions = self.instructions.as_deref().map(text);
        let instructions =
            instructions.map_or(String::new(), |i| format!(r#","instructions":{i}"#));
        let info = self.server_info.as_deref().map(text);
        let info = info.map_or(String::new(), |i| {
            format!(r#","_meta":{{"io.modelcontextprotocol/serverInfo":{i}}}"#)
        });
        Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","supportedVersions":["2026-07-28","{}"],"capabilities":{}{instructions},"ttlMs":0,"cacheScope":"private"{info}}}}}"#,
            id.to_json(),
            self.version.as_str(),
            text(&self.capabilities),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_kept_up_to_its_bound() {
        let of = |len: usize| {
            let text = "x".repeat(len);
            let result = format!(r#"{{"result":{{"capabilities":{{}},"instructions":"{text}"}}}}"#);
            let doc = Document::parse(result.into(), &mcp_codec::Limits::default()).unwrap();
            Handshake::of(&doc).map(|_| ())
        };
        // The brackets and the quotes are counted too.
        assert_eq!(of(HANDSHAKE_BYTES_MAX - 4), Ok(()));
        assert!(matches!(of(HANDSHAKE_BYTES_MAX - 3), Err(Fault::Broken(_))));
    }

    #[test]
    fn a_handshake_is_told_as_a_discovery() {
        let result = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",
            "capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"hi"}}"#;
        let doc = Document::parse(result.as_slice().into(), &mcp_codec::Limits::default()).unwrap();
        let told = Handshake::of(&doc)
            .unwrap()
            .discovered(&Id::String("a".into()));
        let v: serde_json::Value = serde_json::from_slice(&told).unwrap();
        assert_eq!(v["id"], "a");
        assert_eq!(v["result"]["resultType"], "complete");
        let versions = &v["result"]["supportedVersions"];
        assert_eq!(*versions, serde_json::json!(["2026-07-28", "2025-11-25"]));
        assert_eq!(v["result"]["capabilities"]["tools"], serde_json::json!({}));
        assert_eq!(v["result"]["instructions"], "hi");
        assert_eq!(
            v["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
            "s"
        );
        assert!(mcp_codec::Message::decode(told, &mcp_codec::Limits::default()).is_ok());
    }
}
