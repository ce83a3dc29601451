//! Names in generated code from names in the documents.

/// A member or field name as a Rust type or variant name: `H1_H0` gives `H1H0`, `NoFTZ` gives `NoFtz`, `32` gives
/// `W32`.
pub fn camel(name: &str) -> String {
    let mut out = String::new();
    let mut previous_lower = false;
    let mut start = true;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            start = true;
            previous_lower = false;
            continue;
        }
        if start || (c.is_ascii_uppercase() && previous_lower) {
            out.push(c.to_ascii_uppercase());
        } else {
            out.push(c.to_ascii_lowercase());
        }
        start = false;
        previous_lower = c.is_ascii_lowercase();
    }
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, 'W');
    }
    out
}

/// The module of an optype: its name in lower case.
pub fn module_name(optype: &str) -> String {
    snake(optype)
}

/// An operand's part in the operation, the same in all forms: `rb`, `urb` and `vb` are `b`, `upc` is `pc`.
pub fn role_name(operand: &str) -> String {
    // `R[urb, ridx]`: the register that holds the index.
    let operand = operand
        .strip_prefix("R[")
        .and_then(|rest| rest.split(',').next())
        .unwrap_or(operand);
    for prefix in ["ur", "r", "v"] {
        if let Some(rest) = operand.strip_prefix(prefix)
            && rest.len() == 1
            && rest.starts_with(['a', 'b', 'c', 'd'])
        {
            return rest.to_string();
        }
    }
    match operand {
        "upc" => "pc".to_string(),
        "PR" => "predicates".to_string(),
        other => other.to_string(),
    }
}

/// A name as a constant: upper case, dots as underscores.
pub fn constant(name: &str) -> String {
    name.replace('.', "_").to_ascii_uppercase()
}

/// A name as a Rust field: dots as underscores, keywords escaped.
pub fn snake(name: &str) -> String {
    let name = name.replace('.', "_").to_ascii_lowercase();
    match name.as_str() {
        "type" | "match" | "mod" | "move" | "fn" | "in" | "as" | "ref" | "use" => {
            format!("{name}_")
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("H1_H0", "H1H0"),
            ("NoFTZ", "NoFtz"),
            ("NoSX32", "NoSx32"),
            ("F4E", "F4e"),
            ("32", "W32"),
            ("SATRELU", "Satrelu"),
            ("F16_V2", "F16V2"),
            ("SR_TID_X", "SrTidX"),
        ] {
            assert_eq!(camel(name), expected);
        }
        for (name, expected) in [
            ("urb", "b"),
            ("vb", "b"),
            ("rd", "d"),
            ("upc", "pc"),
            ("pu", "pu"),
            ("ridx", "ridx"),
        ] {
            assert_eq!(role_name(name), expected);
        }
    }
}
