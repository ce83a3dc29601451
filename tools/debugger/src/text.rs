//! Operands, values, lanes and memory as text.

use crate::command::HELP;
use cranelift_codegen::ir::{Type, types};
use cranelift_thisgpu::sim::debug::Operand;

/// Lanes of a warp.
pub const LANES: u32 = 32;
/// Bytes in a line of memory.
const BYTES_IN_LINE: usize = 16;

/// A mask as 32 signs, lane 0 first.
pub fn mask(lanes: u32) -> String {
    let sign = |lane| if lanes >> lane & 1 == 0 { '.' } else { '#' };
    (0..LANES).map(sign).collect()
}

/// Addresses, with commas between them.
pub fn hexadecimal(addresses: &[u32]) -> String {
    let texts: Vec<String> = addresses
        .iter()
        .map(|address| format!("{address:#x}"))
        .collect();
    texts.join(", ")
}

/// A symbol as the source says it, where that is known.
pub fn said(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}

/// A register as assembly text has it.
pub fn name(operand: &Operand) -> String {
    match operand {
        Operand::Register(number) => format!("R{number}"),
        Operand::Pair(number) => format!("R[{number}:{}]", u32::from(*number) + 1),
        Operand::Predicate(number) => format!("P{number}"),
        Operand::Uniform(number) => format!("UR{number}"),
        Operand::Source(value) => value.to_string(),
        Operand::Variable(path) => path.to_string(),
    }
}

/// A value as its type says, and its bits.
pub fn shown(value: u128, ty: Option<Type>) -> String {
    let float = match ty {
        Some(types::F16) => Some(f64::from(half::f16::from_bits(value as u16))),
        Some(types::F32) => Some(f64::from(f32::from_bits(value as u32))),
        Some(types::F64) => Some(f64::from_bits(value as u64)),
        _ => None,
    };
    match (float, ty) {
        (Some(float), _) => format!("{value:#x} ({float})"),
        (None, Some(ty)) if ty.is_int() && value >> (ty.bits() - 1) & 1 != 0 => {
            let signed = value.wrapping_sub(1u128.checked_shl(ty.bits()).unwrap_or(0)) as i128;
            format!("{value:#x} ({value}, {signed})")
        }
        _ => format!("{value:#x} ({value})"),
    }
}

/// Bytes in lines, with their addresses.
pub fn dump(address: u64, bytes: &[u8]) -> String {
    let lines = bytes
        .chunks(BYTES_IN_LINE)
        .enumerate()
        .map(|(index, line)| {
            let texts: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let address = address.wrapping_add((index * BYTES_IN_LINE) as u64);
            format!("{address:#x}: {}", texts.join(" "))
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// All commands, one a line.
pub fn help() -> String {
    let lines = HELP.iter().map(|(name, operands, what)| {
        let written = format!("{name} {operands}");
        format!("{:<52} {what}", written.trim_end())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn symbols_of_rust_are_said_as_in_the_source() {
        for (symbol, expected) in [
            ("_RNvCs1_5crate5inner", "crate::inner"),
            ("_RINvCs1_5crate3maxlE", "crate::max::<i32>"),
            ("_ZN5crate5inner17h0123456789abcdefE", "crate::inner"),
            ("saxpy", "saxpy"),
        ] {
            assert_eq!(said(symbol), expected);
        }
    }
}
