//! The reference page of the contract: docs/plugin-contract.md, made from dlp-sdk/wit.

use std::fmt::Write as _;

use anyhow::Context as _;
use wit_parser::{Docs, Function, Interface, Resolve, Type, TypeDef, TypeDefKind, WorldItem};

use super::scaffold::WIT;

/// The page.
///
/// # Errors
/// The contract is no WIT; a test reads it.
pub fn page() -> anyhow::Result<String> {
    let mut resolve = Resolve::default();
    let package = resolve
        .push_str("policy.wit", WIT)
        .context("the contract is no WIT")?;
    let package = &resolve.packages[package];
    let mut out = HEAD.replace("@PACKAGE@", &package.name.to_string());
    let page = Page(&resolve);
    let _ = writeln!(out, "\n{}", paragraphs(&package.docs));
    for (name, id) in &package.interfaces {
        page.interface(&mut out, name, &resolve.interfaces[*id]);
    }
    for (name, id) in &package.worlds {
        let world = &resolve.worlds[*id];
        let _ = write!(
            out,
            "\n## World `{name}`\n\n{}\n\n",
            paragraphs(&world.docs)
        );
        let items = [("imports", &world.imports), ("exports", &world.exports)];
        for (what, items) in items {
            for item in items.values() {
                if let WorldItem::Interface { id, .. } = item
                    && let Some(name) = &resolve.interfaces[*id].name
                {
                    let _ = writeln!(out, "- {what} `{name}`");
                }
            }
        }
    }
    Ok(out)
}

const HEAD: &str = "# The contract of policy plugins: `@PACKAGE@`

Made from `dlp-sdk/wit/policy.wit` by `weir policy contract > docs/plugin-contract.md`; a test compares. How to write a
plugin is in [plugins.md](plugins.md); the SDKs hide most of this.
";

struct Page<'a>(&'a Resolve);

impl Page<'_> {
    // Writing to a String cannot fail.
    fn interface(&self, out: &mut String, name: &str, interface: &Interface) {
        let _ = write!(
            out,
            "\n## Interface `{name}`\n\n{}\n",
            paragraphs(&interface.docs)
        );
        for function in interface.functions.values() {
            self.function(out, function);
        }
        for id in interface.types.values() {
            self.definition(out, &self.0.types[*id]);
        }
    }

    fn function(&self, out: &mut String, function: &Function) {
        let params = function.params.iter();
        let params: Vec<_> = params
            .map(|param| format!("{}: {}", param.name, self.name(&param.ty)))
            .collect();
        let result = function.result.as_ref();
        let result = result.map_or_else(String::new, |ty| format!(" -> {}", self.name(ty)));
        let _ = write!(
            out,
            "\n### `{}({}){result}`\n\n{}\n",
            function.name,
            params.join(", "),
            paragraphs(&function.docs)
        );
    }

    fn definition(&self, out: &mut String, ty: &TypeDef) {
        let name = ty.name.as_deref().unwrap_or_default();
        // What another interface defined is described there.
        if matches!(ty.kind, TypeDefKind::Type(_)) {
            return;
        }
        let kind = ty.kind.as_str();
        let _ = write!(out, "\n### {kind} `{name}`\n\n{}\n", paragraphs(&ty.docs));
        match &ty.kind {
            TypeDefKind::Record(record) => {
                out.push_str("\n| field | type | |\n|---|---|---|\n");
                for field in &record.fields {
                    let ty = self.name(&field.ty);
                    let _ = writeln!(out, "| `{}` | `{ty}` | {} |", field.name, cell(&field.docs));
                }
            }
            TypeDefKind::Enum(cases) => {
                out.push_str("\n| case | |\n|---|---|\n");
                for case in &cases.cases {
                    let _ = writeln!(out, "| `{}` | {} |", case.name, cell(&case.docs));
                }
            }
            _ => {}
        }
    }

    fn name(&self, ty: &Type) -> String {
        let Type::Id(id) = ty else {
            return format!("{ty:?}").to_lowercase();
        };
        let definition = &self.0.types[*id];
        if let Some(name) = &definition.name {
            return name.clone();
        }
        match &definition.kind {
            TypeDefKind::Option(inner) => format!("option<{}>", self.name(inner)),
            TypeDefKind::List(inner) => format!("list<{}>", self.name(inner)),
            TypeDefKind::Result(result) => {
                let part = |ty: &Option<Type>| ty.as_ref().map_or("_".into(), |ty| self.name(ty));
                format!("result<{}, {}>", part(&result.ok), part(&result.err))
            }
            other => other.as_str().to_owned(),
        }
    }
}

fn paragraphs(docs: &Docs) -> String {
    docs.contents
        .as_deref()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// In one cell of a table, line breaks kept where a list or a paragraph begins.
fn cell(docs: &Docs) -> String {
    let text = paragraphs(docs).replace('|', "\\|");
    let mut out = String::new();
    for line in text.lines() {
        let numbered = line.starts_with(|c: char| c.is_ascii_digit());
        let gap = match (out.is_empty(), numbered || line.is_empty()) {
            (true, _) => "",
            (false, true) => "<br>",
            (false, false) => " ",
        };
        let _ = write!(out, "{gap}{}", line.trim());
    }
    out.replace("<br><br>", "<br>").replace("<br> ", "<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_page_is_current() {
        let published = include_str!("../../../../docs/plugin-contract.md");
        assert!(
            page().unwrap() == published,
            "docs/plugin-contract.md is old; run `weir policy contract > docs/plugin-contract.md`"
        );
    }

    #[test]
    fn nothing_of_the_contract_is_without_a_word() {
        let page = page().unwrap();
        let empty: Vec<_> = page.lines().filter(|line| line.ends_with("|  |")).collect();
        assert!(empty.is_empty(), "{empty:#?}");
        let lines: Vec<_> = page.lines().collect();
        let headings = lines
            .windows(3)
            .filter(|three| three[0].starts_with("### "));
        for three in headings {
            assert!(three[1].is_empty() && !three[2].is_empty(), "{}", three[0]);
        }
    }
}
