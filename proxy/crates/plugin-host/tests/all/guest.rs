//! Plugins written by hand in WebAssembly text, and messages to show them.

use std::sync::{Arc, OnceLock};

use dlp_policy::{About, EvalError, EvalInput, Evaluator, MessageView, Verdict, ViewKind};
use dlp_scan::RuleSet;
use domain::{Direction, Era, PluginBinding, TenantId};
use plugin_host::{Bound, Compiler, HostOptions, Plugin, PluginHost, component_of};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A plugin's parts; every one can be replaced by something hostile.
pub struct Guest {
    /// Imports, in WAT.
    pub imports: String,
    /// Memory.
    pub memory: String,
    /// What comes beside the functions: tables, data, a start function.
    pub more: String,
    /// Body of `cabi_realloc`.
    pub realloc: String,
    /// Body of `describe`.
    pub describe: String,
    /// Body of `configure`.
    pub configure: String,
    /// Body of `evaluate`.
    pub evaluate: String,
}

/// 2,048 zeros at 0: an empty description, an `ok`, a verdict without objection.
const NOTHING: &str = "(i32.const 0)";
/// Hands out memory and never takes it back; begins at 4,096.
const BUMP: &str = "(local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (block $done (loop $more
      (br_if $done (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
      (br_if $done (i32.eq (memory.grow (i32.const 1)) (i32.const -1)))
      (br $more)))
    (local.get $at)";

impl Default for Guest {
    fn default() -> Self {
        Self {
            imports: String::new(),
            memory: "(memory (export \"memory\") 2)".into(),
            more: String::new(),
            realloc: BUMP.into(),
            describe: NOTHING.into(),
            configure: NOTHING.into(),
            evaluate: NOTHING.into(),
        }
    }
}

impl Guest {
    /// The core module in WAT.
    pub fn text(&self) -> String {
        format!(
            "(module {imports} {memory} (global $next (mut i32) (i32.const 4096))
              (func $realloc (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) {realloc})
              (func (export \"weir:policy/policy@0.1.0#describe\") (result i32) {describe})
              (func (export \"weir:policy/policy@0.1.0#configure\") (param i32 i32) (result i32) {configure})
              (func $evaluate (export \"weir:policy/policy@0.1.0#evaluate\") (param i32) (result i32) {evaluate})
              {more})",
            imports = self.imports,
            memory = self.memory,
            realloc = self.realloc,
            describe = self.describe,
            configure = self.configure,
            evaluate = self.evaluate,
            more = self.more,
        )
    }

    /// The component.
    pub fn component(&self) -> Result<Vec<u8>, String> {
        component(&self.text(), WIT)
    }
}

/// The contract as it is published.
pub const WIT: &str = include_str!("../../../../../dlp-sdk/wit/policy.wit");

/// A component out of WAT, by some version of the contract.
pub fn component(text: &str, wit: &str) -> Result<Vec<u8>, String> {
    let mut module = wat::parse_str(text).map_err(|error| error.to_string())?;
    let mut resolve = Resolve::default();
    let package = resolve
        .push_str("policy.wit", wit)
        .map_err(|error| format!("{error:#}"))?;
    let world = resolve
        .select_world(&[package], Some("plugin"))
        .map_err(|error| format!("{error:#}"))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| format!("{error:#}"))?;
    component_of(&module).map_err(|error| error.to_string())
}

/// One host for all tests: slots are shared, as they are in a gateway.
pub fn host() -> &'static PluginHost {
    static HOST: OnceLock<PluginHost> = OnceLock::new();
    HOST.get_or_init(|| {
        PluginHost::new(HostOptions {
            compiler: Compiler::InThisProcess,
            cache: None,
            hash_key: [7; 32],
        })
        .expect("plugins run here")
    })
}

pub fn load(guest: &Guest) -> Result<Arc<Plugin>, String> {
    host()
        .load(&guest.component()?)
        .map_err(|error| error.to_string())
}

pub fn bind(plugin: &Arc<Plugin>, binding: &PluginBinding, tenant: &str) -> Result<Bound, String> {
    let tenant = TenantId::parse(tenant).expect("a tenant");
    host()
        .bind(plugin, binding, &tenant, "server", RuleSet::builtin())
        .map_err(|error| error.to_string())
}

/// A call of a tool with one argument.
pub fn call(tenant: &str, text: &str) -> MessageView {
    let about = About {
        direction: Direction::ToServer,
        era: Era::Handshake,
        method: "tools/call",
        tool: Some("query"),
        server: "server",
        tenant,
        session: Some("session"),
        key_id: "key",
        call: None,
    };
    let mut view = MessageView::new(&about, 256 + text.len(), 3);
    view.leaf(ViewKind::Key, "$.params.arguments{key}", "sql");
    view.leaf(ViewKind::Text, "$.params.arguments.sql", text);
    view.leaf(ViewKind::Number, "$.params.arguments.n", "17");
    view
}

pub fn ask(bound: &Bound, view: &MessageView) -> Result<Verdict, EvalError> {
    let input = EvalInput {
        view,
        json: b"{}",
        findings: &[],
        rules: RuleSet::builtin(),
    };
    bound.evaluate(&input)
}
