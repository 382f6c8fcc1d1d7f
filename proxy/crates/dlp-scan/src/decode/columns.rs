//! Tables in JSON: `{"columns": ["id", "ssn"], "rows": [[1, "..."]]}`, or rows of which the first names the columns. The
//! names may stand before the rows or after them; what they are to whom is known when all is read.

use std::collections::HashSet;
use std::sync::LazyLock;

use smallvec::SmallVec;

use crate::LeafKind;
use crate::layout::Field;
use crate::names::{self, Promise};
use crate::text::{Node, Span, to_u32};

/// The least that a first row has which names the columns.
const FIRST_ROW_MIN: usize = 3;
/// Longest name of a column, and most words of it, in a first row.
const HEAD_BYTES_MAX: usize = 64;
const HEAD_WORDS_MAX: usize = 5;

/// Is it a name of the list that says what stands in a table's columns?
fn names_columns(name: &[u8]) -> bool {
    matches!(
        name,
        b"columns"
            | b"cols"
            | b"fields"
            | b"headers"
            | b"header"
            | b"columnNames"
            | b"column_names"
            | b"head"
    )
}

/// Is it a name of the list of a table's rows?
fn names_rows(name: &[u8]) -> bool {
    matches!(
        name,
        b"rows" | b"data" | b"values" | b"records" | b"results" | b"result" | b"table" | b"body"
    )
}

/// Is it a member that names the column which an object tells of?
fn names_head(name: &[u8]) -> bool {
    matches!(
        name,
        b"name"
            | b"column"
            | b"title"
            | b"label"
            | b"header"
            | b"headerName"
            | b"header_name"
            | b"field"
            | b"key"
            | b"displayName"
            | b"display_name"
            | b"caption"
            | b"text"
            | b"id"
    )
}

/// The tables of a text while it is read: how many cells came before is said each time. All that is kept is a few words for each value and each list, so the text bounds it.
#[derive(Default)]
pub(super) struct Tables {
    /// The objects with a table that are open, and the lists of which each element counts: names of columns, rows.
    open: Vec<Table>,
    watches: Vec<Watch>,
    /// The names of all columns, the lists of rows, and the fields of those.
    heads: Vec<Span>,
    lists: Vec<List>,
    fields: Vec<Placed>,
    /// The cells of first rows.
    first: Vec<u32>,
}

/// Some of the names.
#[derive(Clone, Copy, Default)]
struct Heads {
    from: u32,
    to: u32,
}

impl Heads {
    fn is_empty(self) -> bool {
        self.from == self.to
    }

    fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

struct Table {
    /// How many lists and objects are open in its object.
    depth: usize,
    /// The names that were read last in it, and those of a table around it.
    own: Heads,
    outer: Heads,
    /// The lists that may still find names in it.
    nameless: SmallVec<[u32; 2]>,
    /// Where the list of rows begins that was read last, and which it is.
    list: Option<(u32, u32)>,
}

struct Watch {
    depth: usize,
    what: Watched,
    /// From where on the cells of the element at hand are not yet looked at, which it is, and whether a table stood in it.
    from: usize,
    nth: u32,
    holds_table: bool,
}

#[derive(Clone, Copy)]
enum Watched {
    /// The names of columns, from this one on, in a list of this name.
    Heads(u32, Span),
    /// A row of this list.
    Row(u32),
}

struct List {
    name: Span,
    heads: Heads,
    outer: Heads,
    rows: u32,
    /// The cells of its first row, if that is strings and nothing else.
    first: Option<Heads>,
}

/// A value, and in which column of which list.
struct Placed {
    cell: u32,
    nth: u32,
    list: u32,
}

/// What is open around an array that begins.
pub(super) struct Around {
    /// How many lists and objects, with itself.
    pub depth: usize,
    /// It is a member of an object; or an element of an array that is one and begins there.
    pub member: bool,
    pub of_member: Option<u32>,
}

impl Tables {
    /// How deep the elements lie that are to be told of.
    pub fn watched(&self) -> usize {
        self.watches.last().map_or(0, |watch| watch.depth)
    }

    /// An array begins, and its first element comes next.
    pub fn array_opens(&mut self, around: &Around, name: Span, node: &Node, cells: usize) {
        let called = &node.text[name.range()];
        let reads_heads = |watch: &Watch| matches!(watch.what, Watched::Heads(..));
        let what = match around.of_member {
            // What describes a column is no table.
            _ if self.watches.last().is_some_and(reads_heads) => return,
            _ if around.member && names_columns(called) => {
                self.table(around.depth - 1);
                Watched::Heads(to_u32(self.heads.len()), name)
            }
            Some(at) if names_rows(called) => Watched::Row(self.row(around.depth - 2, at, name)),
            _ => return,
        };
        // What lies around a table is looked at now, and what is in it by nobody else: each cell once, however deep.
        self.fields_before(node, cells);
        if let Some(around) = self.watches.last_mut() {
            around.holds_table = true;
        }
        self.watches.push(Watch {
            depth: around.depth,
            what,
            from: cells,
            nth: 0,
            holds_table: false,
        });
    }

    /// The table of the object in which so much is open.
    fn table(&mut self, depth: usize) -> &mut Table {
        let last = self.open.last();
        if last.is_none_or(|last| last.depth != depth) {
            let outer = last.map_or(Heads::default(), |last| last.own.or(last.outer));
            self.open.push(Table {
                depth,
                own: Heads::default(),
                outer,
                nameless: SmallVec::new(),
                list: None,
            });
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// A row begins in a list that begins at `at`: which list it is.
    fn row(&mut self, depth: usize, at: u32, name: Span) -> u32 {
        let next = to_u32(self.lists.len());
        let first = to_u32(self.first.len());
        let table = self.table(depth);
        match table.list {
            Some((same, list)) if same == at => list,
            _ => {
                table.list = Some((at, next));
                let (heads, outer) = (table.own, table.outer);
                if heads.is_empty() {
                    table.nameless.push(next);
                }
                let first = Heads {
                    from: first,
                    to: first,
                };
                self.lists.push(List {
                    name,
                    heads,
                    outer,
                    rows: 0,
                    first: Some(first),
                });
                next
            }
        }
    }

    /// An element of the list that is watched was read.
    pub fn element_ended(&mut self, node: &Node, upto: usize) {
        let Some(watch) = self.watches.last() else {
            return;
        };
        let cells = &node.cells[watch.from..upto];
        match watch.what {
            Watched::Heads(_, list) => self.heads.push(head_in(cells, list, node)),
            Watched::Row(nth) => {
                let alone = matches!(cells, [one] if one.kind == LeafKind::String);
                let alone = alone && !watch.holds_table;
                let cell = to_u32(watch.from);
                let strings = self.fields_before(node, upto);
                let list = &mut self.lists[nth as usize];
                match &mut list.first {
                    Some(first) if list.rows == 0 && alone && strings == 1 => {
                        self.first.push(cell);
                        first.to += 1;
                    }
                    first if list.rows == 0 => *first = None,
                    _ => {}
                }
            }
        }
        if let Some(watch) = self.watches.last_mut() {
            watch.from = upto;
            watch.nth = watch.nth.saturating_add(1);
            watch.holds_table = false;
        }
    }

    /// Notes the fields of the row that is watched up to here; how many of them are strings.
    fn fields_before(&mut self, node: &Node, upto: usize) -> usize {
        let Some(watch) = self.watches.last_mut() else {
            return 0;
        };
        let Watched::Row(list) = watch.what else {
            return 0;
        };
        let from = std::mem::replace(&mut watch.from, upto);
        let name = self.lists[list as usize].name;
        let mut strings = 0;
        for (index, cell) in node.cells[from..upto].iter().enumerate() {
            if cell.kind == LeafKind::Key || cell.name != name {
                continue;
            }
            strings += usize::from(cell.kind == LeafKind::String);
            self.fields.push(Placed {
                cell: to_u32(from + index),
                nth: watch.nth,
                list,
            });
        }
        strings
    }

    /// Something was closed, and so much is open now.
    #[inline]
    pub fn closed(&mut self, depth: usize, cells: usize) {
        if !self.open.is_empty() {
            self.close(depth, cells);
        }
    }

    fn close(&mut self, depth: usize, cells: usize) {
        if let Some(watch) = self.watches.pop_if(|watch| watch.depth > depth) {
            match watch.what {
                Watched::Heads(from, _) => self.heads_ended(depth, from),
                Watched::Row(list) => {
                    let rows = &mut self.lists[list as usize].rows;
                    *rows = rows.saturating_add(1);
                }
            }
            if let Some(around) = self.watches.last_mut() {
                around.from = cells;
            }
        }
        self.open.pop_if(|table| table.depth > depth);
    }

    /// The names are known: those of the lists of rows that come, and of those that came before without any.
    fn heads_ended(&mut self, depth: usize, from: u32) {
        let to = to_u32(self.heads.len());
        if self.heads[from as usize..]
            .iter()
            .all(|head| head.is_empty())
        {
            return;
        }
        let table = self.table(depth);
        table.own = Heads { from, to };
        for list in std::mem::take(&mut table.nameless) {
            self.lists[list as usize].heads = Heads { from, to };
        }
    }

    /// All is read: the values get the names of their columns.
    pub fn finish(mut self, node: &mut Node) {
        if self.fields.is_empty() {
            return;
        }
        self.heads_from_first_rows(node);
        let mut fields = Vec::new();
        for placed in &self.fields {
            let list = &self.lists[placed.list as usize];
            let heads = list.heads.or(list.outer);
            let heads = &self.heads[heads.from as usize..heads.to as usize];
            let head = heads.get(placed.nth as usize).copied().unwrap_or_default();
            let cell = &mut node.cells[placed.cell as usize];
            if head.is_empty() || head == cell.span {
                continue;
            }
            cell.name = head;
            fields.push(Field {
                cell: placed.cell,
                at: cell.span.start,
                list: list.name,
                head,
            });
        }
        node.layout.set_fields(fields);
    }

    /// Lists that no names were given for have them in their first row, if it looks like that.
    fn heads_from_first_rows(&mut self, node: &Node) {
        let text = |cell: u32| &node.text[node.cells[cell as usize].span.range()];
        let mut judged: Vec<Option<FirstRow>> = Vec::with_capacity(self.lists.len());
        for list in &self.lists {
            let first = list.first.filter(|_| list.heads.is_empty());
            let cells = first.map(|first| &self.first[first.from as usize..first.to as usize]);
            let texts = cells.map(|cells| cells.iter().map(|cell| text(*cell)).collect());
            judged.push(texts.and_then(FirstRow::of));
        }
        for placed in &self.fields {
            let list = &self.lists[placed.list as usize];
            let row = &mut judged[placed.list as usize];
            // Its own cells come first, and the list keeps them.
            let own = |first: Heads| {
                let nth = first.from as usize + placed.nth as usize;
                self.first.get(nth) == Some(&placed.cell)
            };
            if let Some(first) = row.as_mut().filter(|_| !list.first.is_some_and(own)) {
                first.compare(placed.nth as usize, text(placed.cell));
            }
        }
        for (list, row) in self.lists.iter_mut().zip(judged) {
            let Some(first) = list.first.filter(|_| row.is_some_and(|row| row.is_heads())) else {
                continue;
            };
            let from = to_u32(self.heads.len());
            let cells = &self.first[first.from as usize..first.to as usize];
            let spans = cells.iter().map(|cell| node.cells[*cell as usize].span);
            self.heads.extend(spans);
            list.heads = Heads {
                from,
                to: to_u32(self.heads.len()),
            };
        }
    }
}

/// The name of a column: a string, or what says most in the object or list that tells of it. Empty where there is none, so
/// that the columns behind it keep their places.
fn head_in(cells: &[crate::text::Cell], list: Span, node: &Node) -> Span {
    let text = |span: Span| &node.text[span.range()];
    let strings = || cells.iter().filter(|c| c.kind == LeafKind::String);
    if let Some(own) = strings().find(|c| c.name == list) {
        return own.span;
    }
    let told = strings().filter(|c| names_head(text(c.name)));
    let says = |span: &Span| (names::promise(text(*span)), span.len());
    let best = told.map(|c| c.span).max_by_key(says);
    best.unwrap_or_default()
}

/// A first row that may be the names of the columns.
struct FirstRow<'n> {
    heads: Vec<Head<'n>>,
    repeats: bool,
}

struct Head<'n> {
    text: &'n [u8],
    /// It is a name by itself.
    sure: bool,
    /// The values under it have figures or signs in them which no name has: all that were seen.
    differs: Option<bool>,
}

impl<'n> FirstRow<'n> {
    fn of(texts: Vec<&'n [u8]>) -> Option<Self> {
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let alike = sorted.len() < texts.len();
        if texts.len() < FIRST_ROW_MIN || alike || !texts.iter().all(|text| may_head(text)) {
            return None;
        }
        let head = |text: &'n [u8]| Head {
            text,
            sure: is_head(text),
            differs: None,
        };
        Some(Self {
            heads: texts.into_iter().map(head).collect(),
            repeats: false,
        })
    }

    /// A value of a later row.
    fn compare(&mut self, nth: usize, value: &[u8]) {
        if let Some(head) = self.heads.get_mut(nth) {
            self.repeats |= head.text == value;
            let differs = value.iter().any(|b| b.is_ascii_digit() || *b == b'@');
            head.differs = Some(differs && head.differs != Some(false));
        }
    }

    /// Most of it are names of columns, by themselves or beside what stands under them.
    fn is_heads(&self) -> bool {
        let figures = |head: &Head<'_>| head.text.iter().any(u8::is_ascii_digit);
        let sure = |head: &&Head<'_>| head.sure || head.differs == Some(true) && !figures(head);
        !self.repeats && 2 * self.heads.iter().filter(sure).count() > self.heads.len()
    }
}

/// May it be the name of a column? No number is, no address, no sentence.
pub(super) fn may_head(text: &[u8]) -> bool {
    let letter = |b: u8| b.is_ascii_alphabetic() || b >= 0x80;
    let part = |b: &u8| letter(*b) || b.is_ascii_digit() || b" _-./()#&':".contains(b);
    let begins = text.first().is_some_and(|b| letter(*b) || *b == b'_');
    let words = text.split(|b| *b == b' ').count();
    begins && text.len() <= HEAD_BYTES_MAX && words <= HEAD_WORDS_MAX && text.iter().all(part)
}

/// What stands in rows and names no column: a number with more than one part or with a slash (`3.6.1`, `5:5.36.0-7`, `2024-05-03`,
/// `464/tcp`), a version (`v1`, `v0.37`), a path (`/usr/bin/x`).
pub(crate) fn is_measured(field: &[u8]) -> bool {
    let digits = |part: &[u8]| part.iter().take_while(|b| b.is_ascii_digit()).count();
    let of = |b: &u8| b.is_ascii_alphanumeric() || b".:-+~/_".contains(b);
    if !field.iter().all(of) {
        return false;
    }
    if field.starts_with(b"/") || field.starts_with(b"./") {
        return field.len() > 2;
    }
    let version = field.strip_prefix(b"v");
    let body = version.unwrap_or(field);
    let number = digits(body);
    match body.get(number) {
        _ if number == 0 => false,
        None => version.is_some(),
        Some(b'/') => true,
        Some(b'.' | b':' | b'-') => digits(&body[number + 1..]) > 0,
        Some(_) => false,
    }
}

/// Is it surely the name of a column: one that programs write, one that promises a secret, or with a word that tables have?
pub(super) fn is_head(text: &[u8]) -> bool {
    let camel = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    let mut words = text.split(|b| !b.is_ascii_alphabetic() && *b < 0x80);
    text.contains(&b'_')
        || text.windows(2).any(camel)
        || text.len() > 1 && names::promise(text) > Promise::Nothing
        || words.any(|word| {
            let mut lower = [0; KNOWN_BYTES_MAX];
            let Some(lower) = lower.get_mut(..word.len()) else {
                return false;
            };
            lower.copy_from_slice(word);
            lower.make_ascii_lowercase();
            KNOWN_WORDS.contains(&*lower)
        })
}

static KNOWN_WORDS: LazyLock<HashSet<&[u8]>> =
    LazyLock::new(|| KNOWN.split(' ').map(str::as_bytes).collect());
/// None of them is longer.
const KNOWN_BYTES_MAX: usize = 12;

/// Words in the heads of tables.
const KNOWN: &str = "\
    id uuid name surname first last user username login email mail phone tel telefon mobile fax address \
    street city zip postcode country state region date birth birthday dob created updated time timestamp \
    type status role host hostname server port url domain ip account iban bic swift bank card cvv expiry \
    number no nr amount price total quantity currency tax vat ssn passport insurance patient customer \
    client employee company department title gender age note notes comment description value key code \
    pin service vorname nachname geburtsdatum adresse ort plz land kunde konto datum betrag nombre \
    apellido correo fecha nom prenom ville";

#[cfg(test)]
mod tests {
    use super::{FirstRow, is_measured};
    use crate::LeafKind;
    use crate::decode::json;
    use crate::text::{Node, Span};

    /// The values that stand under a name.
    fn under(text: &str, head: &str) -> Vec<String> {
        let mut node = Node::default();
        assert!(json::walk(text.as_bytes(), 0, &mut node), "{text}");
        let show = |s: Span| String::from_utf8(node.text[s.range()].to_vec()).unwrap();
        let own = node.cells.iter().filter(|c| c.kind != LeafKind::Key);
        let own = own.filter(|c| show(c.name) == head);
        own.map(|c| show(c.span)).collect()
    }

    /// If each table asked those within it again, it would take minutes.
    #[test]
    fn tables_within_tables_cost_what_they_are_long() {
        let deep = 200_000;
        let open = r#"{"rows":[["x","#.repeat(deep);
        let close = r#"],"columns":["a"]}"#.replacen(']', "]]", 1).repeat(deep);
        assert_eq!(under(&format!("{open}1{close}"), "a").len(), deep);
    }

    #[test]
    fn heads_keep_their_places() {
        for (text, head, want) in [
            (
                r#"{"columns": [{"name": "pwd", "title": "Password"}, {"name": "mail", "title": "Mail"}], "data": [["a", "b"]]}"#,
                "Password",
                &["a"][..],
            ),
            (
                r#"{"columns": [null, 7, true, "pin"], "rows": [["a", "b", "c", "d"]]}"#,
                "pin",
                &["d"],
            ),
            (
                r#"{"columns": [["id", "int"], ["pin", "text"]], "rows": [[1, "b"]]}"#,
                "pin",
                &["b"],
            ),
            (
                r#"{"data": [["a", "b"]], "fields": ["id", "pin"]}"#,
                "pin",
                &["b"],
            ),
            (
                r#"{"data": [["a", "b"]], "fields": []}"#,
                "data",
                &["a", "b"],
            ),
            (
                r#"{"fields": ["id", "pin"], "result": {"rows": [["a", "b"]]}, "n": {"rows": 1}}"#,
                "pin",
                &["b"],
            ),
            (
                r#"{"fields": ["id", "pin"], "rows": [[{"rows": [["x", "y"]], "fields": ["u", "v"]}, "b"]]}"#,
                "pin",
                &["b"],
            ),
            (
                r#"{"fields": ["id", "pin"], "rows": [[{"rows": [["x", "y"]], "fields": ["u", "v"]}, "b"]]}"#,
                "v",
                &["y"],
            ),
            (r#"[{"rows": [["a"]]}, {"columns": ["pin"]}]"#, "pin", &[]),
        ] {
            assert_eq!(under(text, head), want, "{text}");
        }
        let heads: Vec<_> = (0..200).map(|n| format!("c{n}")).collect();
        let text = serde_json::json!({"columns": heads.clone(), "rows": [heads]}).to_string();
        assert_eq!(under(&text, "c199"), ["c199"]);
    }

    #[test]
    fn first_rows_that_look_like_names_are_heads() {
        let heads = |first: &[&'static str], later: &[&str]| {
            let row = FirstRow::of(first.iter().map(|text| text.as_bytes()).collect());
            row.is_some_and(|mut row| {
                for (nth, value) in later.iter().enumerate() {
                    row.compare(nth, value.as_bytes());
                }
                row.is_heads()
            })
        };
        for (first, later, want) in [
            (
                &["name", "email", "password"][..],
                &["Ann", "a@b.de", "x"][..],
                true,
            ),
            (
                &["Kürzel", "Steuer-ID", "Zimmer"],
                &["ab", "12", "7a"],
                true,
            ),
            (&["user_id", "shoeSize", "x"], &["a", "b", "c"], true),
            (
                &["1001", "Password", "Alice"],
                &["1002", "Outlook365", "Bob"],
                false,
            ),
            (
                &["Alice", "Password", "Outlook"],
                &["Bob", "Outlook365", "x"],
                false,
            ),
            (&["name", "email", "password"], &["name", "y", "z"], false),
            (&["name", "name", "password"], &["x", "y", "z"], false),
            (&["qa", "ws", "ed"], &["g", "h", "p"], false),
            (&["name", "password"], &["x", "y"], false),
        ] {
            assert_eq!(heads(first, later), want, "{first:?}");
        }
    }

    #[test]
    fn what_is_counted_or_versioned_names_no_column() {
        for field in [
            "2.7.1",
            "1:4.8.1-6ubuntu3",
            "2021-11-30",
            "09:14",
            "v2",
            "v1.29.3",
            "88/tcp",
            "/etc/shadow",
            "./run.sh",
        ] {
            assert!(is_measured(field.as_bytes()), "{field}");
        }
        for head in [
            "",
            "id",
            "2",
            "2fa",
            "v",
            "vat_1",
            "user/login",
            "e-mail",
            "name (1.2)",
            "Passwort",
            "/",
            "q1.2",
        ] {
            assert!(!is_measured(head.as_bytes()), "{head}");
        }
    }
}
