//! What the library of [`crate::library`] has on the device: the heap that a launch gets, and the message of its panic.
//! `library/lib.rs` says what lies where.

use crate::error::{Error, Heap, Message};
use crate::names::said;
use cranelift_thisgpu::{Buffer, Device, driver};
use thisgpu_llvm::MutableVariable;

/// The objects, by their symbols.
const HEAP: &str = "__thisgpu_heap";
const PANIC: &str = "__thisgpu_panic";

/// Bytes of memory that threads of a launch can allocate, unless the launch says otherwise (*assigned*).
pub const HEAP_BYTES: u64 = 16 << 20;

/// Words in front of a panic's text.
const WORDS: usize = 13;

/// How the symbols begin of what this library and that of kernels have; none holds an address of the heap.
const OWN: &str = "__thisgpu_";

/// The static that may hold an address of the heap from one launch to the next, if there is one: any that kernels may
/// change and that has room for an address. Those that the host fills hold numbers.
pub fn heap_holder(mutable: &[MutableVariable]) -> Option<String> {
    let mut holders = mutable.iter().filter(|variable| {
        variable.bytes >= size_of::<u64>() as u64 && !variable.symbol.starts_with(OWN)
    });
    let holder = holders.next()?;
    Some(said(&holder.symbol))
}

/// Gives a launch its heap, if its kernels have one. The memory has to stay until the launch has ended.
pub fn give_heap(
    device: &Device,
    module: &driver::Module,
    bytes: u64,
) -> Result<Option<Buffer>, Error> {
    let Some(header) = module.data(HEAP) else {
        return Ok(None);
    };
    // Launches on streams that still run have the one that is there. What is wrong with them is theirs to say.
    let _ = device.synchronize();
    let memory = device
        .allocate_private(bytes)?
        .named("the heap of the launch");
    header.clear()?;
    header.slice(0..16)?.write(&[memory.address(), bytes])?;
    Ok(Some(memory))
}

/// Lets a launch take no more than so many bytes of a heap that is there already.
pub fn limit_heap(module: &driver::Module, bytes: u64) -> Result<(), Error> {
    if let Some(header) = module.data(HEAP) {
        header.slice(8..16)?.write(&[bytes])?;
    }
    Ok(())
}

/// How full a heap is.
pub fn heap(module: &driver::Module) -> Option<Heap> {
    let header: Vec<u64> = module.data(HEAP)?.slice(0..24).ok()?.read().ok()?;
    match header[..] {
        [_, bytes, taken] => Some(Heap { bytes, taken }),
        _ => None,
    }
}

/// Takes the message that a panic has written, if one has; the next launch finds the buffer free.
pub fn take_message(module: &driver::Module) -> Result<Option<Message>, Error> {
    let message = message(module)?;
    if let Some(panic) = module.data(PANIC) {
        panic.slice(0..12)?.clear()?;
    }
    Ok(message)
}

/// The message that a panic has written, if one has.
pub fn message(module: &driver::Module) -> Result<Option<Message>, Error> {
    let Some(panic) = module.data(PANIC) else {
        return Ok(None);
    };
    let header = 4 * WORDS as u64;
    let words: Vec<u32> = panic.slice(0..header)?.read()?;
    let [
        _,
        _,
        written,
        bx,
        by,
        bz,
        x,
        y,
        z,
        line,
        column,
        file,
        length,
    ] = words[..]
    else {
        return Ok(None);
    };
    if written == 0 {
        return Ok(None);
    }
    let end = (header + u64::from(length)).min(panic.bytes());
    let text: Vec<u8> = panic.read_range(header..end)?;
    let (file, said) = text.split_at((file as usize).min(text.len()));
    let mut said = String::from_utf8_lossy(said).into_owned();
    if header + u64::from(length) > panic.bytes() {
        said = format!("{}…", said.trim_end_matches(char::REPLACEMENT_CHARACTER));
    }
    Ok(Some(Message {
        file: String::from_utf8_lossy(file).into_owned(),
        line,
        column,
        block: [bx, by, bz],
        thread: [x, y, z],
        text: said,
    }))
}
