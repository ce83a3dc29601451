//! The files that were compiled.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The files that were compiled.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Texts by their names; others are read where they are.
    texts: BTreeMap<String, String>,
    /// What names that are not absolute begin in; the current directory unless said.
    folder: PathBuf,
}

impl Sources {
    /// Texts by the names that code has for them.
    pub fn of_texts(texts: BTreeMap<String, String>) -> Sources {
        Sources {
            texts,
            folder: PathBuf::new(),
        }
    }

    /// Files whose names begin in this folder.
    pub fn in_folder(folder: PathBuf) -> Sources {
        Sources {
            texts: BTreeMap::new(),
            folder,
        }
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// What stands in a file, if it is there.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.texts.get(name) {
            Some(text) => Some(text.into()),
            None => Some(fs::read_to_string(self.path(name)).ok()?.into()),
        }
    }
}
