//! Tool names against patterns: exact names and globs.
//!
//! `*` matches any run of characters, also across `/`; `?` one character; `[a-z]` one of a class;
//! `{a,b}` one of several. Names are compared as they are: nothing is folded.

use domain::ToolAccess;
use globset::{GlobBuilder, GlobMatcher};

use crate::error::Problem;

/// The longest glob that may be written, in bytes.
pub(crate) const GLOB_LEN_MAX: usize = 256;
/// Most globs in one allow or deny list.
pub(crate) const TOOLS_MAX: usize = 1024;

/// A compiled [`ToolAccess`]: which tools may be called. Deny wins; an empty allow list allows all.
///
/// ```
/// # use domain::ToolAccess;
/// # use dlp_policy::ToolFilter;
/// let access = ToolAccess { allow: vec!["read_*".into()], deny: vec!["read_secrets".into()] };
/// let filter = ToolFilter::compile(&access).unwrap();
/// assert!(filter.allows("read_file"));
/// assert!(!filter.allows("read_secrets"));
/// assert!(!filter.allows("write_file"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
}

impl ToolFilter {
    /// Compiles both lists.
    ///
    /// # Errors
    /// The field (`allow[2]`) and what is wrong with it.
    pub fn compile(access: &ToolAccess) -> Result<Self, (String, Problem)> {
        let (filter, problems) = Self::compile_all(access);
        problems.into_iter().next().map_or(Ok(filter), Err)
    }

    /// Compiles both lists without the globs that are none.
    pub fn compile_all(access: &ToolAccess) -> (Self, Vec<(String, Problem)>) {
        let mut problems = Vec::new();
        let filter = Self {
            allow: compile_list("allow", &access.allow, &mut problems),
            deny: compile_list("deny", &access.deny, &mut problems),
        };
        (filter, problems)
    }

    /// Whether this tool may be called.
    pub fn allows(&self, tool: &str) -> bool {
        let any = |list: &[Pattern]| list.iter().any(|p| p.matches(tool));
        !any(&self.deny) && (self.allow.is_empty() || any(&self.allow))
    }
}

fn compile_list(
    name: &str,
    globs: &[String],
    problems: &mut Vec<(String, Problem)>,
) -> Vec<Pattern> {
    if globs.len() > TOOLS_MAX {
        let problem = Problem::TooMany {
            count: globs.len(),
            max: TOOLS_MAX,
        };
        problems.push((name.to_owned(), problem));
        return Vec::new();
    }
    let mut patterns = Vec::with_capacity(globs.len());
    for (i, glob) in globs.iter().enumerate() {
        match Pattern::parse(glob) {
            Ok(pattern) => patterns.push(pattern),
            Err(problem) => problems.push((format!("{name}[{i}]"), problem)),
        }
    }
    patterns
}

/// One pattern over names.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// This name and no other.
    Exact(Box<str>),
    /// Every name the glob matches.
    Glob(GlobMatcher),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let bad = |why: String| Problem::BadGlob {
            glob: text.chars().take(GLOB_LEN_MAX).collect(),
            why,
        };
        if text.is_empty() || text.len() > GLOB_LEN_MAX {
            return Err(bad(format!("it must have 1 to {GLOB_LEN_MAX} bytes")));
        }
        if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            return Ok(Self::Exact(text.into()));
        }
        GlobBuilder::new(text)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
            .map(|g| Self::Glob(g.compile_matcher()))
            .map_err(|e| bad(e.kind().to_string()))
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *name,
            Self::Glob(glob) => glob.is_match(name),
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_as_they_are() {
        let cases = [
            ("read", "read", true),
            ("read", "Read", false),
            ("read", "read_file", false),
            ("read*", "read_file", true),
            ("*", "", true),
            ("*", "fs/read:x", true),
            ("fs/*", "fs/a/b", true),
            ("fs/?", "fs/a", true),
            ("fs/?", "fs/ab", false),
            ("{get,list}_*", "list_x", true),
            ("{get,list}_*", "put_x", false),
            ("[a-c]x", "bx", true),
            ("a.c", "abc", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
        ];
        for (glob, name, expected) in cases {
            let got = Pattern::parse(glob).unwrap().matches(name);
            assert_eq!(got, expected, "{glob} against {name}");
        }
    }

    #[test]
    fn bad_globs_name_themselves() {
        for glob in ["", "[a", "{a", "a]{", &"x".repeat(GLOB_LEN_MAX + 1)] {
            assert!(
                matches!(Pattern::parse(glob), Err(Problem::BadGlob { .. })),
                "{glob}"
            );
        }
        let long = ToolAccess {
            allow: vec!["a".into(); TOOLS_MAX + 1],
            deny: vec![],
        };
        let (field, problem) = ToolFilter::compile(&long).unwrap_err();
        assert_eq!(field, "allow");
        assert!(matches!(problem, Problem::TooMany { .. }));
        let bad = ToolAccess {
            allow: vec![],
            deny: vec!["ok".into(), "[".into()],
        };
        assert_eq!(ToolFilter::compile(&bad).unwrap_err().0, "deny[1]");
    }

    #[test]
    fn deny_wins_and_an_empty_allow_list_allows_all() {
        let cases: [(&[&str], &[&str], &str, bool); 6] = [
            (&[], &[], "x", true),
            (&["x"], &[], "x", true),
            (&["x"], &[], "y", false),
            (&[], &["x"], "x", false),
            (&["*"], &["x*"], "xy", false),
            (&["a", "b*"], &[], "bc", true),
        ];
        for (allow, deny, tool, expected) in cases {
            let own = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
            let access = ToolAccess {
                allow: own(allow),
                deny: own(deny),
            };
            let filter = ToolFilter::compile(&access).unwrap();
            assert_eq!(filter.allows(tool), expected, "{allow:?} {deny:?} {tool}");
        }
    }
}
