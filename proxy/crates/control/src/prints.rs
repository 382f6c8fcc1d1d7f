//! What the gateway looks for of the secrets of hosted servers: fingerprints, in memory only, under keys of this process.
//!
//! A server whose fingerprints are not known yet is served to nobody. A value that is to be set is looked for before the
//! runner has it, and one that was replaced is looked for on, since sandboxes that have it may still answer.

use std::collections::{BTreeMap, VecDeque};

use domain::ServerId;
use runner_api::SecretName;
use secret_prints::{Print, PrintKey, SecretPrints};

use crate::error::ControlError;

/// Values of one name that are looked for, the newest first.
const VALUES_MAX: usize = 8;
/// Names of one server; above it those that the runner does not know any more are let go.
const NAMES_MAX: usize = 200;

/// Fingerprints of all servers.
#[derive(Default)]
pub(crate) struct Prints(BTreeMap<ServerId, Known>);

struct Known {
    key: PrintKey,
    values: BTreeMap<SecretName, VecDeque<Vec<Print>>>,
}

impl Prints {
    /// The key of a server, or a new one for it.
    pub fn key(&self, server: &ServerId) -> Result<PrintKey, ControlError> {
        match self.0.get(server) {
            Some(known) => Ok(known.key.clone()),
            None => {
                let mut bytes = [0; 32];
                getrandom::fill(&mut bytes).map_err(|_| ControlError::Damaged("random source"))?;
                Ok(PrintKey::new(bytes))
            }
        }
    }

    /// Whether the runner has told of this server's.
    pub fn knows(&self, server: &ServerId) -> bool {
        self.0.contains_key(server)
    }

    /// What the runner told, made under this key; true if something is new.
    pub fn learn(
        &mut self,
        server: &ServerId,
        key: &PrintKey,
        told: BTreeMap<SecretName, Vec<Print>>,
    ) -> bool {
        let fresh = !self.knows(server);
        let known = self.0.entry(server.clone()).or_insert_with(|| Known {
            key: key.clone(),
            values: BTreeMap::new(),
        });
        if known.values.len() > NAMES_MAX {
            known.values.retain(|name, _| told.contains_key(name));
        }
        let added = told
            .into_iter()
            .filter_map(|(name, prints)| known.add(name, prints));
        added.count() > 0 || fresh
    }

    /// A value that is about to be set.
    pub fn expect(&mut self, server: &ServerId, name: &SecretName, value: &[u8]) {
        if let Some(known) = self.0.get_mut(server) {
            let prints = known.key.prints(value);
            known.add(name.clone(), prints);
        }
    }

    /// The server is gone.
    pub fn forget(&mut self, server: &ServerId) {
        self.0.remove(server);
    }

    /// What the gateway is to look for; `None` if there is nothing.
    pub fn of(&self, server: &ServerId) -> Option<SecretPrints> {
        let known = self.0.get(server)?;
        let prints: Vec<Print> = known.values.values().flatten().flatten().cloned().collect();
        (!prints.is_empty()).then(|| SecretPrints {
            key: known.key.clone(),
            prints,
        })
    }
}

impl Known {
    /// Makes it the newest of its name; `None` if it was known.
    fn add(&mut self, name: SecretName, prints: Vec<Print>) -> Option<()> {
        if prints.is_empty() {
            return None;
        }
        let values = self.values.entry(name).or_default();
        let old = values.iter().position(|known| *known == prints);
        if let Some(at) = old {
            values.remove(at);
        }
        values.push_front(prints);
        values.truncate(VALUES_MAX);
        old.is_none().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::parse(text).expect("a name")
    }

    #[test]
    fn old_and_new_values_are_looked_for_within_bounds() {
        let server = ServerId::parse("one").expect("an id");
        let mut all = Prints::default();
        all.expect(&server, &name("A"), b"not-known-yet");
        assert!(!all.knows(&server) && all.of(&server).is_none());
        let key = all.key(&server).expect("a key");
        let told = |value: &str| BTreeMap::from([(name("A"), key.prints(value.as_bytes()))]);
        assert!(all.learn(&server, &key, told("value-0-of-A")));
        assert!(
            !all.learn(&server, &key, told("value-0-of-A")),
            "nothing new"
        );
        assert_eq!(
            all.key(&server).expect("a key"),
            key,
            "one key for old and new"
        );
        let each = all.of(&server).expect("something").prints.len();
        for n in 1..20 {
            all.expect(&server, &name("A"), format!("value-{n}-of-A").as_bytes());
        }
        let now = all.of(&server).expect("something").prints;
        assert_eq!(now.len(), each * VALUES_MAX);
        let has = |value: &str| key.prints(value.as_bytes()).iter().all(|p| now.contains(p));
        assert!(has("value-19-of-A") && has("value-12-of-A") && !has("value-11-of-A"));
        for n in 0..NAMES_MAX + 5 {
            all.expect(
                &server,
                &name(&format!("N{n}")),
                format!("value of name {n}").as_bytes(),
            );
        }
        all.learn(&server, &key, told("value-19-of-A"));
        assert_eq!(
            all.of(&server).expect("something").prints.len(),
            each * VALUES_MAX
        );
        all.forget(&server);
        assert!(!all.knows(&server));
    }
}
