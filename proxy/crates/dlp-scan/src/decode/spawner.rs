//! Makes the children of a node, within the budget.

use super::beside;
use crate::blob::{self, Blob};
use crate::scanner::NODES_MAX;
use crate::text::{Fresh, Node, Parent, Span};
use crate::{Layer, OverBudget};

/// Makes children, within the budget.
pub(crate) struct Spawner<'a> {
    pub nodes: &'a mut Vec<Node>,
    pub free: &'a mut Vec<Node>,
    pub bytes_left: &'a mut u32,
    pub depth_max: u8,
    pub over: &'a mut Option<OverBudget>,
    pub parent: u32,
    pub parent_depth: u8,
    /// The parent's, and its parent's.
    pub layers_above: [Option<Layer>; 2],
    pub parent_coded: u8,
    pub parent_only_injection: bool,
    pub parent_only_sure: bool,
    pub parent_turned: bool,
    pub parent_fragments: bool,
    /// The parent is another way to read what stands in its own, and no code.
    pub parent_is_reading: bool,
    pub parent_fresh: Fresh,
    /// Where the parent's calls were replaced.
    pub parent_made: &'a [Span],
    /// Where the parent is noise.
    pub parent_blobs: &'a [Blob],
    /// What the parent took over from noise.
    pub parent_noise: &'a [Span],
    /// The children that calls beside each other share, as long as they may go on.
    pub shared: Vec<beside::Shared>,
}

/// What each text above so many costs besides its bytes: it takes some memory, and a look of every detector and decoder.
const NODES_FREE: usize = 1024;
const NODE_BYTES: usize = 64;

/// Under so many codes that somebody wrote, another way to read what came of them is left out by nobody's choice but his.
const CODED_MIN: u8 = 2;

/// Is it another way to read what stands there, which ordinary text may have as well, and no code?
pub(crate) fn is_reading(layer: Layer) -> bool {
    matches!(
        layer,
        Layer::Joined
            | Layer::Concat
            | Layer::Spaced
            | Layer::Reversed
            | Layer::Rot13
            | Layer::Leet
            | Layer::Fold
            | Layer::Table
            | Layer::Number
            | Layer::Wrapped
    )
}

/// Is it a code whose digits or sums show that somebody wrote it?
fn is_proven(layer: Layer) -> bool {
    matches!(
        layer,
        Layer::Base64
            | Layer::Base32
            | Layer::Base58
            | Layer::Hex
            | Layer::Gzip
            | Layer::Zlib
            | Layer::Bzip2
            | Layer::Xz
            | Layer::Zstd
            | Layer::Json
    )
}

impl Spawner<'_> {
    /// An empty child, or nothing if the depth is used up and nobody can have hidden anything deeper.
    pub fn begin(&mut self, layer: Layer) -> Option<Node> {
        if self.parent_only_sure && self.parent_is_reading && is_reading(layer) {
            // Of noise every reading gives another.
            return None;
        }
        if self.layers_above == [Some(layer); 2] && matches!(layer, Layer::Spaced | Layer::Joined) {
            // A value is parted by one sign or by two. From there on each reading is one of the reading before.
            return None;
        }
        // One that lies too deep is made as well: only then it is known whether there is anything new in it.
        if self.is_deepest() && !self.counts_to_depth(layer) {
            return None;
        }
        let mut node = self.free.pop().unwrap_or_default();
        node.clear();
        node.parent = Parent::Node(self.parent);
        node.layer = Some(layer);
        node.depth = self.parent_depth + 1;
        node.coded = self.parent_coded + u8::from(is_proven(layer) && layer != Layer::Json);
        node.only_injection = self.parent_only_injection;
        node.only_sure = self.parent_only_sure;
        // What stands behind a code is as whole as whoever wrote it left it.
        node.fragments = self.parent_fragments && !is_proven(layer);
        node.turned =
            self.parent_turned || matches!(layer, Layer::Reversed | Layer::Rot13 | Layer::Leet);
        Some(node)
    }

    /// Whether nobody can have left out what lies under the last layer.
    fn counts_to_depth(&self, layer: Layer) -> bool {
        if self.parent_only_sure {
            // Signs of the weaker codes stand between words that are printable by chance.
            return is_proven(layer) && !self.parent_is_reading;
        }
        if self.parent_only_injection {
            // Without the reading that made it so, what lies deeper is reached earlier.
            return false;
        }
        // Ordinary text can be put together, taken apart and read with figures for letters for as long as one likes.
        !is_reading(layer) || self.parent_coded >= CODED_MIN && !self.parent_turned
    }

    /// Puts a child to the others, if it holds something new and its bytes can be afforded. What was made only of
    /// the parent's surroundings has been made of its parent, too: without that rule, neighbours that are encoded in
    /// different ways would be decoded again in every order.
    pub fn end(&mut self, mut node: Node) {
        let made_of = node.find_fresh();
        let of_noise =
            node.layer.is_some_and(is_reading) && blob::covers(self.parent_blobs, made_of);
        if of_noise || !self.is_new(made_of, Fresh::touches) {
            self.free.push(node);
            return;
        }
        if node.depth > self.depth_max {
            if !node.cells.is_empty() {
                self.over.get_or_insert(OverBudget::Depth);
            }
            self.free.push(node);
            return;
        }
        if !self.parent_blobs.is_empty() || !self.parent_noise.is_empty() {
            node.note_noise(self.parent_blobs, self.parent_noise);
        }
        if self.nodes.len() >= NODES_MAX {
            self.over.get_or_insert(OverBudget::DecodedBytes);
            self.free.push(node);
            return;
        }
        let is_free = self.nodes.len() < NODES_FREE;
        let own = if is_free { 0 } else { NODE_BYTES };
        let cost = crate::text::to_u32(node.text.len() + own);
        match self.bytes_left.checked_sub(cost) {
            Some(left) if !node.cells.is_empty() => {
                *self.bytes_left = left;
                self.nodes.push(node);
            }
            Some(_) => self.free.push(node),
            None => {
                self.over.get_or_insert(OverBudget::DecodedBytes);
                self.free.push(node);
            }
        }
    }

    /// Is a piece of the parent together with anything that the parent's decoder made?
    pub fn is_new(&self, piece: Span, together: impl Fn(Fresh, Span) -> bool) -> bool {
        if self.parent_made.is_empty() {
            return together(self.parent_fresh, piece);
        }
        let before = |made: &Span| made.end < piece.start;
        let near = &self.parent_made[self.parent_made.partition_point(before)..];
        let mut near = near.iter().take_while(|made| made.start <= piece.end);
        near.any(|made| together(Fresh::from(*made), piece))
    }

    pub fn drop(&mut self, node: Node) {
        self.free.push(node);
    }

    /// How many layers may lie under the one that is made.
    pub fn layers_left(&self) -> u8 {
        self.depth_max.saturating_sub(self.parent_depth + 1)
    }

    /// Is there no layer left for a child?
    pub fn is_deepest(&self) -> bool {
        self.parent_depth >= self.depth_max
    }

    /// Pays for what was unpacked in vain: with half of what is left, so that many such pieces together cost no more than
    /// one, and something is left for others.
    pub fn waste(&mut self) {
        *self.bytes_left /= 2;
    }

    /// Pays for what was unpacked and is no text.
    pub fn pay(&mut self, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        *self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// How much a decoder may produce at most.
    pub fn room(&self) -> usize {
        *self.bytes_left as usize
    }
}
