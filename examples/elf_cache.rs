//! Objects kept in files: what was compiled once is loaded the next time.

use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig};
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::{env, fs, process};

const KERNEL: &str = "
; kernel
function %triple(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 3
    v3 = imul v1, v2
    v4 = uextend.i64 v1
    v5 = iconst.i32 2
    v6 = ishl v4, v5
    v7 = iadd v0, v6
    store aligned v3, v7
    return
}
";

/// The object of a text: from `folder` if it is there, else compiled and put there. The second value says whether it
/// was compiled. The same text, settings and version of the compiler always give the same bytes, so they are what the
/// file's name is made of.
fn object(folder: &Path, text: &str, options: &Options) -> Result<(Vec<u8>, bool), Box<dyn Error>> {
    let mut key = DefaultHasher::new();
    (text, format!("{options:?}"), env!("CARGO_PKG_VERSION")).hash(&mut key);
    let file = folder.join(format!("{:016x}.elf", key.finish()));
    if let Ok(bytes) = fs::read(&file) {
        return Ok((bytes, false));
    }
    let bytes = Compiler::new(options.clone())
        .compile_clif(text)?
        .to_elf()?;
    fs::create_dir_all(folder)?;
    // Others see the whole file or none.
    let unfinished = file.with_extension(process::id().to_string());
    fs::write(&unfinished, &bytes)?;
    fs::rename(&unfinished, &file)?;
    Ok((bytes, true))
}

/// Compiles once, loads twice.
pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::temp_dir().join(format!("thisgpu-cache-{}", process::id()));
    let options = Options::default();
    let (first, compiled) = object(&folder, KERNEL, &options)?;
    assert!(compiled);
    let (second, compiled) = object(&folder, KERNEL, &options)?;
    assert!(!compiled && first == second);
    fs::remove_dir_all(&folder)?;

    let device = Device::simulator(SimConfig::default());
    let module = device.load_elf(&second)?;
    let out = device.allocate(4 * 32)?;
    let grid = Grid::new([1, 1, 1], [32, 1, 1]);
    module.kernel("triple")?.launch(grid).arg(&out).run()?;
    let results: Vec<u32> = device.download(&out)?;
    assert!(results.iter().zip(0..).all(|(&result, i)| result == 3 * i));
    println!("{} bytes, compiled once", second.len());
    Ok(())
}
