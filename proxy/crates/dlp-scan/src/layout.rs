//! How the cells of a JSON text lay in it: which object each is a member of, and which column of a table. Cells alone
//! say only what stands over them.

use crate::text::{Cell, Span, to_u32};

/// No object is open.
pub(crate) const NO_OBJECT: u32 = u32::MAX;

/// Of texts that are no JSON it is empty.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The names over the objects, and from which cell on which of them is the innermost.
    objects: Vec<Span>,
    turns: Vec<Turn>,
    /// The fields that stand in a column with a name, by their cells; their places there by those names.
    fields: Vec<Field>,
    by_head: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    cell: u32,
    object: u32,
}

/// One value in a row of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub cell: u32,
    /// Where the cell begins.
    pub at: u32,
    /// The name of the list of rows: what stood over the value before its column gave it a name.
    pub list: Span,
    pub head: Span,
}

impl Layout {
    pub fn clear(&mut self) {
        self.objects.clear();
        self.turns.clear();
        self.fields.clear();
        self.by_head.clear();
    }

    /// From this cell on, all lies in a new object.
    pub fn opened(&mut self, name: Span, cell: usize) -> u32 {
        let object = to_u32(self.objects.len());
        self.objects.push(name);
        self.turned(object, cell);
        object
    }

    /// From this cell on, this object is the innermost again.
    pub fn turned(&mut self, object: u32, cell: usize) {
        let cell = to_u32(cell);
        match self.turns.last_mut() {
            // Nothing stood in the one before: a text may be nothing but empty objects.
            Some(last) if last.cell == cell => last.object = object,
            _ => self.turns.push(Turn { cell, object }),
        }
    }

    /// How much memory it holds on to.
    pub fn bytes_kept(&self) -> usize {
        self.objects.capacity() * size_of::<Span>()
            + self.turns.capacity() * size_of::<Turn>()
            + self.fields.capacity() * size_of::<Field>()
            + self.by_head.capacity() * size_of::<u32>()
    }

    /// The innermost object that a cell lies in.
    pub fn object_of(&self, cell: usize) -> Option<u32> {
        let upto = self.turns.partition_point(|t| t.cell as usize <= cell);
        let object = self.turns.get(upto.checked_sub(1)?)?.object;
        (object != NO_OBJECT).then_some(object)
    }

    pub fn name_of(&self, object: u32) -> Span {
        self.objects
            .get(object as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The fields of all tables, in any order.
    pub fn set_fields(&mut self, mut fields: Vec<Field>) {
        fields.sort_unstable_by_key(|f| f.at);
        self.by_head.extend(0..to_u32(fields.len()));
        let place = |nth: &u32| (fields[*nth as usize].head, *nth);
        self.by_head.sort_unstable_by_key(place);
        self.fields = fields;
    }

    pub fn has_tables(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The cells in the column that has this name.
    pub fn column(&self, head: Span) -> impl Iterator<Item = usize> {
        let field = |nth: &u32| self.fields[*nth as usize];
        let from = self.by_head.partition_point(|nth| field(nth).head < head);
        let under = self.by_head[from..].iter().map(field);
        under
            .take_while(move |f| f.head == head)
            .map(|f| f.cell as usize)
    }

    /// Do two cells lie in one array, or under one and the same name? The columns of a table have names of their own, its
    /// rows are one list nevertheless.
    pub fn are_together(&self, a: &Cell, b: &Cell) -> bool {
        a.name == b.name || !self.fields.is_empty() && self.list_of(a) == self.list_of(b)
    }

    /// The name of the array that a cell lies in.
    fn list_of(&self, cell: &Cell) -> Span {
        let found = self.fields.binary_search_by_key(&cell.span.start, |f| f.at);
        found.map_or(cell.name, |nth| self.fields[nth].list)
    }
}
