//! Two definitions side by side, line by line, for a person who decides.

use std::io::Write;

use domain::{Definition, ToolPin};

use super::escaped;

/// Lines around what differs.
const AROUND: usize = 3;
/// Most pairs of lines that are compared; above it all lines of one text go and all of the other come.
const PAIRS_MAX: usize = 4_000_000;

/// Shows the approved definition against the last other one.
pub fn write(tool: &str, pin: &ToolPin, out: &mut dyn Write) -> std::io::Result<()> {
    let Some(other) = &pin.other else {
        return Ok(());
    };
    let hash = |definition: Option<&Definition>| match definition {
        Some(definition) => definition.sha256.get(..12).unwrap_or_default().to_owned(),
        None => "nothing".to_owned(),
    };
    let approved = pin.approved.as_ref();
    let tool = escaped(tool);
    writeln!(out, "--- {tool} approved ({})", hash(approved))?;
    let now = if pin.lists_other {
        "listed now"
    } else {
        "listed before"
    };
    writeln!(out, "+++ {tool} {now} ({})", hash(Some(other)))?;
    let (Some(before), Some(after)) = (lines(approved), lines(Some(other))) else {
        return writeln!(out, "the definition is too long: only its hash is kept");
    };
    for line in unified(&before, &after) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The definition over several lines, everything in it visible. `None`: its text was not kept.
fn lines(definition: Option<&Definition>) -> Option<Vec<String>> {
    let Some(definition) = definition else {
        return Some(Vec::new());
    };
    let text = definition.text.as_ref()?;
    let value: Result<serde_json::Value, _> = serde_json::from_str(text);
    // What is no JSON any more is shown as it is.
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    let pretty = pretty.unwrap_or_else(|_| text.clone());
    Some(
        pretty
            .lines()
            .map(|line| escaped(line).into_owned())
            .collect(),
    )
}

/// Whether a line is in both, went, or came; with it.
type Step<'a> = (char, &'a str);

fn unified(before: &[String], after: &[String]) -> Vec<String> {
    let steps = steps(before, after);
    let near = |at: usize| {
        let around = &steps[at.saturating_sub(AROUND)..(at + AROUND + 1).min(steps.len())];
        around.iter().any(|(sign, _)| *sign != ' ')
    };
    let mut out = Vec::new();
    let (mut old, mut new, mut shown) = (1, 1, false);
    for (at, (sign, line)) in steps.iter().enumerate() {
        let is_near = near(at);
        if is_near && !shown {
            out.push(format!("@@ -{old} +{new} @@"));
        }
        shown = is_near;
        if is_near {
            out.push(format!("{sign}{line}"));
        }
        old += usize::from(*sign != '+');
        new += usize::from(*sign != '-');
    }
    out
}

fn steps<'a>(before: &'a [String], after: &'a [String]) -> Vec<Step<'a>> {
    let same = |pair: &(&String, &String)| pair.0 == pair.1;
    let head = before.iter().zip(after).take_while(same).count();
    let (rest, others) = (&before[head..], &after[head..]);
    let tail = rest.iter().rev().zip(others.iter().rev());
    let tail = tail.take_while(same).count();
    let (gone, come) = (&rest[..rest.len() - tail], &others[..others.len() - tail]);
    let mut steps: Vec<Step<'a>> = before[..head].iter().map(|line| (' ', &**line)).collect();
    match gone.len() * come.len() <= PAIRS_MAX {
        true => steps.extend(compared(gone, come)),
        false => {
            steps.extend(gone.iter().map(|line| ('-', &**line)));
            steps.extend(come.iter().map(|line| ('+', &**line)));
        }
    }
    steps.extend(rest[rest.len() - tail..].iter().map(|line| (' ', &**line)));
    steps
}

/// By the longest common subsequence.
fn compared<'a>(gone: &'a [String], come: &'a [String]) -> Vec<Step<'a>> {
    let width = come.len() + 1;
    let mut common = vec![0u32; (gone.len() + 1) * width];
    for i in (0..gone.len()).rev() {
        for j in (0..come.len()).rev() {
            common[i * width + j] = match gone[i] == come[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::new();
    while i < gone.len() || j < come.len() {
        let both = i < gone.len() && j < come.len();
        if both && gone[i] == come[j] {
            steps.push((' ', &*gone[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == come.len()
            || both && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            steps.push(('-', &*gone[i]));
            i += 1;
        } else {
            steps.push(('+', &*come[j]));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_went_and_came_is_shown_with_what_is_around_it() {
        for (before, after, shown) in [
            ("a b c", "a b c", ""),
            ("a b c", "a x c", "@@ -1 +1 @@ | a|-b|+x| c"),
            ("", "a b", "@@ -1 +1 @@ |+a|+b"),
            (
                "1 2 3 4 5 6 7 8 9",
                "1 2 3 4 5 6 7 8 x 9",
                "@@ -6 +6 @@ | 6| 7| 8|+x| 9",
            ),
            (
                "a 1 2 3 4 5 6 7 8 b",
                "x 1 2 3 4 5 6 7 8 y",
                "@@ -1 +1 @@ |-a|+x| 1| 2| 3|@@ -7 +7 @@ | 6| 7| 8|-b|+y",
            ),
            ("a b c d", "b d e", "@@ -1 +1 @@ |-a| b|-c| d|+e"),
        ] {
            let lines = unified(&of(before), &of(after)).join("|");
            assert_eq!(lines, shown.replace("@@ |", "@@|"), "{before} / {after}");
        }
        let many =
            |letter: &str| -> Vec<String> { (0..2100).map(|n| format!("{letter}{n}")).collect() };
        assert_eq!(unified(&many("a"), &many("b")).len(), 4201);
    }

    #[test]
    fn nothing_of_a_definition_hides() {
        let definition = |text: &str| Definition {
            sha256: "0".repeat(64),
            text: Some(text.to_owned()),
        };
        let pin = ToolPin {
            first_seen_unix_s: 0,
            approved: Some(definition(r#"{"description":"reads","name":"a"}"#)),
            other: Some(definition(
                "{\"description\":\"reads\u{200b}\u{e0041}\u{202e}\u{9b}2J\",\"name\":\"a\"}",
            )),
            lists_other: true,
        };
        let mut out = Vec::new();
        write("a", &pin, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let shown = r#"+  "description": "reads\u{200b}\u{e0041}\u{202e}\u{9b}2J","#;
        assert!(out.contains(shown), "{out}");
        assert!(
            out.contains("-  \"description\": \"reads\",") && out.is_ascii(),
            "{out}"
        );
    }
}
