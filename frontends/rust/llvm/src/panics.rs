//! Panics: which functions are one, and where they say that it was.
//!
//! On the device a panic ends the launch with a trap. The trap stands at the place of the panic, so that the fault
//! names the file, line and column that the host's message would; its code says what kind of panic it was. If the
//! program's library writes messages down ([`Panics::Message`](crate::Panics)), the panic's function is called in front
//! of the trap. Functions that never return on the host return here to the trap of who called them.

use crate::data;
use crate::error::Place;
use crate::link::{Program, Symbol};
use crate::model::{Call, Function, Type, Value};

/// The reasons with their codes, and what a person is told of each.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $meaning:literal,)*) => {
        /// Why code traps. As a number it is the code of the trap, CLIF's `userN`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $name = $code,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Reason] = &[$(Reason::$name),*];

            /// What a person is told.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Reason::$name => $meaning,)*
                }
            }
        }
    };
}

reasons! {
    /// `panic!` and what is made of it.
    Panic = 1: "panicked",
    /// An index or a range outside of a slice.
    Bounds = 2: "panicked: an index is out of bounds",
    /// `unwrap` or `expect` of what is not there.
    Unwrap = 3: "panicked: `unwrap` or `expect` of None or Err",
    /// An overflow, or a division by zero.
    Arithmetic = 4: "panicked: an overflow or a division by zero",
    /// Another function that does not return and has no body here.
    NoReturn = 5: "a function that does not return was called",
    /// A function without a body, called through a pointer.
    Missing = 6: "a function without a body was called through a pointer",
    /// Code that LLVM was told is never reached.
    Unreachable = 7: "code was reached that cannot be reached without undefined behaviour",
    /// A function for features of the host's processor.
    HostFeatures = 8: "a function was called that is compiled for features of the host's processor",
    /// An allocation that found no room.
    Memory = 9: "panicked: an allocation found no room",
}

impl Reason {
    /// The code of a trap for this reason.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason of a trap with this code; none if it is none of this translator's.
    pub fn of(code: u8) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|reason| reason.code() == code)
    }

    /// Whether the program panicked, as it would on the host.
    pub fn is_panic(self) -> bool {
        use Reason::*;
        matches!(self, Panic | Bounds | Unwrap | Arithmetic | Memory)
    }
}

/// What the code of a trap means; none if it is none of this translator's.
pub fn meaning(code: u8) -> Option<&'static str> {
    Reason::of(code).map(Reason::meaning)
}

/// What kind of panic a function is that does not return and has no body.
pub fn reason(function: &Function) -> Reason {
    let name = &*function.name;
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["panic_const", "div_by_zero", "rem_by_zero"]) {
        Reason::Arithmetic
    } else if has(&[
        "bounds_check",
        "slice_index",
        "slice_start",
        "slice_end",
        "index_fail",
        "len_mismatch",
        "split_at",
    ]) {
        Reason::Bounds
    } else if has(&[
        "handle_alloc_error",
        "alloc_error_handler",
        "7raw_vec12handle_error",
    ]) {
        Reason::Memory
    } else if has(&["unwrap_failed", "expect_failed"]) {
        Reason::Unwrap
    } else if has(&["panick", "panic"]) {
        Reason::Panic
    } else {
        Reason::NoReturn
    }
}

/// Bytes of a `core::panic::Location`: address and length of the file's name, line, column.
const LOCATION_BYTES: usize = 24;

/// The place that a call of a panic function hands over: the last argument that is the address of a constant
/// `Location`.
pub fn place(program: &Program, module: usize, call: &Call) -> Option<Place> {
    let pointers = call.arguments.iter().rev();
    let mut pointers = pointers.filter(|argument| argument.ty == Type::POINTER);
    pointers.find_map(|argument| {
        let Value::Constant(constant) = &argument.value else {
            return None;
        };
        let (symbol, offset) = data::address(constant)?;
        location(program, module, &symbol).filter(|_| offset == 0)
    })
}

/// The `Location` that a symbol holds.
fn location(program: &Program, module: usize, symbol: &str) -> Option<Place> {
    let (definition, 0) = program.resolve(module, symbol)? else {
        return None;
    };
    let Symbol::Variable(module, _) = definition else {
        return None;
    };
    let variable = program.variable_of(definition)?;
    let image = data::image(&variable.ty, variable.value.as_ref()?).ok()?;
    let [(0, name, 0)] = &image.relocations[..] else {
        return None;
    };
    if image.bytes.len() != LOCATION_BYTES {
        return None;
    }
    let number = |at: usize| {
        let bytes = image.bytes[at..at + 4].try_into().ok();
        bytes.map(u32::from_le_bytes)
    };
    let (name, 0) = program.resolve(module, name)? else {
        return None;
    };
    let name = program.variable_of(name)?;
    let text = data::image(&name.ty, name.value.as_ref()?).ok()?.bytes;
    let text = text.get(..number(8)? as usize)?;
    Some(Place {
        file: String::from_utf8(text.to_vec()).ok()?,
        line: number(16)?,
        column: number(20)?,
        inlined_at: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;
    use crate::model::{Callee, Operation};

    #[test]
    fn a_panic_says_where_it_was() {
        let text = r#"target datalayout = "e-i64:64-i128:128"
@file = private constant [7 x i8] c"k/a.rs\00", align 1
@place = private constant <{ ptr, [16 x i8] }> <{ ptr @file, [16 x i8] c"\06\00\00\00\00\00\00\00\07\01\00\00\09\00\00\00" }>, align 8
define void @f() {
start:
  call void @_RNvNtCs_4core9panicking18panic_bounds_check(i64 1, i64 2, ptr align 8 @place) #0
  unreachable
}
declare void @_RNvNtCs_4core9panicking18panic_bounds_check(i64, i64, ptr) #0
attributes #0 = { noreturn }
"#;
        let module = Module::parse("m", text).unwrap();
        let program = Program::link(vec![module]).unwrap();
        let Operation::Call(call) =
            &program.modules()[0].functions[0].blocks[0].instructions[0].operation
        else {
            panic!("a call");
        };
        let place = place(&program, 0, call).unwrap();
        assert_eq!(place.to_string(), "k/a.rs:263:9");
        let Callee::Symbol(name) = &call.callee else {
            panic!("a symbol");
        };
        let declaration = program.declaration(0, name).unwrap();
        assert_eq!(reason(declaration), Reason::Bounds);
    }

    /// Also the page about this crate: a number and what it means.
    #[test]
    fn codes_stand_for_their_reasons() {
        let page = include_str!("../README.md");
        let (_, section) = page.split_once("## Panics").unwrap();
        let (section, _) = section.split_once("##").unwrap();
        let words: Vec<&str> = section.split_whitespace().collect();
        for reason in Reason::ALL {
            assert_eq!(Reason::of(reason.code()), Some(*reason));
            assert_eq!(meaning(reason.code()), Some(reason.meaning()));
            assert_eq!(reason.is_panic(), reason.meaning().starts_with("panicked"));
            assert!(words.contains(&&*reason.code().to_string()), "{reason:?}");
        }
        assert_eq!((meaning(0), meaning(u8::MAX)), (None, None));
    }
}
