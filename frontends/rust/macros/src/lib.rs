//! The macros of `thisgpu-gpu`, which re-exports and explains them. They read token trees by themselves: a kernel crate
//! is compiled several times, and a parser of all of Rust would take longer than the kernels.

#![forbid(unsafe_code)]

mod arguments;
mod device_static;
mod element;
mod error;
mod format;
mod generics;
mod kernel;
mod output;
mod print;
mod shared;
mod signature;
mod structure;
mod test;
mod tokens;

use proc_macro::TokenStream;

/// Makes a function a kernel: `#[kernel]`, or with launch bounds `#[kernel(max_threads = 256, min_blocks = 2)]`.
///
/// The function returns nothing. Its parameters are numbers, `bool`, `F16`, `F16x2`; `&[T]`
/// and `&T` of data that nobody writes during the launch, or of atomics; `DisjointMut<T>` of data that threads write.
/// It stays a function that other functions may call. `name = "other"` gives the kernel another name for the host,
/// where two modules have kernels of one name.
///
/// A function with parameters of types or constants says with which ones the host may launch it, since it is compiled
/// before the host: `#[kernel(instances(f32, f64))]`, or `#[kernel(instances(<f32, 4>, <u64, 2>))]`. Their names are
/// the function's and what they are made of: `scale_f32`, `scale_f64`; `tiles_f32_4`, `tiles_u64_2`.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error::or_compile_error(kernel::expand(arguments, item))
}

/// Makes a static memory of the module that the host fills between launches, and kernels read:
/// `#[device_static] static WEIGHTS: [f32; 256];`, zeros at first, or `= VALUE`. It becomes a
/// `DeviceStatic<[f32; 256]>`.
///
/// The host has it by its name as a buffer, of the array's elements if it is an array. Two of one name clash.
#[proc_macro_attribute]
pub fn device_static(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error::or_compile_error(device_static::expand(arguments, item))
}

/// Makes a function a test that `cargo thisgpu test` runs on the device: `#[kernel_test]`, or
/// `#[kernel_test(threads = 64)]`.
///
/// It has no parameters, and passes if the launch of one block of so many threads (1 unless said) ends without a fault:
/// `assert!` and its kin make faults. With `#[should_panic]` it passes if it panics. A test of one thread runs under
/// `cargo test` on the host too.
#[proc_macro_attribute]
pub fn kernel_test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error::or_compile_error(test::expand(arguments, item))
}

/// Shared memory of a block: `shared!([f32; 256])` is a `&'static Shared<[f32; 256]>`, the same for all threads of the
/// block that come to it.
#[proc_macro]
pub fn shared(input: TokenStream) -> TokenStream {
    error::or_compile_error(shared::expand(input))
}

/// Writes to the launch's output, which the host formats when the launch has ended: `print!("{i}: {:.2}", x)`.
///
/// The format is `std`'s, without the `$` that takes a width from an argument. Arguments are numbers, `bool`, `char`,
/// `&str`, pointers, `F16`; with `{:?}` also slices, arrays and options of them, and structures with
/// `#[derive(Print)]`.
#[proc_macro]
pub fn print(input: TokenStream) -> TokenStream {
    error::or_compile_error(output::expand(input, ""))
}

/// [`print!`], and a new line.
#[proc_macro]
pub fn println(input: TokenStream) -> TokenStream {
    error::or_compile_error(output::expand(input, "\n"))
}

/// Lets a structure be in buffers: `#[repr(C)]` or `#[repr(transparent)]`, `Copy`, and every field an `Element`.
#[proc_macro_derive(Element)]
pub fn element(input: TokenStream) -> TokenStream {
    error::or_compile_error(element::expand(input))
}

/// Lets a structure be printed with `{:?}`, as `Debug` prints it: every field is something that can be printed.
#[proc_macro_derive(Print)]
pub fn print_structure(input: TokenStream) -> TokenStream {
    error::or_compile_error(print::expand(input))
}
