//! Cargo does the building: what it compiles, with which features and versions, is what it always does. Added are the
//! flags, a target directory of its own (so that a build script does not wait for the cargo that waits for it), and the
//! question where the `.ll` files are.

use crate::environment;
use crate::error::Error;
use crate::toolchain::{self, Toolchain};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thisgpu_llvm::flags::{Checks, Compilation, DebugInfo, OptLevel, flags};

/// What cargo knows of a crate of kernels.
#[derive(Clone, Debug)]
pub struct Package {
    /// The package's name.
    pub name: String,
    /// Where its `Cargo.toml` is.
    pub manifest: PathBuf,
    /// Where cargo would put what it builds.
    pub target_directory: PathBuf,
    /// Its dependencies that cannot have convergent calls of their own, as package specifications.
    plain: Vec<String>,
    /// The folder of the workspace, where rustc runs: names of files in debug information begin in it.
    pub workspace: PathBuf,
    /// What a build depends on: manifests, lock file and sources of packages without a registry.
    pub sources: Vec<PathBuf>,
}

/// How to call cargo.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// A toolchain by rustup's name.
    pub toolchain: Option<String>,
    /// Features of the crate.
    pub features: Vec<String>,
    /// Without its default features.
    pub no_default_features: bool,
    /// `--locked`.
    pub locked: bool,
    /// `--offline`.
    pub offline: bool,
    /// With `cfg(test)` for the crate itself.
    pub test: bool,
    /// Cargo's messages are kept and shown only when it fails.
    pub quiet: bool,
}

/// A crate's LLVM IR.
#[derive(Clone, Debug)]
pub struct Text {
    /// The crate's name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl Settings {
    fn cargo(&self) -> Command {
        let program: OsString = toolchain::cargo(self.toolchain.as_deref());
        environment::command(&program, self.toolchain.as_deref())
    }

    fn common(&self, command: &mut Command) {
        if !self.features.is_empty() {
            command.arg("--features").arg(self.features.join(","));
        }
        for (flag, on) in [
            ("--no-default-features", self.no_default_features),
            ("--locked", self.locked),
            ("--offline", self.offline),
        ] {
            if on {
                command.arg(flag);
            }
        }
    }

    /// Asks about the crate in a directory.
    pub fn package(&self, crate_dir: &Path, host: &str) -> Result<Package, Error> {
        let manifest = crate_dir.join("Cargo.toml");
        let manifest = manifest.canonicalize().map_err(Error::file(&manifest))?;
        let mut command = self.cargo();
        command
            .args([
                "metadata",
                "--format-version=1",
                "--filter-platform",
                host,
                "--manifest-path",
            ])
            .arg(&manifest);
        self.common(&mut command);
        let output = command.output().map_err(program("cargo"))?;
        if !output.status.success() {
            return Err(Error::Cargo {
                crate_dir: crate_dir.into(),
                status: String::from_utf8_lossy(&output.stderr).trim().to_string(),
            });
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        Package::read(&metadata, &manifest)
    }

    /// Builds the crate and all that it depends on, and says where the texts are.
    pub fn build(
        &self,
        package: &Package,
        toolchain: &Toolchain,
        compilation: Compilation,
        checks: Checks,
        debug: DebugInfo,
        target: &Path,
    ) -> Result<Vec<Text>, Error> {
        let mut command = self.cargo();
        command.args([
            "rustc",
            "--lib",
            "--message-format=json-render-diagnostics",
            "--target",
            &toolchain.host,
        ]);
        command
            .arg("--manifest-path")
            .arg(&package.manifest)
            .arg("--target-dir")
            .arg(target);
        self.common(&mut command);
        command.args([
            "--color",
            if std::io::stderr().is_terminal() {
                "always"
            } else {
                "never"
            },
        ]);
        let mut configure = |setting: String| {
            command.arg("--config").arg(setting);
        };
        configure("profile.dev.opt-level=0".into());
        configure("profile.dev.incremental=false".into());
        configure("profile.dev.lto=\"off\"".into());
        if compilation != Compilation::Optimised(OptLevel::None) {
            // At opt-level 0 rustc shares instances of generic functions between crates, which keeps them from being
            // inlined; and MIR of crates without convergent calls may be optimised.
            for plain in &package.plain {
                configure(format!("profile.dev.package.\"{plain}\".opt-level=3"));
            }
        }
        command.env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags(compilation, checks, debug).join("\x1f"),
        );
        if self.test {
            command.args(["--", "--cfg", "test"]);
        }
        let stderr = if self.quiet {
            Stdio::piped()
        } else {
            Stdio::inherit()
        };
        let output = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .and_then(|child| child.wait_with_output());
        let output = output.map_err(program("cargo"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(Error::Cargo {
                crate_dir: package
                    .manifest
                    .parent()
                    .unwrap_or(&package.manifest)
                    .into(),
                status: if said.is_empty() {
                    output.status.to_string()
                } else {
                    said
                },
            });
        }
        texts(&String::from_utf8_lossy(&output.stdout), &toolchain.host)
    }
}

fn program(name: &str) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |error| Error::Program {
        program: name.into(),
        error,
    }
}

/// The `.ll` files beside what cargo's messages say it has made for the target, by their names.
fn texts(messages: &str, host: &str) -> Result<Vec<Text>, Error> {
    let mut texts = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if message["reason"] != "compiler-artifact" {
            continue;
        }
        let files = message["filenames"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        // What runs on the host while compiling is elsewhere and is not linked.
        let mut metadata = files.map(Path::new).filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "rmeta")
                && file.components().any(|part| part.as_os_str() == host)
        });
        let Some(file) = metadata.next() else {
            continue;
        };
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let path = file.with_file_name(format!("{}.ll", stem.strip_prefix("lib").unwrap_or(&stem)));
        if !path.exists() {
            return Err(Error::Unexpected(format!(
                "{} is not there, though cargo has built its crate; remove {} and build again",
                path.display(),
                file.parent().unwrap_or(file).display()
            )));
        }
        texts.push(Text {
            name: message["target"]["name"]
                .as_str()
                .unwrap_or_default()
                .replace('-', "_"),
            path,
        });
    }
    // Cargo tells of crates in the order in which it was ready with them.
    texts.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    Ok(texts)
}

impl Package {
    fn read(metadata: &Value, manifest: &Path) -> Result<Package, Error> {
        let unexpected = |what: &str| Error::Unexpected(format!("metadata without {what}"));
        let packages = metadata["packages"]
            .as_array()
            .ok_or_else(|| unexpected("packages"))?;
        let path_of = |package: &Value| package["manifest_path"].as_str().map(PathBuf::from);
        let is_own = |package: &&Value| {
            path_of(package)
                .and_then(|path| path.canonicalize().ok())
                .is_some_and(|path| path == manifest)
        };
        let own = packages.iter().find(is_own).ok_or_else(|| {
            Error::Unexpected(format!(
                "{} is a workspace without a package of its own; name the directory of the crate \
             with the kernels",
                manifest.display()
            ))
        })?;
        let has_lib = own["targets"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|target| {
                target["kind"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib" || kind == "rlib"))
            });
        if !has_lib {
            return Err(Error::Unexpected(format!(
                "{} has no library: kernels are in `src/lib.rs`",
                manifest.display()
            )));
        }
        let nodes = metadata["resolve"]["nodes"]
            .as_array()
            .ok_or_else(|| unexpected("a resolved graph"))?;
        let own_id = own["id"].as_str().ok_or_else(|| unexpected("an id"))?;
        let reached = reached(nodes, own_id, |_| true);
        // What only runs while the kernels are compiled is built sooner as it is.
        let macros = macros(packages);
        let linked = self::reached(nodes, own_id, |id| !macros.contains(id));
        let convergent = dependents(packages, nodes);
        let reached_packages = || {
            packages.iter().filter(|package| {
                package["id"]
                    .as_str()
                    .is_some_and(|id| reached.contains(id))
            })
        };
        let plain = reached_packages()
            .filter(|package| {
                let id = package["id"].as_str().unwrap_or_default();
                id != own_id && linked.contains(id) && !convergent.contains(id)
            })
            .filter_map(|package| {
                Some(format!(
                    "{}@{}",
                    package["name"].as_str()?,
                    package["version"].as_str()?
                ))
            })
            .collect();
        let root = metadata["workspace_root"]
            .as_str()
            .map(PathBuf::from)
            .ok_or_else(|| unexpected("a workspace"))?;
        let mut sources = vec![root.join("Cargo.lock"), root.join("Cargo.toml")];
        for package in reached_packages().filter(|package| package["source"].is_null()) {
            if let Some(manifest) = path_of(package) {
                let directory = manifest.parent().unwrap_or(&manifest);
                sources.extend(["src", "build.rs", "Cargo.toml"].map(|part| directory.join(part)));
            }
        }
        sources.retain(|path| path.exists());
        sources.sort();
        sources.dedup();
        Ok(Package {
            name: own["name"].as_str().unwrap_or_default().into(),
            manifest: manifest.into(),
            target_directory: metadata["target_directory"]
                .as_str()
                .map(PathBuf::from)
                .ok_or_else(|| unexpected("a target directory"))?,
            plain,
            sources,
            workspace: root,
        })
    }
}

/// The packages that have macros of their own for a library.
fn macros(packages: &[Value]) -> BTreeSet<&str> {
    let is_macro = |package: &&Value| {
        let targets = package["targets"].as_array().into_iter().flatten();
        let mut kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
        kinds.any(|kind| kind == "proc-macro")
    };
    let macros = packages.iter().filter(is_macro);
    macros
        .filter_map(|package| package["id"].as_str())
        .collect()
}

/// The packages that the crate is made of, as far as they are `wanted`: what it depends on, without what build scripts
/// and tests alone do.
fn reached<'a>(
    nodes: &'a [Value],
    own: &'a str,
    wanted: impl Fn(&str) -> bool,
) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![own]);
    while let Some(id) = open.pop() {
        if !wanted(id) || !reached.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id);
        for dependency in node
            .and_then(|node| node["deps"].as_array())
            .into_iter()
            .flatten()
        {
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["kind"].is_null()) {
                open.extend(dependency["pkg"].as_str());
            }
        }
    }
    reached
}

/// The library of kernels and the packages that depend on it: where a call may be that waits for other threads.
fn dependents<'a>(packages: &'a [Value], nodes: &'a [Value]) -> BTreeSet<&'a str> {
    let is_library = |id: &str| {
        packages
            .iter()
            .any(|package| package["id"] == id && package["name"] == "thisgpu-gpu")
    };
    nodes
        .iter()
        .filter_map(|node| node["id"].as_str())
        .filter(|id| reached(nodes, id, |_| true).into_iter().any(is_library))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is kept is found again by the texts in their order, and cargo's depends on who was ready first.
    #[test]
    fn texts_have_one_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let deps = folder.path().join("host").join("deps");
        std::fs::create_dir_all(&deps).expect("a folder");
        let message = |(name, file): (&str, &str)| {
            std::fs::write(deps.join(format!("{file}.ll")), "").expect("a file");
            let files = [deps.join(format!("lib{file}.rmeta"))];
            let target = json!({ "name": name });
            json!({ "reason": "compiler-artifact", "filenames": files, "target": target })
                .to_string()
        };
        // Two versions of one crate have one name.
        let mut messages = [("b", "b-1"), ("a-c", "a_c-2"), ("b", "b-0")].map(message);
        let names = |messages: &[String]| -> Vec<_> {
            let texts = texts(&messages.join("\n"), "host").expect("texts");
            let names = texts
                .iter()
                .map(|text| (text.name.clone(), text.path.clone()));
            names.collect()
        };
        let first = names(&messages);
        messages.reverse();
        assert_eq!(first, names(&messages));
        let name = first.iter().map(|(name, _)| name.as_str());
        assert_eq!(name.collect::<Vec<_>>(), ["a_c", "b", "b"]);
    }

    /// A crate that depends on one with a macro, whose own dependency another crate has, too.
    #[test]
    fn what_only_macros_need_is_not_optimised() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let manifest = manifest.canonicalize().expect("there");
        let package = |name: &str, kind: &str| {
            let path = match name {
                "own" => manifest.clone(),
                _ => PathBuf::from("/").join(name).join("Cargo.toml"),
            };
            json!({
                "name": name, "version": "1.0.0", "id": name, "source": "registry",
                "manifest_path": path, "targets": [{"kind": [kind]}],
            })
        };
        let node = |name: &str, dependencies: &[&str]| {
            let dependency = |name: &&str| json!({"pkg": name, "dep_kinds": [{"kind": null}]});
            let dependencies: Vec<Value> = dependencies.iter().map(dependency).collect();
            json!({"id": name, "deps": dependencies})
        };
        let metadata = json!({
            "packages": [
                package("own", "lib"), package("derive", "proc-macro"), package("syn", "lib"),
                package("both", "lib"), package("used", "lib"),
            ],
            "resolve": {"nodes": [
                node("own", &["derive", "used"]), node("derive", &["syn", "both"]), node("syn", &[]),
                node("both", &[]), node("used", &["both"]),
            ]},
            "workspace_root": "/", "target_directory": "/target",
        });
        let package = Package::read(&metadata, &manifest).expect("read");
        assert_eq!(package.plain, ["both@1.0.0", "used@1.0.0"]);
    }
}
