//! What a plugin can ask of Weir, carried out within the bounds of one message.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use dlp_policy::Words;
use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};
use domain::{Grant, PluginBinding};
use parking_lot::Mutex;
use wasmtime::ResourceLimiter;

use crate::contract::weir::policy::host::{
    self as wit, Hit, Host, HostError, LogLevel, Range, Scope,
};
use crate::deadline::Deadline;
use crate::engine::TABLE_ELEMENTS_MAX;
use crate::pattern::{Pattern, TooMuch};
use crate::state::{Space, StateError};

/// Calls of imports for one message; above it the plugin is ended.
const CALLS_MAX: u32 = 4096;
/// Text searched and scanned for one message, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Log lines for one message, and the bytes of each.
const LINES_MAX: u32 = 8;
const LINE_BYTES_MAX: usize = 512;
/// Patterns of one binding.
const PATTERNS_MAX: usize = 64;
/// Matches given for one search.
const MATCHES_MAX: u32 = 1024;
/// Names in one scan.
const NAMES_MAX: usize = 32;
/// Scanners that a binding keeps for its next calls.
const SCANNERS_KEPT: usize = 2;
/// One scan is one call, which no deadline ends: it has to be short whatever the text is.
const SCAN_BUDGET: Budget = Budget {
    decoded_bytes_max: 1 << 20,
    depth_max: 6,
    findings_max: 1024,
    candidates_max: 1 << 18,
};

/// What the imports of one binding share over all its instances.
pub(crate) struct Shared {
    pub(crate) binding: PluginBinding,
    pub(crate) plugin: Arc<str>,
    pub(crate) tenant: Arc<str>,
    pub(crate) rules: Arc<RuleSet>,
    pub(crate) space: Arc<Space>,
    pub(crate) hash_key: [u8; 32],
    /// What the clock says in tests of plugins; 0: the real time.
    pub(crate) pretended_ms: AtomicU64,
    /// What was asked for and is not granted.
    pub(crate) denied: Mutex<BTreeSet<Grant>>,
    patterns: Mutex<HashMap<Box<str>, Option<Arc<Pattern>>>>,
    /// Of the binding, not of its instances: what a scanner keeps would otherwise be there for each of them.
    scanners: Mutex<Vec<Scanner>>,
}

impl Shared {
    pub(crate) fn new(
        binding: PluginBinding,
        tenant: Arc<str>,
        rules: Arc<RuleSet>,
        space: Arc<Space>,
        hash_key: [u8; 32],
    ) -> Self {
        Self {
            plugin: binding.plugin.as_str().into(),
            binding,
            tenant,
            rules,
            space,
            hash_key,
            pretended_ms: AtomicU64::new(0),
            denied: Mutex::default(),
            patterns: Mutex::default(),
            scanners: Mutex::default(),
        }
    }

    /// What the tenant's rules find in a text of the plugin's.
    pub(crate) fn scan(&self, text: &str, budget: &Budget) -> Outcome {
        let kept = self.scanners.lock().pop();
        let mut scanner = kept.unwrap_or_else(|| Scanner::new(FingerprintKey::new(self.hash_key)));
        let leaf = LeafInput {
            text,
            kind: LeafKind::String,
            name: None,
        };
        let outcome = scanner.scan(&self.rules, [leaf].into_iter(), budget);
        let mut kept = self.scanners.lock();
        if kept.len() < SCANNERS_KEPT {
            kept.push(scanner);
        }
        outcome
    }

    /// Whether rules find something in words that a plugin would have people read, or cannot tell.
    pub(crate) fn gives_away(&self, words: &str) -> bool {
        let outcome = self.scan(words, &SCAN_BUDGET);
        !outcome.findings.is_empty() || outcome.over_budget.is_some()
    }

    /// A plugin's line as it goes to the log. A plugin sees every message whole: what rules find may not get there by
    /// its words, nor a part of it by being cut off.
    fn loggable(&self, line: &str) -> String {
        if self.gives_away(&line[..line.floor_char_boundary(8 * LINE_BYTES_MAX)]) {
            return "(the plugin's line is kept back: rules find something in it)".to_owned();
        }
        let end = line.floor_char_boundary(LINE_BYTES_MAX);
        line[..end].chars().flat_map(char::escape_debug).collect()
    }

    fn pattern(&self, text: &str) -> Result<Arc<Pattern>, HostError> {
        if Pattern::is_too_long(text) {
            return Err(HostError::OverQuota);
        }
        let mut patterns = self.patterns.lock();
        if let Some(known) = patterns.get(text) {
            return known.clone().ok_or(HostError::Invalid);
        }
        if patterns.len() >= PATTERNS_MAX {
            return Err(HostError::OverQuota);
        }
        let compiled = Pattern::new(text).map(Arc::new);
        patterns.insert(text.into(), compiled.clone());
        compiled.ok_or(HostError::Invalid)
    }
}

/// What one instance carries: the bounds of its memory, and of the message at hand.
pub(crate) struct Data {
    pub(crate) shared: Arc<Shared>,
    pub(crate) limits: MemoryLimits,
    session: Option<Box<str>>,
    /// Of the message at hand, and gone with it.
    words: Arc<Words>,
    /// A message is at hand. What a plugin does while it starts cannot depend on state or the clock:
    /// one that was bound once can be bound again, whatever it has seen since.
    judging: bool,
    pub(crate) deadline: Deadline,
    calls: u32,
    text_bytes: usize,
    lines: u32,
}

impl Data {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let memory_bytes_max = (shared.binding.memory_mb as usize) << 20;
        Self {
            limits: MemoryLimits::new(memory_bytes_max),
            deadline: Deadline::default(),
            shared,
            session: None,
            words: Arc::default(),
            judging: false,
            calls: 0,
            text_bytes: 0,
            lines: 0,
        }
    }

    /// Begins a message: every count starts anew.
    pub(crate) fn begin(&mut self, session: &str, words: &Arc<Words>) {
        if self.shared.binding.grants(Grant::SessionState)
            && self.session.as_deref() != Some(session)
        {
            self.session = Some(session.into());
        }
        self.judging = true;
        self.words = Arc::clone(words);
        self.calls = 0;
        self.text_bytes = 0;
        self.lines = 0;
        self.limits.refused = false;
    }

    /// Ends it: an instance that is kept keeps nothing of it.
    pub(crate) fn end(&mut self) {
        self.words = Arc::default();
    }

    fn called(&mut self) -> wasmtime::Result<()> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            self.limits.refused = true;
            return Err(wasmtime::Error::msg("too many calls of the host"));
        }
        // What calls take counts for the deadline: it is looked at when the plugin goes on.
        Ok(())
    }

    fn granted(&self, grant: Grant) -> Result<(), HostError> {
        if !self.judging {
            return Err(HostError::Denied);
        }
        if self.shared.binding.grants(grant) {
            return Ok(());
        }
        self.shared.denied.lock().insert(grant);
        Err(HostError::Denied)
    }

    fn takes_text(&mut self, bytes: usize) -> Result<(), HostError> {
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        if self.text_bytes > TEXT_BYTES_MAX {
            Err(HostError::OverQuota)
        } else {
            Ok(())
        }
    }

    /// The session that a scope means, once it is granted.
    fn scope(&self, scope: Scope) -> Result<Option<&str>, HostError> {
        match scope {
            Scope::Session => {
                self.granted(Grant::SessionState)?;
                Ok(Some(self.session.as_deref().unwrap_or_default()))
            }
            Scope::Tenant => self.granted(Grant::TenantState).map(|()| None),
        }
    }

    fn scanned(&mut self, text: &str, names: &[String]) -> Result<Vec<Hit>, HostError> {
        self.granted(Grant::Scan)?;
        self.takes_text(text.len())?;
        if names.len() > NAMES_MAX {
            return Err(HostError::OverQuota);
        }
        let rules = Arc::clone(&self.shared.rules);
        for name in names {
            let known = rules
                .rules()
                .any(|(_, rule)| named(name, &rule.id, rule.category.as_str()));
            if !known {
                return Err(HostError::Invalid);
            }
        }
        let outcome = self.shared.scan(text, &SCAN_BUDGET);
        if outcome.over_budget.is_some() {
            return Err(HostError::OverQuota);
        }
        let hits = outcome.findings.iter().filter_map(|finding| {
            let rule = rules.rule(finding.rule);
            let category = finding.category.as_str();
            let wanted = names.is_empty() || names.iter().any(|n| named(n, &rule.id, category));
            wanted.then(|| Hit {
                rule: rule.id.to_string(),
                category: category.to_owned(),
                at: Range {
                    start: finding.start,
                    end: finding.end,
                },
                confidence: finding.confidence,
            })
        });
        Ok(hits.take(MATCHES_MAX as usize).collect())
    }
}

/// A rule's id, its category, or a beginning of its id with `*` behind.
fn named(name: &str, rule: &str, category: &str) -> bool {
    match name.strip_suffix('*') {
        Some(beginning) => rule.starts_with(beginning),
        None => name == rule || name == category,
    }
}

/// Types alone need nothing done.
impl crate::contract::weir::policy::types::Host for Data {}

impl Host for Data {
    fn log(&mut self, level: LogLevel, line: String) -> wasmtime::Result<()> {
        self.called()?;
        self.lines += 1;
        if self.lines > LINES_MAX {
            return Ok(());
        }
        let line = self.shared.loggable(&line);
        let (plugin, tenant) = (&*self.shared.plugin, &*self.shared.tenant);
        match level {
            LogLevel::Debug => tracing::debug!(plugin, tenant_id = tenant, "{line}"),
            LogLevel::Info => tracing::info!(plugin, tenant_id = tenant, "{line}"),
            LogLevel::Warn => tracing::warn!(plugin, tenant_id = tenant, "{line}"),
        }
        Ok(())
    }

    fn scan(
        &mut self,
        text: String,
        rules: Vec<String>,
    ) -> wasmtime::Result<Result<Vec<Hit>, HostError>> {
        self.called()?;
        Ok(self.scanned(&text, &rules))
    }

    fn find(
        &mut self,
        pattern: String,
        text: String,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<Range>, HostError>> {
        self.called()?;
        let pattern = self
            .takes_text(text.len())
            .and_then(|()| self.shared.pattern(&pattern));
        let limit = limit.min(MATCHES_MAX) as usize;
        Ok(pattern.and_then(|pattern| {
            let over = self.deadline.watch();
            let found = pattern
                .find(&text, limit, || over.is_over())
                .map_err(|TooMuch| HostError::OverQuota)?;
            let range = |at: regex_automata::Match| Range {
                start: u32::try_from(at.start()).unwrap_or(u32::MAX),
                end: u32::try_from(at.end()).unwrap_or(u32::MAX),
            };
            Ok(found.into_iter().map(range).collect())
        }))
    }

    fn state_get(
        &mut self,
        scope: Scope,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, HostError>> {
        self.called()?;
        Ok(self
            .scope(scope)
            .map(|session| self.shared.space.get(session, &key)))
    }

    fn state_set(
        &mut self,
        scope: Scope,
        key: String,
        value: Vec<u8>,
        ttl_seconds: u32,
    ) -> wasmtime::Result<Result<(), HostError>> {
        self.called()?;
        let space = &self.shared.space;
        Ok(self.scope(scope).and_then(|session| {
            space
                .set(session, &key, &value, ttl_seconds)
                .map_err(host_error)
        }))
    }

    fn state_add(
        &mut self,
        scope: Scope,
        key: String,
        delta: i64,
        ttl_seconds: u32,
    ) -> wasmtime::Result<Result<i64, HostError>> {
        self.called()?;
        let space = &self.shared.space;
        Ok(self.scope(scope).and_then(|session| {
            space
                .add(session, &key, delta, ttl_seconds)
                .map_err(host_error)
        }))
    }

    fn keyed_hash(&mut self, data: Vec<u8>) -> wasmtime::Result<String> {
        self.called()?;
        let hash = blake3::keyed_hash(&self.shared.hash_key, &data);
        Ok(hash.to_hex()[..32].to_owned())
    }

    fn now(&mut self) -> wasmtime::Result<Result<u64, HostError>> {
        self.called()?;
        Ok(self.granted(Grant::Clock).map(|()| {
            let pretended = self.shared.pretended_ms.load(Ordering::Relaxed);
            if pretended > 0 {
                return pretended;
            }
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
        }))
    }

    fn words(&mut self) -> wasmtime::Result<wit::WordList> {
        self.called()?;
        Ok(wit::WordList {
            text: self.words.text.clone(),
            places: self.words.places.as_flattened().to_vec(),
        })
    }
}

fn host_error(error: StateError) -> HostError {
    match error {
        StateError::OverQuota => HostError::OverQuota,
        StateError::NotANumber => HostError::Invalid,
    }
}

/// Bounds of memory and tables, and whether something beyond them was wanted.
#[derive(Debug)]
pub(crate) struct MemoryLimits {
    memory_bytes_max: usize,
    /// Of all memories of the instance together; none ever shrinks.
    pub(crate) memory_bytes: usize,
    pub(crate) refused: bool,
}

impl MemoryLimits {
    fn new(memory_bytes_max: usize) -> Self {
        Self {
            memory_bytes_max,
            memory_bytes: 0,
            refused: false,
        }
    }
}

impl ResourceLimiter for MemoryLimits {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Beyond what the module itself declares it fails anyway, and does not count.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let total = self
            .memory_bytes
            .saturating_add(desired.saturating_sub(current));
        let allowed = total <= self.memory_bytes_max;
        if allowed {
            self.memory_bytes = total;
        } else {
            self.refused = true;
        }
        Ok(allowed)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = desired <= TABLE_ELEMENTS_MAX;
        self.refused |= !allowed;
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_find_does_not_get_into_the_log() {
        let binding: PluginBinding = serde_json::from_str(r#"{"plugin": "guard"}"#).unwrap();
        let space = crate::state::Spaces::default().space(&"acme".into(), &"guard".into());
        let rules = Arc::clone(RuleSet::builtin());
        let shared = Shared::new(binding, "acme".into(), rules, space, [7; 32]);
        // Looks like a key, and is none.
        let secret = format!("AKIA{}", "QYLPMN5HHHFPZAM2");
        for line in [
            format!("saw {secret}"),
            format!("{}{secret}", "x ".repeat(LINE_BYTES_MAX / 2 - 5)),
        ] {
            let shown = shared.loggable(&line);
            assert!(
                !shown.contains("AKIA") && shown.contains("kept back"),
                "{shown}"
            );
        }
        assert_eq!(shared.loggable("two\nlines"), "two\\nlines");
        assert_eq!(
            shared.loggable(&"a ".repeat(LINE_BYTES_MAX)).len(),
            LINE_BYTES_MAX
        );
    }

    #[test]
    fn one_scan_is_short_whatever_the_text() {
        let binding: PluginBinding = serde_json::from_str(r#"{"plugin": "guard"}"#).unwrap();
        let space = crate::state::Spaces::default().space(&"acme".into(), &"guard".into());
        let rules = Arc::clone(RuleSet::builtin());
        let shared = Shared::new(binding, "acme".into(), rules, space, [7; 32]);
        let text = "curl ignoruj\\u0041basic edrpou AA77 KKKK KKKK KKKK KKKK KK ".repeat(16 << 10);
        assert!(shared.scan(&text, &SCAN_BUDGET).over_budget.is_some());
        assert!(
            shared.gives_away(&text),
            "what could not be looked at may give something away"
        );
    }
}
