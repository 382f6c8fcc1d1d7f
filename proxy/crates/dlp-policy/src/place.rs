//! Patterns over the places of values, as audit records write them: `$.params.arguments.items[3].name`.

use crate::error::Problem;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 512;
/// Most steps of a pattern.
const STEPS_MAX: usize = 64;
/// What a path that was too long to be written in full holds.
const ELLIPSIS: char = '…';

/// A pattern over places.
#[derive(Debug, Clone)]
pub(crate) struct PlacePattern(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// This step, as it is written: `.name`, `["a key"]`, `[3]`, `{key}`.
    Exact(Box<str>),
    /// `*`: any one step.
    One,
    /// `**`: any number of steps.
    Many,
}

impl PlacePattern {
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let bad = |why| Problem::BadPath {
            path: text.chars().take(PATTERN_BYTES_MAX).collect(),
            why,
        };
        if text.len() > PATTERN_BYTES_MAX {
            return Err(bad("it is longer than 512 bytes"));
        }
        if text.contains(ELLIPSIS) {
            return Err(bad(
                "a path that was cut says not where the value is; use ** for the middle",
            ));
        }
        let steps = steps(text).map_err(bad)?;
        if steps == ["$"] || steps.len() > STEPS_MAX + 1 {
            return Err(bad("it needs 1 to 64 steps after the $"));
        }
        let steps = steps.into_iter().map(|step| match step {
            ".*" | "[*]" => Step::One,
            ".**" | "[**]" => Step::Many,
            exact => Step::Exact(exact.into()),
        });
        Ok(Self(steps.collect()))
    }

    /// Whether a place fits. One that was cut fits nothing: what is missing may be anything.
    pub(crate) fn matches(&self, place: &str) -> bool {
        if place.contains(ELLIPSIS) {
            return false;
        }
        let Ok(steps) = steps(place) else {
            return false;
        };
        // After each step of the place: which prefixes of the pattern fit so far.
        let mut fits = vec![false; self.0.len() + 1];
        fits[0] = true;
        self.skip_many(&mut fits);
        for step in steps {
            let mut next = vec![false; fits.len()];
            for (i, pattern) in self.0.iter().enumerate().filter(|(i, _)| fits[*i]) {
                match pattern {
                    Step::Exact(exact) => next[i + 1] |= **exact == *step,
                    Step::One => next[i + 1] = true,
                    Step::Many => next[i] = true,
                }
            }
            fits = next;
            self.skip_many(&mut fits);
        }
        fits[self.0.len()]
    }

    /// `**` may stand for nothing.
    fn skip_many(&self, fits: &mut [bool]) {
        for (i, step) in self.0.iter().enumerate() {
            if fits[i] && *step == Step::Many {
                fits[i + 1] = true;
            }
        }
    }
}

/// Cuts `$.a["b c"][3]{key}` into its steps, the `$` first. What does not begin with it (a header) is one step.
fn steps(text: &str) -> Result<Vec<&str>, &'static str> {
    let Some(mut rest) = text.strip_prefix('$') else {
        return match text.is_empty() || text.contains(['.', '*']) {
            true => Err("it does not begin with $"),
            false => Ok(vec![text]),
        };
    };
    let mut out = vec!["$"];
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' => name_end(rest)?,
            '[' if rest.starts_with("[\"") => quoted_end(rest)?,
            '[' => rest.find(']').ok_or("a [ is not closed")? + 1,
            '{' if rest == "{key}" || rest == "{masked}" => rest.len(),
            _ => return Err("a step begins with . or ["),
        };
        let (step, after) = rest.split_at(end);
        out.push(step);
        rest = after;
    }
    Ok(out)
}

fn name_end(rest: &str) -> Result<usize, &'static str> {
    if rest.starts_with(".{masked}") {
        return Ok(".{masked}".len());
    }
    let end = rest[1..]
        .find(['.', '[', '{'])
        .map_or(rest.len(), |n| n + 1);
    if end == 1 {
        return Err("a name is missing after a dot");
    }
    Ok(end)
}

fn quoted_end(rest: &str) -> Result<usize, &'static str> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(2) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' if rest[at + 1..].starts_with(']') => return Ok(at + 2),
            '"' => return Err("a quotation mark inside a key needs a backslash"),
            _ => {}
        }
    }
    Err("a [\" is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_places_step_by_step() {
        let cases = [
            ("$.params.arguments.to", "$.params.arguments.to", true),
            ("$.params.arguments.to", "$.params.arguments.to2", false),
            ("$.params.arguments.to", "$.params.arguments.to.x", false),
            ("$.params.arguments", "$.params.arguments.to", false),
            (
                "$.result.content[*].text",
                "$.result.content[12].text",
                true,
            ),
            (
                "$.result.content[*].text",
                "$.result.content[1].a.text",
                false,
            ),
            (
                "$.result.content[0].text",
                "$.result.content[1].text",
                false,
            ),
            ("$.result.**.id", "$.result.id", true),
            ("$.result.**.id", "$.result.a[3].b.id", true),
            ("$.result.**.id", "$.result.a.idx", false),
            ("$.**", "$.anything[1][\"a b\"]", true),
            ("$.**", "$", true),
            ("$.a.*", "$.a", false),
            ("$.a.*", "$.a[\"b.c\"]", true),
            // A key that is made to look like two steps stays one.
            ("$.a.b.c", "$.a[\"b.c\"]", false),
            ("$.a[\"b.c\"]", "$.a[\"b.c\"]", true),
            ("$.a[\"x\\\"]y\"]", "$.a[\"x\\\"]y\"]", true),
            ("$.a.to", "$.a.to{key}", false),
            ("$.a{key}", "$.a{key}", true),
            ("$.**.to", "$.a…b.to", false),
            ("header[0]", "header[0]", true),
            ("$.**", "header[0]", false),
        ];
        for (pattern, place, expected) in cases {
            let got = PlacePattern::parse(pattern).unwrap().matches(place);
            assert_eq!(got, expected, "{pattern} {place}");
        }
    }

    #[test]
    fn what_is_no_path_says_why() {
        let deep = format!("${}", ".a".repeat(STEPS_MAX + 1));
        let long = format!("$.{}", "a".repeat(PATTERN_BYTES_MAX));
        for (bad, why) in [
            ("", "begin with $"),
            ("params.to", "begin with $"),
            ("$", "1 to 64"),
            ("$x", "begins with . or ["),
            ("$.", "name is missing"),
            ("$..a", "name is missing"),
            ("$[3", "not closed"),
            ("$[\"a", "not closed"),
            ("$[\"a\"b\"]", "backslash"),
            ("$.a…", "was cut"),
            (&deep, "1 to 64"),
            (&long, "longer"),
        ] {
            let error = PlacePattern::parse(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
