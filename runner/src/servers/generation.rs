//! Which sandboxes of a server are today's. Its name is drawn anew whenever all of them are told to end, and written down
//! before they are: a runner that is killed in the midst of it goes on with that, and gives no old one to anybody.

use std::path::PathBuf;

use crate::context::random_name;
use crate::store;

pub(super) struct Generation {
    path: PathBuf,
    name: String,
}

impl Generation {
    /// As an earlier life left it. If that did not write it down, another one than any of its sandboxes has.
    pub fn find(path: PathBuf) -> Self {
        match store::get(&path) {
            Some(name) => Self { path, name },
            None => {
                let mut own = Self {
                    path,
                    name: String::new(),
                };
                own.renew();
                own
            }
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// All that is there now is of another one.
    pub fn renew(&mut self) {
        self.name = random_name();
        if let Err(error) = store::put(&self.path, &self.name) {
            tracing::error!(%error, "that a server's sandboxes are drained cannot be written down");
            // With none at all the next life drains them too.
            store::remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_until_it_is_renewed_or_cannot_be_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("one.json");
        let find = || Generation::find(path.clone());
        let mut first = find();
        let before = first.name().to_owned();
        assert_eq!(find().name(), before, "another life");
        first.renew();
        assert_ne!(first.name(), before);
        assert_eq!(find().name(), first.name());
        // In the way of the file that is written beside it.
        std::fs::create_dir(dir.path().join("one.json.new")).expect("made");
        let old = first.name().to_owned();
        first.renew();
        assert_ne!(first.name(), old);
        assert_ne!(find().name(), old, "what was drained stays so");
    }
}
