//! The Merkle tree over records (RFC 6962 section 2.1, SHA-256) and the links between neighbours.
//!
//! The tree gives one root for all records up to a size: whoever holds an old root can tell any change, cut or
//! roll-back of what it covers. The links are there to *name* the first record that was changed; a forger can redo
//! them, a root kept elsewhere he cannot. Pure: no file, no clock.

use sha2::{Digest, Sha256};

/// A SHA-256 hash.
pub(crate) type Hash = [u8; 32];
/// What ties a record to all before it.
pub(crate) type Link = [u8; 16];

/// Roots of the perfect subtrees there can be: one per bit of the size.
const FRONTIER_MAX: usize = 64;

/// The tree, as the roots of its perfect subtrees from the largest to the smallest: enough to grow and to give the
/// root, and never more than 64 hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    size: u64,
    frontier: Vec<Hash>,
}

impl Tree {
    /// The tree of `size` leaves with that frontier; `None` if there is no such tree.
    pub(crate) fn from_parts(size: u64, frontier: Vec<Hash>) -> Option<Tree> {
        let fits = frontier.len() == size.count_ones() as usize && frontier.len() <= FRONTIER_MAX;
        fits.then_some(Tree { size, frontier })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn frontier(&self) -> &[Hash] {
        &self.frontier
    }

    pub(crate) fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        for _ in 0..self.size.trailing_ones() {
            let left = self
                .frontier
                .pop()
                .expect("one subtree per bit of the size");
            node = node_hash(&left, &node);
        }
        self.frontier.push(node);
        self.size += 1;
    }

    pub(crate) fn root(&self) -> Hash {
        let mut smallest_first = self.frontier.iter().rev();
        match smallest_first.next() {
            None => Sha256::digest([]).into(),
            Some(smallest) => smallest_first.fold(*smallest, |right, left| node_hash(left, &right)),
        }
    }
}

/// The tree and the last link: all that is needed to append the next record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) tree: Tree,
    pub(crate) link: Link,
}

impl Chain {
    /// Takes in the next record's bytes and gives the link that belongs to it.
    pub(crate) fn push(&mut self, record: &[u8]) -> Link {
        let leaf = leaf_hash(record);
        self.tree.push(leaf);
        self.link = next_link(&self.link, &leaf);
        self.link
    }

    /// [`Chain::push`] if the record has that link; otherwise nothing changes and the answer is false.
    pub(crate) fn push_if(&mut self, record: &[u8], link: &Link) -> bool {
        let leaf = leaf_hash(record);
        let fits = next_link(&self.link, &leaf) == *link;
        if fits {
            self.tree.push(leaf);
            self.link = *link;
        }
        fits
    }
}

/// RFC 6962: `SHA-256(0x00 || record)`.
fn leaf_hash(record: &[u8]) -> Hash {
    Sha256::new()
        .chain_update([0])
        .chain_update(record)
        .finalize()
        .into()
}

/// RFC 6962: `SHA-256(0x01 || left || right)`.
fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new()
        .chain_update([1])
        .chain_update(left)
        .chain_update(right)
        .finalize()
        .into()
}

fn next_link(link: &Link, leaf: &Hash) -> Link {
    let hash: Hash = Sha256::new()
        .chain_update(link)
        .chain_update(leaf)
        .finalize()
        .into();
    let mut next = Link::default();
    next.copy_from_slice(&hash[..16]);
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    /// Leaves and roots of the reference test of Certificate Transparency.
    const LEAVES: [&str; 8] = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ];
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn roots_are_those_of_certificate_transparency() {
        let mut tree = Tree::default();
        assert_eq!(hex::encode(&tree.root()), ROOTS[0]);
        for (leaf, root) in LEAVES.iter().zip(&ROOTS[1..]) {
            let digits = leaf.as_bytes().chunks(2);
            let bytes: Vec<u8> = digits
                .map(|pair| hex::decode_array::<1>(pair).unwrap()[0])
                .collect();
            tree.push(leaf_hash(&bytes));
            assert_eq!(hex::encode(&tree.root()), *root);
        }
    }

    /// The definition of RFC 6962, word for word.
    fn root_by_definition(leaves: &[Vec<u8>]) -> Hash {
        match leaves {
            [] => Sha256::digest([]).into(),
            [leaf] => leaf_hash(leaf),
            _ => {
                let mut split = 1;
                while split * 2 < leaves.len() {
                    split *= 2;
                }
                node_hash(
                    &root_by_definition(&leaves[..split]),
                    &root_by_definition(&leaves[split..]),
                )
            }
        }
    }

    #[test]
    fn growing_gives_the_root_of_the_definition_at_every_size_and_from_every_frontier() {
        let leaves: Vec<Vec<u8>> = (0_u32..300).map(|n| n.to_be_bytes().to_vec()).collect();
        let mut tree = Tree::default();
        for (size, leaf) in leaves.iter().enumerate() {
            assert_eq!(tree.root(), root_by_definition(&leaves[..size]), "{size}");
            tree = Tree::from_parts(tree.size(), tree.frontier().to_vec()).unwrap();
            tree.push(leaf_hash(leaf));
        }
    }

    #[test]
    fn a_frontier_must_fit_its_size() {
        assert_eq!(Tree::from_parts(3, vec![[0; 32]]), None);
        assert_eq!(Tree::from_parts(0, vec![[0; 32]]), None);
        assert!(Tree::from_parts(4, vec![[0; 32]]).is_some());
    }
}
