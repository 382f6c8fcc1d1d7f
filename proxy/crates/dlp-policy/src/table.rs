//! The compiled policy of one server of one tenant.
//!
//! Which line of policy decides about a finding, from the strongest ground to the weakest:
//!
//! 1. any line an operator wrote beats the built-in policy ([`DEFAULTS`](crate::DEFAULTS));
//! 2. a rule id beats a rule glob beats a line without `rule`; with equal `rule`, a line with
//!    `category` beats one without;
//! 3. a tool's exact name beats a tool glob beats a line without `tool`;
//! 4. a line with `direction` beats one without;
//! 5. the server's line beats the tenant's;
//! 6. the later line beats the earlier.
//!
//! A message that belongs to no tool is judged by the lines without `tool`
//! ([`PolicyTable::for_tool`] with `None`). One that should belong to a tool but cannot be tied to it
//! is judged, rule by rule, by the strictest action that any tool would have got
//! ([`PolicyTable::strictest`]).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use dlp_scan::{Rule, RuleId, RuleSet};
use domain::{Direction, FailureMode, Policy, PolicyAction, RedactForm};

use crate::allow::Allow;
use crate::defaults::default_treatment;
use crate::error::{Level, PolicyError};
use crate::lines::{LineRef, Lines, Treatment};
use crate::tools::ToolFilter;

/// Most tool names remembered, of those that some line names and of the others; above it a name is
/// matched anew each time.
const KNOWN_TOOLS_MAX: usize = 4096;
/// Longer names are not remembered.
const KNOWN_TOOL_BYTES_MAX: usize = 256;
/// Most distinct action tables kept; tools that match the same globs share one.
const TABLES_MAX: usize = 1024;

/// The compiled policy of one server of one tenant.
#[derive(Debug)]
pub struct PolicyTable {
    lines: Lines,
    allow: Allow,
    builtin: [Vec<Treatment>; 2],
    no_tool: [ActionsRef; 2],
    strictest: [ActionsRef; 2],
    known: RwLock<Known>,
    tenant_tools: ToolFilter,
    server_tools: ToolFilter,
    dry_run: bool,
    failure_mode: FailureMode,
}

impl PolicyTable {
    /// Compiles the tenant's and the server's policy for a rule set.
    ///
    /// `dry_run` and `failure_mode` are the server's; the configuration fills in the tenant's where a
    /// server says nothing.
    ///
    /// # Errors
    /// A rule, category or glob that means nothing: a line that can never apply is a mistake.
    pub fn compile(tenant: &Policy, server: &Policy, rules: &RuleSet) -> Result<Self, PolicyError> {
        let facts: Vec<&Rule> = rules.rules().map(|(_, rule)| rule).collect();
        Self::compile_for(tenant, server, &facts)
    }

    /// All that [`compile`](Self::compile) would refuse, for whoever wrote it.
    pub fn problems(tenant: &Policy, server: &Policy, rules: &RuleSet) -> Vec<PolicyError> {
        let facts: Vec<&Rule> = rules.rules().map(|(_, rule)| rule).collect();
        Parts::compile(tenant, server, &facts).1
    }

    fn compile_for(tenant: &Policy, server: &Policy, facts: &[&Rule]) -> Result<Self, PolicyError> {
        let (parts, problems) = Parts::compile(tenant, server, facts);
        if let Some(first) = problems.into_iter().next() {
            return Err(first);
        }
        let lines = parts.lines;
        let builtin = [Direction::ToServer, Direction::ToClient].map(|d| {
            let actions = facts.iter().map(|rule| default_treatment(rule, d));
            actions.collect::<Vec<_>>()
        });
        Ok(Self {
            no_tool: both(|d| lines.apply(&builtin[d as usize], d, &|_| false)),
            strictest: both(|d| lines.strictest(&builtin[d as usize], d)),
            builtin,
            lines,
            allow: parts.allow,
            known: RwLock::default(),
            tenant_tools: parts.tenant_tools,
            server_tools: parts.server_tools,
            dry_run: server.dry_run,
            failure_mode: server.failure_mode,
        })
    }

    /// The actions for messages of a tool, or with `None` for messages that belong to no tool.
    ///
    /// A tool seen before costs one lookup and no allocation.
    pub fn for_tool(&self, direction: Direction, tool: Option<&str>) -> ActionsRef {
        let Some(tool) = tool.filter(|_| !self.lines.patterns().is_empty()) else {
            return self.no_tool[direction as usize].clone();
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tables) = known.tools.get(tool) {
            return tables[direction as usize].clone();
        }
        if known.unnamed.contains(tool) {
            return self.no_tool[direction as usize].clone();
        }
        drop(known);
        self.learn(tool)[direction as usize].clone()
    }

    /// For messages that should belong to a tool but cannot be tied to one: rule by rule, the strictest
    /// action that any tool, or no tool, would have got.
    pub fn strictest(&self, direction: Direction) -> ActionsRef {
        self.strictest[direction as usize].clone()
    }

    /// The line that decides about a rule for a tool (or for messages of none); `None`: the built-in policy does.
    pub fn line_for(
        &self,
        rule: RuleId,
        direction: Direction,
        tool: Option<&str>,
    ) -> Option<LineRef> {
        let patterns = self.lines.patterns();
        let matched = |p: usize| tool.is_some_and(|tool| patterns[p].matches(tool));
        self.lines.winner(rule.index(), direction, &matched)
    }

    /// The allowlist.
    pub fn allow(&self) -> &Allow {
        &self.allow
    }

    /// Whether policy lets anyone call this tool. Keys may narrow it further.
    pub fn tool_allowed(&self, tool: &str) -> bool {
        self.tenant_tools.allows(tool) && self.server_tools.allows(tool)
    }

    /// Decide and record, but enforce nothing.
    pub fn dry_run(&self) -> bool {
        self.dry_run
    }

    /// What becomes of a message that could not be judged.
    pub fn failure_mode(&self) -> FailureMode {
        self.failure_mode
    }

    /// Names come from clients: what is remembered is bounded, and tools that match the same patterns
    /// share their tables.
    fn learn(&self, tool: &str) -> Tables {
        let patterns = self.lines.patterns().iter();
        let set: MatchSet = patterns.map(|p| p.matches(tool)).collect();
        let short = tool.len() <= KNOWN_TOOL_BYTES_MAX;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !set.contains(&true) {
            if short && known.unnamed.len() < KNOWN_TOOLS_MAX {
                known.unnamed.insert(tool.into());
            }
            return self.no_tool.clone();
        }
        let tables = match known.tables.get(&set) {
            Some(tables) => tables.clone(),
            None => {
                let builtin = &self.builtin;
                let tables = both(|d| self.lines.apply(&builtin[d as usize], d, &|p| set[p]));
                if known.tables.len() < TABLES_MAX {
                    known.tables.insert(set, tables.clone());
                }
                tables
            }
        };
        if short && known.tools.len() < KNOWN_TOOLS_MAX {
            known.tools.insert(tool.into(), tables.clone());
        }
        tables
    }
}

/// The action of every rule, for one direction and tool. Cheap to clone, O(1) to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionsRef(Arc<[Treatment]>);

impl ActionsRef {
    /// The action for a rule of the set that the table was compiled for. A rule of another set is a
    /// mistake of ours and blocks.
    pub fn action(&self, rule: RuleId) -> PolicyAction {
        self.0
            .get(rule.index())
            .map_or(PolicyAction::Block, |t| t.action)
    }

    /// The strictest action that any rule has here: what a finding can come to at the most.
    pub fn strictest(&self) -> PolicyAction {
        let actions = self.0.iter().map(|t| t.action);
        actions.max().unwrap_or(PolicyAction::Ignore)
    }

    /// Whether what this rule finds is stopped in a dry run, too, and whatever allowlists and plugins say.
    pub fn always(&self, rule: RuleId) -> bool {
        self.0.get(rule.index()).is_some_and(|t| t.always)
    }

    /// What stands in the place of a value that this rule found and that is redacted.
    pub fn form(&self, rule: RuleId) -> RedactForm {
        self.0
            .get(rule.index())
            .map_or_else(RedactForm::default, |t| t.form)
    }
}

/// One table for each direction, at the index `Direction as usize`.
type Tables = [ActionsRef; 2];

/// For each pattern, whether a tool matches it.
type MatchSet = Box<[bool]>;

#[derive(Debug, Default)]
struct Known {
    tools: HashMap<Box<str>, Tables>,
    /// Names that no pattern matches. Apart, so that a client's inventions cannot crowd out the others.
    unnamed: HashSet<Box<str>>,
    tables: HashMap<MatchSet, Tables>,
}

/// What is written, without what is wrong with it.
struct Parts {
    lines: Lines,
    allow: Allow,
    tenant_tools: ToolFilter,
    server_tools: ToolFilter,
}

impl Parts {
    fn compile(tenant: &Policy, server: &Policy, facts: &[&Rule]) -> (Self, Vec<PolicyError>) {
        let mut problems = Vec::new();
        let parts = Self {
            lines: Lines::compile(tenant, server, facts, &mut problems),
            allow: Allow::compile(tenant, server, facts, &mut problems),
            tenant_tools: filter(Level::Tenant, tenant, &mut problems),
            server_tools: filter(Level::Server, server, &mut problems),
        };
        (parts, problems)
    }
}

fn filter(level: Level, policy: &Policy, problems: &mut Vec<PolicyError>) -> ToolFilter {
    let (filter, wrong) = ToolFilter::compile_all(&policy.tools);
    let wrong = wrong.into_iter().map(|(field, problem)| PolicyError {
        level,
        field: format!("tools.{field}"),
        problem,
    });
    problems.extend(wrong);
    filter
}

fn both(actions: impl Fn(Direction) -> Vec<Treatment>) -> Tables {
    [Direction::ToServer, Direction::ToClient].map(|d| ActionsRef(actions(d).into()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Problem;
    use crate::lines::BINDINGS_MAX;
    use Direction::{ToClient, ToServer};
    use PolicyAction::{Block, Ignore, Log, Redact, Warn};
    use dlp_scan::Category;
    use domain::PolicyBinding;

    pub(crate) fn rule(id: &str, category: Category, confidence: u8) -> Rule {
        Rule {
            id: id.into(),
            category,
            title: "".into(),
            description: "".into(),
            confidence,
        }
    }

    /// Built in: block/redact, block/redact, log, redact, block to the client.
    fn rules() -> Vec<Rule> {
        vec![
            rule("aws-id", Category::Secret, 90),
            rule("aws-key", Category::Secret, 90),
            rule("email", Category::Pii, 90),
            rule("iban", Category::Pii, 90),
            rule("override", Category::Injection, 90),
        ]
    }

    /// `rule=aws-* tool=x direction=to_client category=pii log`
    fn line(text: &str) -> PolicyBinding {
        let mut binding = PolicyBinding {
            tool: None,
            direction: None,
            category: None,
            rule: None,
            action: Log,
            form: None,
        };
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("tool", v)) => binding.tool = Some(v.into()),
                Some(("rule", v)) => binding.rule = Some(v.into()),
                Some(("category", v)) => binding.category = Some(v.into()),
                Some(("direction", "to_server")) => binding.direction = Some(ToServer),
                Some(("direction", _)) => binding.direction = Some(ToClient),
                _ => binding.action = action(word),
            }
        }
        binding
    }

    fn action(word: &str) -> PolicyAction {
        [Ignore, Log, Warn, Redact, Block]
            .into_iter()
            .find(|a| a.as_str() == word)
            .unwrap()
    }

    fn policy(lines: &[&str]) -> Policy {
        Policy {
            bindings: lines.iter().map(|l| line(l)).collect(),
            ..Policy::default()
        }
    }

    fn table(tenant: &[&str], server: &[&str]) -> PolicyTable {
        try_table(tenant, server).unwrap()
    }

    fn try_table(tenant: &[&str], server: &[&str]) -> Result<PolicyTable, PolicyError> {
        let rules = rules();
        let facts: Vec<&Rule> = rules.iter().collect();
        PolicyTable::compile_for(&policy(tenant), &policy(server), &facts)
    }

    fn ask(actions: &ActionsRef, id: &str) -> PolicyAction {
        actions.0[rules().iter().position(|r| &*r.id == id).unwrap()].action
    }

    #[test]
    fn the_most_specific_line_wins() {
        // tenant's lines, server's lines, what `aws-id` gets to the server by tool `read_file`
        let cases: &[(&[&str], &[&str], PolicyAction)] = &[
            (&[], &[], Block),
            // 1. anything written beats the built-in policy
            (&["log"], &[], Log),
            (&[], &["ignore"], Ignore),
            (&["category=pii log"], &["category=injection log"], Block),
            // 2. rule id > rule glob > category > nothing
            (&["rule=aws-id log", "rule=aws-* warn"], &[], Log),
            (&["rule=aws-* log", "category=secret warn"], &[], Log),
            (&["category=secret log", "warn"], &[], Log),
            (
                &["rule=aws-id log"],
                &["category=secret tool=read_file direction=to_server warn"],
                Log,
            ),
            (
                &["rule=aws-* category=secret log", "rule=aws-* warn"],
                &[],
                Log,
            ),
            // 3. tool name > tool glob > nothing
            (&["tool=read_file log", "tool=read_* warn"], &[], Log),
            (&["tool=read_* log", "warn"], &[], Log),
            (&["tool=read_* log"], &["direction=to_server warn"], Log),
            (&["tool=write log"], &["warn"], Warn),
            // 4. direction > nothing
            (&["direction=to_server log", "warn"], &[], Log),
            (&["direction=to_client log", "warn"], &[], Warn),
            // 5. server > tenant
            (&["warn"], &["log"], Log),
            (&["tool=read_* warn"], &["tool=*_file log"], Log),
            // 6. later > earlier
            (&["warn", "log"], &[], Log),
            (&[], &["tool=read_* warn", "tool=*_file log"], Log),
        ];
        for (tenant, server, expected) in cases {
            let table = table(tenant, server);
            let actions = table.for_tool(ToServer, Some("read_file"));
            assert_eq!(ask(&actions, "aws-id"), *expected, "{tenant:?} {server:?}");
        }
    }

    #[test]
    fn a_line_touches_only_what_it_names() {
        let table = table(
            &["category=pii block"],
            &["rule=aws-id tool=read_* direction=to_client log"],
        );
        let cases = [
            (ToClient, Some("read_file"), "aws-id", Log),
            (ToClient, Some("read_file"), "aws-key", Redact),
            (ToClient, Some("write"), "aws-id", Redact),
            (ToClient, None, "aws-id", Redact),
            (ToServer, Some("read_file"), "aws-id", Block),
            (ToServer, Some("read_file"), "email", Block),
            (ToClient, None, "iban", Block),
            (ToClient, None, "override", Block),
            (ToServer, None, "override", Warn),
        ];
        for (direction, tool, id, expected) in cases {
            for _ in 0..2 {
                let actions = table.for_tool(direction, tool);
                assert_eq!(ask(&actions, id), expected, "{direction} {tool:?} {id}");
            }
        }
    }

    #[test]
    fn the_strictest_is_what_some_tool_could_get() {
        // lines, what `email` gets to the client when the tool is not known
        let cases: &[(&[&str], PolicyAction)] = &[
            (&[], Log),
            (&["category=pii ignore"], Ignore),
            (&["category=pii log", "tool=x block"], Log), // the category line is stronger for x too
            (&["category=pii log", "category=pii tool=x block"], Block),
            (&["category=pii tool=x block", "rule=email log"], Log),
            (
                &["category=pii tool=x block", "category=pii tool=x warn"],
                Warn,
            ),
            (
                &["category=pii tool=x* block", "category=pii tool=x warn"],
                Block,
            ),
            (&["category=pii tool=x block direction=to_server"], Log),
            (&["category=pii block", "category=pii tool=x log"], Block),
            (&["tool=x redact"], Redact),
        ];
        for (lines, expected) in cases {
            let table = table(&[], lines);
            assert_eq!(
                ask(&table.strictest(ToClient), "email"),
                *expected,
                "{lines:?}"
            );
            for tool in [None, Some("x"), Some("xy"), Some("z")] {
                let one = ask(&table.for_tool(ToClient, tool), "email");
                assert!(one <= *expected, "{lines:?} {tool:?}");
            }
        }
    }

    #[test]
    fn a_line_that_cannot_apply_is_refused() {
        let cases = [
            (
                "rule=aws_id log",
                "rule",
                "no rule is called \"aws_id\"; did you mean \"aws-id\"?",
            ),
            (
                "rule=nonsense-here log",
                "rule",
                "no rule is called \"nonsense-here\"",
            ),
            (
                "rule=gcp-* log",
                "rule",
                "no rule matches \"gcp-*\"; see the rule ids or take the line out",
            ),
            (
                "category=pi log",
                "category",
                "\"pi\" is no category; use secret, pii or injection",
            ),
            (
                "category=pii rule=aws-* log",
                "category",
                "no rule of category \"pii\" matches; take the category out",
            ),
        ];
        for (text, field, problem) in cases {
            let error = try_table(&["log"], &["warn", text]).unwrap_err();
            assert_eq!(error.level, Level::Server);
            assert_eq!(error.field, format!("bindings[1].{field}"), "{text}");
            assert_eq!(error.problem.to_string(), problem, "{text}");
        }
        let error = try_table(&["tool=[ log"], &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("tenant policy: bindings[0].tool: \"[\" is no glob")
        );
        let many = vec!["log"; BINDINGS_MAX + 1];
        let error = try_table(&many, &[]).unwrap_err();
        assert!(matches!(error.problem, Problem::TooMany { .. }));
    }

    #[test]
    fn what_is_remembered_of_clients_names_is_bounded() {
        let table = table(&[], &["tool=a* log"]);
        let long = format!("a{}", "x".repeat(KNOWN_TOOL_BYTES_MAX));
        assert_eq!(ask(&table.for_tool(ToServer, Some(&long)), "aws-id"), Log);
        for i in 0..KNOWN_TOOLS_MAX + 10 {
            let hit = table.for_tool(ToServer, Some(&format!("a{i}")));
            let miss = table.for_tool(ToServer, Some(&format!("b{i}")));
            assert_eq!((ask(&hit, "aws-id"), ask(&miss, "aws-id")), (Log, Block));
        }
        let known = table.known.read().unwrap();
        assert_eq!(known.tools.len(), KNOWN_TOOLS_MAX);
        assert_eq!(known.unnamed.len(), KNOWN_TOOLS_MAX);
        assert!(
            known
                .tools
                .keys()
                .all(|name| name.len() <= KNOWN_TOOL_BYTES_MAX)
        );
        assert_eq!(known.tables.len(), 1);
    }

    #[test]
    fn distinct_tables_are_bounded() {
        let letter = |bit: u8| char::from(b'a' + bit);
        let lines: Vec<String> = (0..11)
            .map(|bit| format!("tool=*{}* log", letter(bit)))
            .collect();
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let table = table(&[], &refs);
        for set in 1..2048_u32 {
            let name: String = (0..11_u8)
                .filter(|b| set >> b & 1 == 1)
                .map(letter)
                .collect();
            assert_eq!(
                ask(&table.for_tool(ToServer, Some(&name)), "aws-id"),
                Log,
                "{name}"
            );
        }
        assert_eq!(table.known.read().unwrap().tables.len(), TABLES_MAX);
    }

    #[test]
    fn tools_pass_both_levels() {
        let mut tenant = policy(&[]);
        tenant.tools.deny = vec!["exec*".into()];
        let mut server = policy(&[]);
        server.tools.allow = vec!["exec".into(), "read".into()];
        let table = PolicyTable::compile_for(&tenant, &server, &[]).unwrap();
        assert!(table.tool_allowed("read"));
        assert!(!table.tool_allowed("exec"));
        assert!(!table.tool_allowed("write"));
        server.tools.allow.push("{".into());
        let error = PolicyTable::compile_for(&tenant, &server, &[]).unwrap_err();
        assert_eq!(error.field, "tools.allow[2]");
    }

    #[test]
    fn the_servers_word_on_failure_and_dry_run_holds() {
        let server = Policy {
            dry_run: true,
            failure_mode: FailureMode::Open,
            ..Policy::default()
        };
        let table = PolicyTable::compile_for(&Policy::default(), &server, &[]).unwrap();
        assert!(table.dry_run());
        assert_eq!(table.failure_mode(), FailureMode::Open);
    }
}
