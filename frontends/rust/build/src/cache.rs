//! What was translated is kept beside what cargo keeps: the same texts with the same options give the same object. A
//! cache that machines share keeps it under a key that has nothing of the machine but what is in the texts.

use crate::cargo::Text;
use crate::compiled::{Compiled, Description};
use crate::error::Error;
use cranelift_thisgpu::compile::CacheKey;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A result of earlier, with everything that it depends on.
#[derive(Serialize, Deserialize)]
struct Kept {
    inputs: Inputs,
    description: Description,
    warnings: Vec<String>,
}

/// What a result depends on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Versions and options.
    options: String,
    /// Each text: name, length, two sums of its bytes.
    texts: Vec<(String, usize, u64, u64)>,
}

impl Inputs {
    /// Reads the texts, and remembers their sums.
    pub fn read(texts: &[Text], options: String) -> Result<(Inputs, Vec<String>), Error> {
        let mut contents = Vec::new();
        let mut sums = Vec::new();
        for text in texts {
            let content = fs::read_to_string(&text.path).map_err(Error::file(&text.path))?;
            let sum = |seed: u64| {
                let mut hasher = DefaultHasher::new();
                (seed, &content).hash(&mut hasher);
                hasher.finish()
            };
            sums.push((text.name.clone(), content.len(), sum(1), sum(2)));
            contents.push(content);
        }
        Ok((
            Inputs {
                options,
                texts: sums,
            },
            contents,
        ))
    }
}

/// What a shared cache keeps of a compilation.
#[derive(Serialize, Deserialize)]
pub struct Shared {
    object: Vec<u8>,
    clif: String,
    description: Description,
    warnings: Vec<String>,
}

impl Shared {
    /// The key of what these texts and options give.
    ///
    /// # Errors
    /// A program that cannot be read: the translator is part of it.
    pub fn key(texts: &[Text], contents: &[String], options: &str) -> Result<CacheKey, Error> {
        let translator = TRANSLATOR.get_or_init(|| {
            let program = std::env::current_exe().and_then(fs::read)?;
            Ok::<_, std::io::Error>(CacheKey::of_parts("program", [program]).to_string())
        });
        let translator = match translator {
            Ok(translator) => translator.as_str(),
            Err(error) => return Err(Error::Unexpected(format!("the program: {error}"))),
        };
        let names = texts.iter().map(|text| text.name.as_str());
        let parts = names.chain(contents.iter().map(String::as_str));
        Ok(CacheKey::of_parts(
            "crate of Rust kernels",
            [translator, options].into_iter().chain(parts),
        ))
    }

    /// What is to be kept of a result.
    pub fn of(compiled: &Compiled) -> Shared {
        Shared {
            object: compiled.object.clone(),
            clif: compiled.clif.clone(),
            description: compiled.description.clone(),
            warnings: compiled.warnings.clone(),
        }
    }

    /// The result; names of its sources begin in a folder.
    pub fn into_compiled(self, source_folder: &Path) -> Compiled {
        Compiled {
            object: self.object,
            clif: self.clif,
            description: self.description,
            is_fresh: true,
            source_folder: source_folder.into(),
            warnings: self.warnings,
        }
    }
}

/// The hash of the program that the translator is part of.
static TRANSLATOR: OnceLock<std::io::Result<String>> = OnceLock::new();

/// Most bytes of a file of a result (*assumed*: more than any program of kernels has).
const MOST_BYTES: u64 = 1 << 30;

/// A folder with one result.
pub struct Cache(PathBuf);

impl Cache {
    /// The result in a folder.
    pub fn new(folder: &Path) -> Cache {
        Cache(folder.into())
    }

    /// Keeps others, of this process or another, from the folder as long as the file is open. Where files cannot be
    /// locked nobody is kept from it.
    pub fn lock(&self) -> Result<File, Error> {
        fs::create_dir_all(&self.0).map_err(Error::file(&self.0))?;
        let path = self.file("lock");
        let file = File::create(&path).map_err(Error::file(&path))?;
        match file.lock() {
            Err(error) if error.kind() != ErrorKind::Unsupported => Err(Error::file(&path)(error)),
            _ => Ok(file),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of the result. What is no regular file, such as a pipe or a link to a device, nobody has put there, and
    /// it may never end.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.file(name);
        let found = fs::symlink_metadata(&path).ok()?;
        let whole = found.is_file() && found.len() <= MOST_BYTES;
        whole.then(|| fs::read(&path).ok())?
    }

    /// The result, if it was made from the same; names of its sources begin in a folder.
    pub fn get(&self, inputs: &Inputs, source_folder: &Path) -> Option<Compiled> {
        let kept: Kept = serde_json::from_slice(&self.read("kernels.json")?).ok()?;
        (kept.inputs == *inputs).then_some(())?;
        Some(Compiled {
            object: self.read("kernels.elf")?,
            clif: String::from_utf8(self.read("kernels.clif")?).ok()?,
            description: kept.description,
            is_fresh: true,
            warnings: kept.warnings,
            source_folder: source_folder.into(),
        })
    }

    /// Keeps a result, where the folder is locked; the old one is gone before the first part of the new one is there.
    pub fn put(&self, inputs: Inputs, compiled: &Compiled) -> Result<(), Error> {
        let write = |name: &str, bytes: &[u8]| {
            let path = self.file(name);
            fs::write(&path, bytes).map_err(Error::file(&path))
        };
        let index = self.file("kernels.json");
        if index.exists() {
            fs::remove_file(&index).map_err(Error::file(&index))?;
        }
        write("kernels.elf", &compiled.object)?;
        write("kernels.clif", compiled.clif.as_bytes())?;
        let kept = Kept {
            inputs,
            description: compiled.description.clone(),
            warnings: compiled.warnings.clone(),
        };
        let kept = serde_json::to_vec_pretty(&kept)
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        write("kernels.json", &kept)
    }
}
