//! Compiled code in a folder: what a key depends on, what a cached object answers, also function by function in a
//! `GpuModule`, and what becomes of bad entries and full folders.

#![cfg(all(feature = "cache", feature = "module"))]

use cranelift_thisgpu::compile::{Cache, CacheKey, Code, Compiler, FunctionInput, KernelOptions};
use cranelift_thisgpu::cranelift::codegen::ir::types::{I32, I64};
use cranelift_thisgpu::cranelift::module::{DataDescription, Linkage, Module};
use cranelift_thisgpu::locations::Locations;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::{GpuModule, SourceFile};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// A folder that is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("thisgpu-cache-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn entries(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).unwrap();
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls, a jump table, a loop, spills, unresolved names, stack slots, a nearly kernel mark.
const TEXT: &str = "; kernel shared=64
function %k(i64, i32) {
    ss0 = explicit_slot 64
    fn0 = %helper(i64, i32) -> i32
    fn1 = %missing()
    fn2 = %memset(i64, i32, i64) -> i64
block0(v0: i64, v1: i32):
    v2 = stack_addr.i64 ss0
    v3 = iconst.i64 64
    v4 = call fn2(v2, v1, v3)
    v5 = iconst.i32 0
    jump block1(v5)
block1(v6: i32):
    v7 = call fn0(v0, v6)
    store v7, v0
    v8 = iconst.i32 1
    v9 = iadd v6, v8
    v10 = icmp slt v9, v1
    brif v10, block1(v9), block2
block2:
    call fn1()
    return
}
; Kernel
function %helper(i64, i32) -> i32 {
block0(v0: i64, v1: i32):
    br_table v1, block6, [block1, block2, block3, block4, block5]
block1:
    v11 = load.i32 v0
    return v11
block2:
    v12 = load.i32 v0+4
    return v12
block3:
    v13 = load.i32 v0+8
    return v13
block4:
    v14 = load.i32 v0+16
    return v14
block5:
    v15 = load.i32 v0+32
    return v15
block6:
    return v1
}
";

fn compiler(cache: Option<&Arc<Cache>>) -> Compiler {
    let mut compiler = Compiler::new(Options::default());
    compiler.collect_remarks(true);
    compiler.model_cycles(true);
    compiler.use_cache(cache.cloned());
    // As texts without a file have it, so that keys of the same functions are equal.
    compiler.set_locations(Some(Arc::new(Locations::lines_of("<clif>"))));
    compiler
}

fn open(folder: &Folder, limit: u64) -> Arc<Cache> {
    Arc::new(Cache::open(&folder.0, limit).unwrap())
}

fn compile(cache: Option<&Arc<Cache>>, text: &str) -> Code {
    compiler(cache).compile_clif(text).unwrap()
}

#[test]
fn a_cached_object_answers_all_that_a_fresh_one_does() {
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    let fresh = compile(None, TEXT);
    assert_eq!(compile(Some(&cache), TEXT), fresh);
    assert_eq!(folder.entries().len(), 1);
    let cached = compile(Some(&cache), TEXT);
    assert_eq!(folder.entries().len(), 1);
    // What the text is good for.
    assert!(!fresh.remarks().is_empty() && !fresh.cycles().is_empty());
    assert_eq!(fresh.warnings().len(), 2, "{:?}", fresh.warnings());
    assert_eq!(cached.object(), fresh.object());
    assert_eq!(cached.kernels(), fresh.kernels());
    assert_eq!(cached.remarks(), fresh.remarks());
    assert_eq!(cached.cycles(), fresh.cycles());
    assert_eq!(cached.warnings(), fresh.warnings());
    assert_eq!(cached.to_elf().unwrap(), fresh.to_elf().unwrap());
    let (a, b) = (cached.kernel("k").unwrap(), fresh.kernel("k").unwrap());
    assert_eq!((a.resources(), a.function()), (b.resources(), b.function()));
    assert_eq!(cached, fresh);
    // The object alone answers what is no report of the compilation.
    let bytes = fresh.to_elf().unwrap();
    let read = Code::of_object(cranelift_thisgpu::object::Object::read(&bytes).unwrap());
    assert_eq!(read.kernels(), fresh.kernels());
    assert_eq!(read.object(), fresh.object());
}

fn key(compiler: &Compiler, text: &str) -> CacheKey {
    let file = SourceFile::parse("k.clif", text).unwrap();
    let names: Vec<String> = file.functions.iter().map(|f| f.name()).collect();
    let inputs: Vec<FunctionInput<'_>> = (file.functions.iter().zip(&names))
        .map(|(function, name)| FunctionInput::of_source(function, name))
        .collect();
    compiler.cache_key(&inputs)
}

#[test]
fn a_key_depends_on_all_that_decides_the_code_and_on_nothing_else() {
    let with = |settings: &[&str]| {
        let mut options = Options::default();
        settings.iter().for_each(|s| options.set(s).unwrap());
        Compiler::new(options)
    };
    let plain = with(&[]);
    let usual = key(&plain, TEXT);
    assert_eq!(key(&with(&[]), TEXT), usual);
    let later = format!("\n{TEXT}");
    let others = [
        key(
            &plain,
            &TEXT.replace("v8 = iconst.i32 1", "v8 = iconst.i32 2"),
        ),
        key(&plain, &TEXT.replace("%missing", "%missed")),
        key(&plain, &TEXT.replace("shared=64", "shared=65")),
        key(&plain, &later),
        key(&with(&["regs=32"]), TEXT),
        key(&with(&["lines=false"]), TEXT),
        key(&compiler(None), TEXT),
    ];
    for (index, other) in others.iter().enumerate() {
        assert_ne!(*other, usual, "{index}");
    }
    // Without line tables it is all the same in which line something stands.
    let without = with(&["lines=false"]);
    assert_eq!(key(&without, &later), key(&without, TEXT));
    let object = with(&["lines=false"])
        .compile_clif(TEXT)
        .unwrap()
        .into_object();
    assert!(
        object
            .functions
            .iter()
            .all(|function| function.lines.is_empty())
    );
}

#[test]
fn a_bad_entry_is_a_miss_and_is_removed() {
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    let fresh = compile(Some(&cache), TEXT);
    let entry = folder.entries().remove(0);
    let good = fs::read(&entry).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let key = key(&compiler(None), TEXT);
    for bad in [&flipped[..], &good[..good.len() - 1], &good[..20], &[]] {
        fs::write(&entry, bad).unwrap();
        assert!(cache.get(&key).is_none());
        assert!(!entry.exists());
        assert_eq!(compile(Some(&cache), TEXT), fresh);
        assert_eq!(fs::read(&entry).unwrap(), good);
    }
    // An entry under another's key.
    let other = self::key(&compiler(None), &TEXT.replace("shared=64", "shared=0"));
    let stranger = entry.with_file_name(format!("{other}.tgc"));
    fs::copy(&entry, &stranger).unwrap();
    assert!(cache.get(&other).is_none() && !stranger.exists());
}

#[test]
fn hits_and_writes_are_counted() {
    let folder = Folder::new();
    let first = open(&folder, Cache::DEFAULT_LIMIT);
    compile(Some(&first), TEXT);
    assert_eq!((first.hits(), first.writes()), (0, 1));
    compile(Some(&first), TEXT);
    assert_eq!((first.hits(), first.writes()), (1, 1));
    // Another value of the same folder has done nothing yet.
    let second = open(&folder, Cache::DEFAULT_LIMIT);
    assert_eq!((second.hits(), second.writes()), (0, 0));
    compile(Some(&second), TEXT);
    assert_eq!((second.hits(), second.writes()), (1, 0));
}

/// What is no regular file is no entry: nobody waits at a pipe, or reads a device that never ends.
#[cfg(unix)]
#[test]
fn pipes_and_links_are_no_entries() {
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    let fresh = compile(Some(&cache), TEXT);
    let entry = folder.entries().remove(0);
    let good = fs::read(&entry).unwrap();
    let copy = entry.with_extension("copy");
    fs::write(&copy, &good).unwrap();
    let key = key(&compiler(None), TEXT);
    let pipe = |entry: &Path| {
        let made = std::process::Command::new("mkfifo").arg(entry).status();
        assert!(made.unwrap().success());
    };
    let link =
        |to: &'static str| move |entry: &Path| std::os::unix::fs::symlink(to, entry).unwrap();
    let own = |entry: &Path| std::os::unix::fs::symlink(&copy, entry).unwrap();
    let places: [&dyn Fn(&Path); 5] = [
        &pipe,
        &link("/dev/zero"),
        &link("/nowhere"),
        &own,
        &|entry| fs::create_dir(entry).unwrap(),
    ];
    for place in places {
        fs::remove_file(&entry).unwrap();
        place(&entry);
        assert!(cache.get(&key).is_none());
        if !entry.is_dir() {
            assert!(entry.symlink_metadata().is_err(), "it is removed");
            assert_eq!(compile(Some(&cache), TEXT), fresh);
            assert_eq!(fs::read(&entry).unwrap(), good);
        }
    }
}

/// An entry is read no further than the limit.
#[test]
fn an_entry_above_the_limit_is_not_read() {
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    let fresh = compile(Some(&cache), TEXT);
    let entry = folder.entries().remove(0);
    let key = key(&compiler(None), TEXT);
    let size = entry.metadata().unwrap().len();
    assert!(open(&folder, size - 1).get(&key).is_none());
    assert!(open(&folder, size).get(&key).is_some());
    // 2^40 bytes that take no room on the disk.
    fs::File::options()
        .write(true)
        .open(&entry)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert!(cache.get(&key).is_none());
    assert_eq!(compile(Some(&cache), TEXT), fresh);
}

/// The functions of the text as a module of a front end, with data, launch bounds and places in a file of its own; and
/// whether any of them was compiled.
fn module(cache: Option<&Arc<Cache>>, text: &str, table: &[u8]) -> (Code, bool) {
    let file = SourceFile::parse("<clif>", text).unwrap();
    let mut module = GpuModule::new(Options::default()).unwrap();
    let mut places = Locations::table();
    let source = places.file("kernels.lang");
    let numbers: Vec<_> = (1..100).map(|line| places.add(source, line, 7)).collect();
    let compiler = module.compiler_mut();
    compiler.collect_remarks(true);
    compiler.model_cycles(true);
    compiler.use_cache(cache.cloned());
    compiler.time_passes(true);
    compiler.set_locations(Some(Arc::new(places)));
    let data = module
        .declare_data("numbers", Linkage::Local, false, false)
        .unwrap();
    let mut contents = DataDescription::new();
    contents.define(table.into());
    module.define_data(data, &contents).unwrap();
    for function in &file.functions {
        let linkage = match function.kernel {
            Some(_) => Linkage::Export,
            None => Linkage::Local,
        };
        let id = module
            .declare_function(&function.name(), linkage, &function.func.signature)
            .unwrap();
        if let Some(options) = function.kernel {
            let options = KernelOptions {
                max_threads: Some(256),
                min_blocks: Some(2),
                ..options
            };
            module.declare_kernel(id, options);
        }
        let mut context = module.make_context();
        context.func = function.func.clone();
        let func = &mut context.func;
        let blocks: Vec<_> = func.layout.blocks().collect();
        for block in blocks {
            let insts: Vec<_> = func.layout.block_insts(block).collect();
            for inst in insts {
                let line = func.srcloc(inst).bits() as usize;
                func.set_srcloc(inst, numbers[line % numbers.len()]);
            }
        }
        module.define_function(id, &mut context).unwrap();
    }
    module.finish_definitions().unwrap();
    let compiled = module.compiler_mut().timings().total() > Duration::ZERO;
    (module.finish().unwrap(), compiled)
}

#[test]
fn a_modules_functions_are_kept_one_by_one() {
    let table = [1, 2, 3, 4];
    let text = TEXT.replace("fn1 = %missing()", "gv0 = symbol %numbers");
    let text = text.replace(
        "call fn1()",
        "v20 = symbol_value.i64 gv0\n    store v20, v0",
    );
    let (fresh, _) = module(None, &text, &table);
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    assert_eq!(module(Some(&cache), &text, &table), (fresh.clone(), true));
    let functions = folder.entries();
    assert_eq!(functions.len(), 2);
    let (cached, compiled) = module(Some(&cache), &text, &table);
    assert!(!compiled);
    assert_eq!(folder.entries(), functions);
    // What the module is good for: types, bounds, places, calls, and reports.
    let object = cached.object();
    let kernel = object.function("k").unwrap();
    let launched = kernel.kernel.as_ref().unwrap();
    let types: Vec<_> = launched.parameters.iter().map(|p| p.ty).collect();
    assert_eq!(types, [Some(I64), Some(I32)]);
    assert_eq!(
        (
            launched.shared_bytes,
            launched.max_threads,
            launched.min_blocks
        ),
        (64, Some(256), Some(2))
    );
    let place = kernel.lines.iter().find(|line| line.location.line != 0);
    let place = place.unwrap().location;
    assert_eq!(
        (object.file_name(place.file), place.column),
        (Some("kernels.lang"), 7)
    );
    for callee in ["helper", "memset", "numbers"] {
        assert!(kernel.relocations.iter().any(|r| r.symbol == callee));
    }
    assert!(cached.kernel("k").unwrap().resources().registers > 0);
    assert!(!cached.remarks().is_empty() && !cached.cycles().is_empty());
    assert_eq!(cached.to_elf().unwrap(), fresh.to_elf().unwrap());
    assert_eq!(cached, fresh);
    // Data decides nothing; the function that changes is compiled, and the other one is not.
    assert!(!module(Some(&cache), &text, &[5, 6]).1);
    let changed = text.replace("v8 = iconst.i32 1", "v8 = iconst.i32 2");
    assert_eq!(
        module(Some(&cache), &changed, &table),
        module(None, &changed, &table)
    );
    assert_eq!(folder.entries().len(), 3);
    // An entry that is not whole is a miss here too.
    for entry in &functions {
        let bytes = fs::read(entry).unwrap();
        fs::write(entry, &bytes[..bytes.len() - 1]).unwrap();
    }
    assert_eq!(module(Some(&cache), &text, &table), (fresh, true));
    // What a callee does to the lanes that call it is part of its callers' keys.
    let waits = "
function %helper(i64, i32) -> i32 {
block0(v0: i64, v1: i32):
    jump block1
block1:
    v2 = atomic_load.i32 v0
    v3 = icmp eq v2, v1
    brif v3, block1, block2
block2:
    return v1
}
";
    let waiting = format!("{}{waits}", text.split("; Kernel").next().unwrap());
    assert_eq!(
        module(Some(&cache), &waiting, &table),
        module(None, &waiting, &table)
    );
}

/// Makes an entry look as if it had been used so many seconds ago.
fn age(entry: &Path, seconds: u64) {
    let file = fs::File::options().append(true).open(entry).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
        .unwrap();
}

#[test]
fn what_was_used_longest_ago_goes_when_the_folder_is_full() {
    let text = |bytes: u32| TEXT.replace("shared=64", &format!("shared={}", 100 + bytes));
    let folder = Folder::new();
    let large = open(&folder, Cache::DEFAULT_LIMIT);
    compile(Some(&large), &text(0));
    let size = fs::metadata(&folder.entries()[0]).unwrap().len();
    let path = |text: &str| folder.0.join(format!("{}.tgc", key(&compiler(None), text)));
    let small = open(&folder, 2 * size + size / 2);
    compile(Some(&small), &text(1));
    age(&path(&text(0)), 200);
    age(&path(&text(1)), 100);
    // A hit makes it young again.
    compile(Some(&small), &text(0));
    let abandoned = folder.0.join("abandoned.1.0.tmp");
    fs::write(&abandoned, "part of an entry").unwrap();
    age(&abandoned, 100_000);
    compile(Some(&small), &text(2));
    assert!(path(&text(0)).exists() && path(&text(2)).exists());
    assert!(!path(&text(1)).exists() && !abandoned.exists());
    // What is larger than the whole folder may be is not kept.
    compile(Some(&open(&folder, size / 2)), &text(3));
    assert!(!path(&text(3)).exists());
}

#[test]
fn a_folder_keeps_its_limit_over_many_entries() {
    let text = |bytes: u32| TEXT.replace("shared=64", &format!("shared={}", 100 + bytes));
    let folder = Folder::new();
    compile(Some(&open(&folder, Cache::DEFAULT_LIMIT)), &text(0));
    let size = fs::metadata(&folder.entries()[0]).unwrap().len();
    // What two write is counted together, though neither lists the folder each time.
    let limit = 12 * size;
    let caches = [open(&folder, limit), open(&folder, limit)];
    for round in 1..40 {
        compile(Some(&caches[round as usize % 2]), &text(round));
        let entries = folder.entries();
        let bytes: u64 = entries.iter().map(|e| fs::metadata(e).unwrap().len()).sum();
        let behind = 2 * (limit / 8 + size);
        assert!(bytes <= limit + behind, "{round}: {bytes} of {limit}");
        assert!(entries.len() >= (round as usize + 1).min(11), "{round}");
    }
}

#[test]
fn an_entry_cut_off_anywhere_is_a_miss() {
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    compile(Some(&cache), TEXT);
    let entry = folder.entries().remove(0);
    let good = fs::read(&entry).unwrap();
    let key = key(&compiler(None), TEXT);
    for end in 0..good.len() {
        fs::write(&entry, &good[..end]).unwrap();
        assert!(cache.get(&key).is_none(), "{end} of {} bytes", good.len());
    }
    fs::write(&entry, &good).unwrap();
    assert!(cache.get(&key).is_some());
}

#[test]
fn a_folder_that_is_gone_stops_nobody() {
    let folder = Folder::new();
    let cache = open(&folder, Cache::DEFAULT_LIMIT);
    let fresh = compile(None, TEXT);
    fs::remove_dir_all(&folder.0).unwrap();
    assert_eq!(compile(Some(&cache), TEXT), fresh);
    let error = cache.put(&key(&compiler(None), TEXT), &fresh).unwrap_err();
    assert!(
        error.to_string().contains(folder.0.to_str().unwrap()),
        "{error}"
    );
}

#[test]
fn many_may_share_a_folder() {
    let folder = Folder::new();
    let fresh = compile(None, TEXT);
    thread::scope(|scope| {
        for _ in 0..4 {
            // Each with a cache of its own, as processes have.
            let cache = open(&folder, Cache::DEFAULT_LIMIT);
            let (fresh, folder) = (&fresh, &folder);
            scope.spawn(move || {
                for round in 0..4 {
                    assert_eq!(compile(Some(&cache), TEXT), *fresh);
                    if round == 1 {
                        // Entries only: a temporary file that was renamed since would be made anew.
                        let entries = folder.entries();
                        let entries = entries.iter().filter(|e| e.extension().unwrap() == "tgc");
                        entries.for_each(|e| drop(fs::write(e, "bad")));
                    }
                }
            });
        }
    });
    assert_eq!(
        compile(Some(&open(&folder, Cache::DEFAULT_LIMIT)), TEXT),
        fresh
    );
    assert_eq!(folder.entries().len(), 1, "no temporary file is left");
}
