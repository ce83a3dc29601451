//! Types, constants and attributes.

use super::lexer::{Lexer, MAX_DEPTH, TOO_DEEP, Token};
use crate::error::ReadError;
use crate::layout;
use crate::model::{
    AddressOf, Attributes, Binary, Cast, Constant, Expression, HostFeatures, Operand, Type, Value,
};
use hashbrown::HashMap;
use std::sync::Arc;

/// Types by name, as a module defines them.
pub type NamedTypes = HashMap<String, Type>;

/// Whether a type begins with this token.
pub fn begins_type(token: &Token<'_>) -> bool {
    match token {
        Token::Word(word) => {
            matches!(
                *word,
                "void"
                    | "half"
                    | "bfloat"
                    | "float"
                    | "double"
                    | "fp128"
                    | "x86_fp80"
                    | "ppc_fp128"
                    | "x86_amx"
                    | "ptr"
                    | "label"
                    | "metadata"
                    | "token"
                    | "target"
            ) || int_bits(word).is_some()
        }
        Token::Local(_) => true,
        Token::Sign(sign) => matches!(sign, '<' | '[' | '{'),
        _ => false,
    }
}

fn int_bits(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('i')?;
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().ok())?
}

/// A type.
pub fn ty(lexer: &mut Lexer<'_>, named: &NamedTypes) -> Result<Type, ReadError> {
    let token = lexer.next_token();
    let first = match token {
        Some(Token::Word(word)) => match word {
            "void" => Type::Void,
            "half" => Type::Half,
            "float" => Type::Float,
            "double" => Type::Double,
            "ptr" => {
                let mut space = 0;
                if lexer.eat_word("addrspace") {
                    lexer.expect('(')?;
                    space = number(lexer)?;
                    lexer.expect(')')?;
                }
                Type::Pointer(space)
            }
            "target" => {
                lexer.skip_brackets()?;
                Type::Other("target".into())
            }
            word => match int_bits(word) {
                Some(bits) => Type::Int(bits),
                None => Type::Other(word.into()),
            },
        },
        Some(Token::Local(name)) => match named.get(name.as_ref()) {
            Some(ty) => ty.clone(),
            None => Type::Other(name.as_ref().into()),
        },
        Some(Token::Sign('[')) => {
            let count = number(lexer)?;
            lexer.expect_word("x")?;
            let element = lexer.nested(|lexer| ty(lexer, named))?;
            lexer.expect(']')?;
            bounded(Type::Array(count, Arc::new(element)))?
        }
        Some(Token::Sign('{')) => structure(lexer, named, false)?,
        Some(Token::Sign('<')) if lexer.eat('{') => {
            let packed = structure(lexer, named, true)?;
            lexer.expect('>')?;
            packed
        }
        Some(Token::Sign('<')) => {
            let scalable = lexer.eat_word("vscale");
            if scalable {
                lexer.expect_word("x")?;
            }
            let count = number(lexer)?;
            lexer.expect_word("x")?;
            let lane = lexer.nested(|lexer| ty(lexer, named))?;
            lexer.expect('>')?;
            match scalable {
                true => Type::Other("scalable vector".into()),
                false => bounded(Type::Vector(count, Arc::new(lane)))?,
            }
        }
        other => return Err(ReadError::expected("a type", format!("{other:?}"))),
    };
    Ok(first)
}

/// The fields of a structure, behind its opening brace.
fn structure(lexer: &mut Lexer<'_>, named: &NamedTypes, packed: bool) -> Result<Type, ReadError> {
    let mut fields = Vec::new();
    while !lexer.eat('}') {
        if !fields.is_empty() {
            lexer.expect(',')?;
        }
        fields.push(lexer.nested(|lexer| ty(lexer, named))?);
    }
    bounded(layout::structure(packed, fields))
}

/// Most types that a type is made of (*assumed*: more than the longest table of constants, whose type has a field for
/// each).
const MAX_NODES: u64 = 1 << 24;

/// A type that is made of no more others than passes over types can take. Named types are in it, so it may be more than
/// its text.
fn bounded(ty: Type) -> Result<Type, ReadError> {
    let extent = ty.extent();
    if extent.depth > MAX_DEPTH {
        return Err(TOO_DEEP);
    }
    if extent.nodes > MAX_NODES {
        return Err(ReadError::TooLarge { most: MAX_NODES });
    }
    Ok(ty)
}

/// A number without a sign.
pub fn number<N: std::str::FromStr>(lexer: &mut Lexer<'_>) -> Result<N, ReadError> {
    match lexer.next_token() {
        Some(Token::Number(digits)) => digits.parse().map_err(|_| ReadError::Number {
            digits: digits.to_owned(),
            place: "that can stand here",
        }),
        other => Err(ReadError::expected("a number", format!("{other:?}"))),
    }
}

/// An alignment: a power of two.
pub fn alignment(lexer: &mut Lexer<'_>) -> Result<u64, ReadError> {
    let align: u64 = number(lexer)?;
    match align.is_power_of_two() && align <= 1 << 32 {
        true => Ok(align),
        false => Err(ReadError::Alignment(align)),
    }
}

/// What attributes say that matters here.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Of functions.
    pub attributes: Attributes,
    /// `byval(TYPE)`.
    pub by_value: Option<Type>,
    /// `align N`.
    pub align: Option<u64>,
    /// Groups `#N`.
    pub groups: Vec<u32>,
}

/// Features that every 64-bit processor of its kind has: of x86 (*documented*: the psABI's baseline), and of Arm
/// (*assumed*: rustc's targets that have an operating system).
const OF_ALL: [&str; 9] = [
    "x87", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "fp-armv8", "neon",
];

/// The kind of `+sse2,+avx`.
fn host_features(text: &[u8]) -> HostFeatures {
    let text = String::from_utf8_lossy(text);
    let mut wanted = text
        .split(',')
        .filter_map(|feature| feature.strip_prefix('+'));
    match (
        text.is_empty(),
        wanted.all(|feature| OF_ALL.contains(&feature)),
    ) {
        (true, _) => HostFeatures::Unsaid,
        (false, true) => HostFeatures::OfAll,
        (false, false) => HostFeatures::OfSome,
    }
}

/// Passes attributes, linkage and their like, up to what `ends` accepts or the end.
pub fn attributes(
    lexer: &mut Lexer<'_>,
    named: &NamedTypes,
    ends: impl Fn(&Token<'_>) -> bool,
) -> Result<Said, ReadError> {
    let mut said = Said::default();
    while let Some(token) = lexer.peek() {
        if ends(token) {
            break;
        }
        match lexer.next_token() {
            Some(Token::Word("convergent")) => said.attributes.convergent = true,
            Some(Token::Word("noreturn")) => said.attributes.no_return = true,
            Some(Token::Text(name)) if name == b"target-features" && lexer.eat('=') => {
                if let Some(Token::Text(features)) = lexer.next_token() {
                    said.attributes.host_features = host_features(&features);
                }
            }
            Some(Token::Word("align")) => {
                let brackets = lexer.eat('(');
                said.align = Some(alignment(lexer)?);
                if brackets {
                    lexer.expect(')')?;
                }
            }
            Some(Token::Word("byval")) => {
                lexer.expect('(')?;
                said.by_value = Some(ty(lexer, named)?);
                lexer.expect(')')?;
            }
            Some(Token::Group(group)) => said.groups.push(group),
            _ => {
                if lexer.peek() == Some(&Token::Sign('(')) {
                    lexer.skip_brackets()?;
                }
            }
        }
    }
    Ok(said)
}

/// A constant of a type.
pub fn constant(
    lexer: &mut Lexer<'_>,
    named: &NamedTypes,
    of: &Type,
) -> Result<Constant, ReadError> {
    lexer.nested(|lexer| constant_inside(lexer, named, of))
}

fn constant_inside(
    lexer: &mut Lexer<'_>,
    named: &NamedTypes,
    of: &Type,
) -> Result<Constant, ReadError> {
    let token = lexer.next_token();
    Ok(match token {
        Some(Token::Number(digits)) => literal(digits, of)?,
        Some(Token::Global(name)) => Constant::Symbol(name.as_ref().into()),
        Some(Token::Bytes(bytes)) => Constant::Bytes(bytes.into()),
        Some(Token::Sign('[')) => Constant::Aggregate(elements(lexer, named, ']')?),
        Some(Token::Sign('{')) => Constant::Aggregate(elements(lexer, named, '}')?),
        Some(Token::Sign('<')) if lexer.eat('{') => {
            let fields = elements(lexer, named, '}')?;
            lexer.expect('>')?;
            Constant::Aggregate(fields)
        }
        Some(Token::Sign('<')) => Constant::Aggregate(elements(lexer, named, '>')?),
        Some(Token::Word(word)) => match word {
            "true" => Constant::Int(1),
            "false" | "null" | "zeroinitializer" => Constant::Zero,
            "undef" | "poison" => Constant::Undefined,
            "none" => Constant::Zero,
            "splat" => {
                lexer.expect('(')?;
                let lane = operand_constant(lexer, named)?;
                lexer.expect(')')?;
                Constant::Splat(Arc::new(lane.1))
            }
            "dso_local_equivalent" | "no_cfi" => constant(lexer, named, of)?,
            word => Constant::Expression(Arc::new(expression(lexer, named, word)?)),
        },
        other => return Err(ReadError::expected("a constant", format!("{other:?}"))),
    })
}

/// A number as LLVM writes those of a type.
fn literal(digits: &str, of: &Type) -> Result<Constant, ReadError> {
    let wrong = || ReadError::Number {
        digits: digits.to_owned(),
        place: "of its type",
    };
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| wrong());
    match of.lane() {
        Type::Int(_) => {
            let value = match digits.strip_prefix('-') {
                Some(positive) => positive.parse::<u128>().map(u128::wrapping_neg),
                None => digits.parse::<u128>(),
            };
            value.map(Constant::Int).map_err(|_| wrong())
        }
        Type::Half => {
            let bits = digits.strip_prefix("0xH").ok_or_else(wrong)?;
            Ok(Constant::Float(hexadecimal(bits)?))
        }
        // A float is written as the double of the same value.
        Type::Float | Type::Double => {
            let double = match digits.strip_prefix("0x") {
                Some(bits) => hexadecimal(bits)?,
                None => digits.parse::<f64>().map_err(|_| wrong())?.to_bits(),
            };
            let single = *of.lane() == Type::Float;
            Ok(Constant::Float(match single {
                true => u64::from(narrowed(double)),
                false => double,
            }))
        }
        _ => Err(wrong()),
    }
}

/// The bits of the f32 that a double of the same value stands for; of a NaN the payload is kept, as a conversion might
/// not.
fn narrowed(double: u64) -> u32 {
    let value = f64::from_bits(double);
    if value.is_nan() {
        let sign = (double >> 32) as u32 & 0x8000_0000;
        return sign | 0x7f80_0000 | (double >> 29) as u32 & 0x007f_ffff;
    }
    (value as f32).to_bits()
}

/// Constants with their types up to a closing sign.
fn elements(
    lexer: &mut Lexer<'_>,
    named: &NamedTypes,
    close: char,
) -> Result<Arc<[(Type, Constant)]>, ReadError> {
    let mut elements = Vec::new();
    while !lexer.eat(close) {
        if !elements.is_empty() {
            lexer.expect(',')?;
        }
        elements.push(operand_constant(lexer, named)?);
    }
    Ok(elements.into())
}

/// A type and a constant of it.
pub fn operand_constant(
    lexer: &mut Lexer<'_>,
    named: &NamedTypes,
) -> Result<(Type, Constant), ReadError> {
    let of = ty(lexer, named)?;
    let value = constant(lexer, named, &of)?;
    Ok((of, value))
}

/// An expression, behind its opcode.
fn expression(
    lexer: &mut Lexer<'_>,
    named: &NamedTypes,
    opcode: &str,
) -> Result<Expression, ReadError> {
    let operand = |lexer: &mut Lexer<'_>| {
        let (ty, value) = operand_constant(lexer, named)?;
        let value = Value::Constant(value);
        Ok::<_, ReadError>(Operand { ty, value })
    };
    if let Some(cast) = cast(opcode) {
        lexer.expect('(')?;
        let of = operand(lexer)?;
        lexer.expect_word("to")?;
        let to = ty(lexer, named)?;
        lexer.expect(')')?;
        return Ok(Expression::Cast(cast, of, to));
    }
    if let Some(binary) = binary(opcode) {
        while lexer.peek().is_some_and(|token| *token != Token::Sign('(')) {
            lexer.next_token();
        }
        lexer.expect('(')?;
        let left = operand(lexer)?;
        lexer.expect(',')?;
        let right = operand(lexer)?;
        lexer.expect(')')?;
        return Ok(Expression::Binary(binary, left, right));
    }
    if opcode == "getelementptr" {
        // Words, and `inrange(-16, 16)`, before the operands.
        while let Some(Token::Word(word)) = lexer.peek() {
            let ranged = *word == "inrange";
            lexer.next_token();
            if ranged {
                lexer.skip_brackets()?;
            }
        }
        lexer.expect('(')?;
        let element = ty(lexer, named)?;
        lexer.expect(',')?;
        let base = operand(lexer)?;
        let mut indices = Vec::new();
        while lexer.eat(',') {
            indices.push(operand(lexer)?);
        }
        lexer.expect(')')?;
        return Ok(Expression::Address(AddressOf {
            element,
            base,
            indices,
        }));
    }
    if lexer.peek() == Some(&Token::Sign('(')) {
        lexer.skip_brackets()?;
    }
    Ok(Expression::Unknown(opcode.into()))
}

/// The operation of two operands with this name.
pub fn binary(opcode: &str) -> Option<Binary> {
    use Binary::*;
    Some(match opcode {
        "add" => Add,
        "sub" => Sub,
        "mul" => Mul,
        "udiv" => UDiv,
        "sdiv" => SDiv,
        "urem" => URem,
        "srem" => SRem,
        "shl" => Shl,
        "lshr" => LShr,
        "ashr" => AShr,
        "and" => And,
        "or" => Or,
        "xor" => Xor,
        "fadd" => FAdd,
        "fsub" => FSub,
        "fmul" => FMul,
        "fdiv" => FDiv,
        "frem" => FRem,
        _ => return None,
    })
}

/// The conversion with this name.
pub fn cast(opcode: &str) -> Option<Cast> {
    use Cast::*;
    Some(match opcode {
        "trunc" => Trunc,
        "zext" => ZExt,
        "sext" => SExt,
        "fptoui" => FpToUi,
        "fptosi" => FpToSi,
        "uitofp" => UiToFp,
        "sitofp" => SiToFp,
        "fptrunc" => FpTrunc,
        "fpext" => FpExt,
        "ptrtoint" | "ptrtoaddr" => PtrToInt,
        "inttoptr" => IntToPtr,
        "bitcast" => BitCast,
        "addrspacecast" => AddressSpace,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Type, Constant) {
        operand_constant(&mut Lexer::new(text), &NamedTypes::new()).unwrap()
    }

    #[test]
    fn types_and_constants() {
        assert_eq!(read("i32 -1").1, Constant::Int(u128::MAX));
        assert_eq!(read("half 0xH3C00").1, Constant::Float(0x3c00));
        assert_eq!(
            read("float 0x3FB99999A0000000").1,
            Constant::Float(u64::from(0.1f32.to_bits()))
        );
        assert_eq!(read("double 2.5e-01").1, Constant::Float(0.25f64.to_bits()));
        let nan = read("float 0xFFF8000020000000").1;
        assert_eq!(nan, Constant::Float(0xffc0_0001));
        let (of, value) = read("<{ ptr, [2 x i8] }> <{ ptr @\"a b\", [2 x i8] c\"x\\00\" }>");
        assert!(matches!(&of, Type::Struct(of) if of.is_packed() && of.fields().len() == 2));
        let Constant::Aggregate(fields) = value else {
            panic!("no aggregate");
        };
        assert_eq!(fields[0].1, Constant::Symbol("a b".into()));
        let (_, value) = read("ptr getelementptr inbounds nuw (i8, ptr @x, i64 8)");
        assert!(
            matches!(value, Constant::Expression(e) if matches!(&*e, Expression::Address(a) if a.indices.len() == 1))
        );
        assert_eq!(read("<4 x i8> splat (i8 7)").0.lanes(), Some(4));
    }

    #[test]
    fn attributes_are_passed() {
        let text = "noundef range(i8 0, 2) captures(ret: address, provenance) align 8 \"a\"=\"b\" #3 convergent i32";
        let mut lexer = Lexer::new(text);
        let said = attributes(&mut lexer, &NamedTypes::new(), begins_type).unwrap();
        assert!(said.attributes.convergent);
        assert_eq!((said.align, said.groups), (Some(8), vec![3]));
        assert_eq!(lexer.next_token(), Some(Token::Word("i32")));
    }
}
