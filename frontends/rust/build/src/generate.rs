//! The Rust that a build script writes: a function for each kernel, with the types of its parameters.

use crate::compiled::Compiled;
use crate::descriptor::{Access, Class, KernelDescription, Parameter, StaticDescription};
use crate::error::Error;
use std::fmt::Write;
use std::path::Path;

/// The generated text; the object lies at `object`.
pub fn generate(compiled: &Compiled, object: &Path) -> Result<String, Error> {
    let description = serde_json::to_string(&compiled.description)
        .map_err(|error| Error::Unexpected(error.to_string()))?;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "// Made by thisgpu-build from the crate `{}`.\n",
        compiled.description.name
    );
    let _ = writeln!(
        text,
        "static KERNELS: ::thisgpu_build::Embedded =\n    ::thisgpu_build::Embedded::new(include_bytes!({object:?}), \
         {description:?});\n"
    );
    text.push_str(
        "/// The kernels on a device, by name: for launches with shared memory, resources, occupancy.\n\
         #[allow(dead_code)]\n\
         pub fn load(device: &::thisgpu_build::Device) -> ::core::result::Result<::thisgpu_build::Module, \
         ::thisgpu_build::Error> {\n    \
             KERNELS.module(device)\n\
         }\n",
    );
    let kernels = compiled.description.kernels.iter();
    let kernels: Vec<&KernelDescription> = kernels
        .filter(|kernel| kernel.test_threads.is_none())
        .collect();
    for kernel in &kernels {
        function(&mut text, kernel, &AT_ONCE);
    }
    text.push_str(
        "\n/// The kernels, put on a stream: these functions do not wait until they have ended.\n\
         #[allow(dead_code)]\n\
         pub mod on_stream {\n    \
             use super::KERNELS;\n",
    );
    for kernel in &kernels {
        function(&mut text, kernel, &ON_STREAM);
    }
    text.push_str("}\n");
    if !compiled.description.statics.is_empty() {
        text.push_str(
            "\n/// Statics that the host fills, on a device.\n\
             #[allow(dead_code, non_snake_case)]\n\
             pub mod statics {\n    \
                 use super::KERNELS;\n",
        );
        for of in &compiled.description.statics {
            device_static(&mut text, of);
        }
        text.push_str("}\n");
    }
    Ok(text)
}

fn device_static(text: &mut String, of: &StaticDescription) {
    let (name, mut generics) = (&of.name, Vec::new());
    let element = element_type(&of.elements, 0, &mut generics);
    let generics = in_brackets(&generics);
    let _ = writeln!(
        text,
        "\n/// The static at {place}.\n\
         pub fn r#{name}{generics}(\n    \
             device: &::thisgpu_build::Device,\n\
         ) -> ::core::result::Result<::thisgpu_build::Buffer<{element}>, ::thisgpu_build::Error> {{\n    \
             KERNELS.module(device)?.device_static({name:?})\n\
         }}",
        place = of.place,
    );
}

/// A list of type parameters, if there are some.
fn in_brackets(generics: &[String]) -> String {
    match generics.is_empty() {
        true => String::new(),
        false => format!("<{}>", generics.join(", ")),
    }
}

/// How a function launches its kernel.
struct How {
    /// What it says of it.
    says: &'static str,
    /// Its first parameter.
    on: &'static str,
    /// The device.
    device: &'static str,
    /// What it gives.
    result: &'static str,
    /// The call that does it.
    run: &'static str,
}

const AT_ONCE: How = How {
    says: "Waits until it has ended",
    on: "device: &::thisgpu_build::Device",
    device: "device",
    result: "Report",
    run: "run()",
};

const ON_STREAM: How = How {
    says: "Begins when what is on the stream has ended",
    on: "stream: &::thisgpu_build::Stream",
    device: "stream.device()",
    result: "Pending",
    run: "enqueue(stream)",
};

fn function(text: &mut String, kernel: &KernelDescription, how: &How) {
    let _ = writeln!(text);
    for line in &kernel.documentation {
        let _ = writeln!(text, "/// {line}");
    }
    if !kernel.documentation.is_empty() {
        let _ = writeln!(text, "///");
    }
    let (mut generics, mut parameters, mut arguments) = (Vec::new(), String::new(), String::new());
    for (index, parameter) in kernel.parameters.iter().enumerate() {
        let name = match parameter.name.as_str() {
            // Names that the function has itself, and parameters without one.
            "_" | "device" | "stream" | "grid" => format!("argument_{index}"),
            name => format!("r#{name}"),
        };
        let ty = host_type(parameter, index, &mut generics);
        let _ = write!(parameters, ",\n    {name}: {ty}");
        let _ = write!(arguments, ".arg({name})");
    }
    let generics = in_brackets(&generics);
    let _ = writeln!(
        text,
        "/// The kernel at {place}. {says}.\n\
         #[allow(dead_code, clippy::too_many_arguments)]\n\
         pub fn {function}{generics}(\n    \
             {on},\n    \
             grid: ::thisgpu_build::Grid{parameters},\n\
         ) -> ::core::result::Result<::thisgpu_build::{result}, ::thisgpu_build::Error> {{\n    \
             KERNELS.module({device})?.kernel({name:?})?.launch(grid){arguments}.{run}\n\
         }}",
        place = kernel.place,
        says = how.says,
        function = function_name(&kernel.symbol),
        on = how.on,
        result = how.result,
        device = how.device,
        name = kernel.symbol,
        run = how.run,
    );
}

/// The name of a kernel's function: the kernel's own, if nothing else has it and Rust allows it.
fn function_name(kernel: &str) -> String {
    match kernel {
        "load" | "crate" | "self" | "super" | "Self" | "_" => format!("kernel_{kernel}"),
        _ => format!("r#{kernel}"),
    }
}

/// The type of an element on the host. A structure is whatever type of the same size the host has for it.
fn element_type(parameter: &Parameter, index: usize, generics: &mut Vec<String>) -> String {
    match parameter.number.host_type() {
        // A bool in memory is a byte: not every byte is a bool.
        Some("bool") => "u8".to_string(),
        Some(name) => name.to_string(),
        None => {
            generics.push(format!("T{index}: ::thisgpu_build::Pod"));
            format!("T{index}")
        }
    }
}

/// The type of a parameter on the host.
fn host_type(parameter: &Parameter, index: usize, generics: &mut Vec<String>) -> String {
    if parameter.class == Class::Value {
        return parameter.number.value_type().to_string();
    }
    let reference = match parameter.access {
        Access::Write => "&mut ",
        _ => "&",
    };
    let element = element_type(parameter, index, generics);
    let buffer = format!("{reference}::thisgpu_build::Buffer<{element}>");
    match parameter.class {
        Class::Plane | Class::Volume => format!("({buffer}, [u32; {}])", parameter.class.extents()),
        _ => buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::Description;
    use crate::descriptor::Number;

    fn parameter(name: &str, class: Class, access: Access, number: Number, size: u32) -> Parameter {
        Parameter {
            name: name.into(),
            class,
            access,
            dimensions: 3,
            number,
            size,
            align: size.min(8),
        }
    }

    #[test]
    fn names_of_functions_are_names() {
        assert_eq!(function_name("match"), "r#match");
        assert_eq!(function_name("load"), "kernel_load");
    }

    #[test]
    fn each_kernel_has_a_function_with_its_types() {
        let kernel = KernelDescription {
            symbol: "move_all".into(),
            name: "move_all".into(),
            place: "src/lib.rs:3".into(),
            documentation: vec!["Moves.".into()],
            max_threads: None,
            min_blocks: None,
            test_threads: None,
            should_panic: false,
            parameters: vec![
                parameter("time", Class::Value, Access::None, Number::F32, 4),
                parameter("grid", Class::Value, Access::None, Number::Bool, 1),
                parameter("speed", Class::Reference, Access::Read, Number::F32, 4),
                parameter("type", Class::Slice, Access::Write, Number::Other, 12),
                parameter("map", Class::Volume, Access::Write, Number::F32, 4),
            ],
        };
        let test = KernelDescription {
            symbol: "test_it".into(),
            test_threads: Some(1),
            ..kernel.clone()
        };
        let compiled = Compiled {
            object: Vec::new(),
            clif: String::new(),
            description: Description {
                name: "movers".into(),
                kernels: vec![kernel, test],
                formats: vec![(1, "a \"b\"".into())],
                heap_holder: None,
                statics: vec![StaticDescription {
                    name: "WEIGHTS".into(),
                    place: "src/lib.rs:9".into(),
                    elements: parameter("WEIGHTS", Class::Slice, Access::Read, Number::F64, 8),
                }],
            },
            is_fresh: false,
            warnings: Vec::new(),
            source_folder: ".".into(),
        };
        let text = generate(&compiled, Path::new("/out/kernels.elf")).unwrap();
        let expected = [
            "include_bytes!(\"/out/kernels.elf\")",
            "/// Moves.\n///\n/// The kernel at src/lib.rs:3.",
            "pub fn r#move_all<T3: ::thisgpu_build::Pod>(",
            "r#time: f32",
            "argument_1: bool",
            "r#speed: &::thisgpu_build::Buffer<f32>",
            "r#type: &mut ::thisgpu_build::Buffer<T3>",
            "r#map: (&mut ::thisgpu_build::Buffer<f32>, [u32; 3])",
            ".launch(grid).arg(r#time).arg(argument_1).arg(r#speed).arg(r#type).arg(r#map).run()",
            "pub fn r#move_all<T3: ::thisgpu_build::Pod>(\n    stream: &::thisgpu_build::Stream",
            ".arg(r#map).enqueue(stream)",
            "pub fn r#WEIGHTS(\n    device: &::thisgpu_build::Device,\n) -> \
             ::core::result::Result<::thisgpu_build::Buffer<f64>, ",
        ];
        for part in expected {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("fn test_it"));
    }
}
