//! LLVM IR as this crate sees it: what a text says, without what optimisation passes alone would need.

mod debug;
mod types;

pub use debug::{Computation, DebugType, Metadata, Record, Step};
pub use types::{Extent, Places, Struct, Type};

use crate::error::ReadError;
use hashbrown::HashMap;
use std::sync::Arc;

/// A value of a function: a parameter or the result of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Local(pub u32);

/// A value with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Its type.
    pub ty: Type,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of the function.
    Local(Local),
    /// Known to the linker.
    Constant(Constant),
}

/// A constant; its type stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// The low bits are the integer.
    Int(u128),
    /// The bits of a float in its own format.
    Float(u64),
    /// All bits zero: `null`, `zeroinitializer`.
    Zero,
    /// Any bits: `undef`, `poison`.
    Undefined,
    /// Bytes of an array of i8.
    Bytes(Arc<[u8]>),
    /// The elements of an array, structure or vector.
    Aggregate(Arc<[(Type, Constant)]>),
    /// The same value in all lanes.
    Splat(Arc<Constant>),
    /// The address of a function or variable.
    Symbol(Arc<str>),
    /// A sum or cast of others.
    Expression(Arc<Expression>),
}

/// What a constant is computed from.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// An address in an object.
    Address(AddressOf),
    /// A cast.
    Cast(Cast, Operand, Type),
    /// An operation on integers.
    Binary(Binary, Operand, Operand),
    /// One that is not known, by its name.
    Unknown(Arc<str>),
}

/// The operands of a `getelementptr`.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressOf {
    /// What the first index counts.
    pub element: Type,
    /// Where it begins.
    pub base: Operand,
    /// Indices into it, outermost first.
    pub indices: Vec<Operand>,
}

/// An operation of two operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "LLVM's own names")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "LLVM's own names")]
pub enum Cast {
    Trunc,
    ZExt,
    SExt,
    FpToUi,
    FpToSi,
    UiToFp,
    SiToFp,
    FpTrunc,
    FpExt,
    PtrToInt,
    IntToPtr,
    BitCast,
    AddressSpace,
}

/// How integers or addresses are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "LLVM's own names")]
pub enum IntPredicate {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// How floats are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "LLVM's own names")]
pub enum FloatPredicate {
    False,
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    Uno,
    True,
}

/// How an access is ordered among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// An ordinary access.
    Plain,
    /// `unordered` or `monotonic`: Rust's `Relaxed`.
    Relaxed,
    /// `acquire`, `release`, `acq_rel` or `seq_cst`.
    Ordered,
}

/// What an access says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Alignment in bytes, a power of two.
    pub align: u64,
    /// Its order.
    pub ordering: Ordering,
    /// Neither left out nor repeated.
    pub volatile: bool,
}

/// What an `atomicrmw` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "LLVM's own names")]
pub enum Update {
    Xchg,
    Add,
    Sub,
    And,
    Nand,
    Or,
    Xor,
    Max,
    Min,
    UMax,
    UMin,
    FAdd,
    FSub,
    FMax,
    FMin,
    UIncWrap,
    UDecWrap,
    USubCond,
    USubSat,
}

/// A block by its number in the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// What a call calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Callee {
    /// A function by its symbol.
    Symbol(Arc<str>),
    /// An address.
    Address(Operand),
    /// Assembly of the host: template and constraints.
    Assembly(Arc<str>, Arc<str>),
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// The operands.
    pub arguments: Vec<Operand>,
    /// By argument, the type of what it points to if the callee gets a copy of that, and its alignment.
    pub by_value: Vec<Option<(Type, u64)>>,
    /// By argument, the alignment that it is promised to have.
    pub aligns: Vec<Option<u64>>,
    /// What the call itself says.
    pub attributes: Attributes,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "fields are named as LLVM's language reference names them"
)]
pub enum Operation {
    Binary(Binary, Operand, Operand),
    Negate(Operand),
    Cast(Cast, Operand),
    CompareInts(IntPredicate, Operand, Operand),
    CompareFloats(FloatPredicate, Operand, Operand),
    Select(Operand, Operand, Operand),
    Phi(Vec<(Value, BlockId)>),
    Freeze(Operand),
    Alloca {
        ty: Type,
        count: Operand,
        align: u64,
    },
    Load(Operand, Access),
    Store {
        value: Operand,
        address: Operand,
        access: Access,
    },
    /// [`Ordering::Plain`] orders the thread against itself only.
    Fence(Ordering),
    CompareExchange {
        address: Operand,
        expected: Operand,
        new: Operand,
        access: Access,
    },
    Update {
        update: Update,
        address: Operand,
        operand: Operand,
        access: Access,
    },
    Address(AddressOf),
    ExtractValue(Operand, Vec<u64>),
    InsertValue(Operand, Operand, Vec<u64>),
    ExtractElement(Operand, Operand),
    InsertElement(Operand, Operand, Operand),
    /// The lanes of both operands behind each other, or none where any value will do.
    Shuffle(Operand, Operand, Vec<Option<u32>>),
    Call(Box<Call>),
    Return(Option<Operand>),
    Jump(BlockId),
    Branch(Operand, BlockId, BlockId),
    Switch {
        on: Operand,
        default: BlockId,
        cases: Vec<(u128, BlockId)>,
    },
    Unreachable,
    /// One that is not translated, with the reason.
    Unsupported(ReadError),
}

impl Operation {
    /// Whether it ends a block.
    pub fn is_terminator(&self) -> bool {
        matches!(
            self,
            Self::Return(_)
                | Self::Jump(_)
                | Self::Branch(..)
                | Self::Switch { .. }
                | Self::Unreachable
        )
    }

    /// Where control goes from it.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Self::Jump(to) => vec![*to],
            Self::Branch(_, then, otherwise) => vec![*then, *otherwise],
            Self::Switch { default, cases, .. } => {
                let cases = cases.iter().map(|(_, to)| *to);
                std::iter::once(*default).chain(cases).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The value that it gives.
    pub result: Option<Local>,
    /// The type of that, or void.
    pub ty: Type,
    /// What it does.
    pub operation: Operation,
    /// Its place: the number of a metadata node.
    pub location: Option<u32>,
}

/// A block; the last instruction is its terminator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Its name.
    pub name: Arc<str>,
    /// Instructions in order.
    pub instructions: Vec<Instruction>,
    /// What debug information says of variables, in the order in which it stands between the instructions.
    pub records: Vec<Record>,
}

impl Block {
    /// Where control goes from it.
    pub fn successors(&self) -> Vec<BlockId> {
        self.instructions
            .last()
            .map(|last| last.operation.successors())
            .unwrap_or_default()
    }
}

/// What matters of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Depends on the threads that execute it together.
    pub convergent: bool,
    /// Does not return.
    pub no_return: bool,
    /// The features of the host's processor that it is compiled for.
    pub host_features: HostFeatures,
}

/// Which features of the host's processor a function is compiled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostFeatures {
    /// It says nothing of them.
    #[default]
    Unsaid,
    /// Those that every processor of the host's kind has, which programs use without asking.
    OfAll,
    /// Others.
    OfSome,
}

impl std::ops::BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self {
            convergent: self.convergent || other.convergent,
            no_return: self.no_return || other.no_return,
            host_features: self.host_features.max(other.host_features),
        }
    }
}

/// Who sees a symbol, and whether another definition may stand for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// The only definition of the program.
    #[default]
    External,
    /// One of several, any of which may be taken.
    Weak,
    /// Seen by its module alone.
    Local,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its type.
    pub ty: Type,
    /// The value in the body.
    pub local: Local,
    /// The type of what it points to, if it is the function's own copy of that.
    pub by_value: Option<(Type, u64)>,
}

/// A function, or the declaration of one.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its symbol.
    pub name: Arc<str>,
    /// The Rust path of it, as rustc writes above a definition.
    pub title: Option<Arc<str>>,
    /// Who sees it.
    pub linkage: Linkage,
    /// What it gives.
    pub returns: Type,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// Whether it takes more than that.
    pub variadic: bool,
    /// What it promises.
    pub attributes: Attributes,
    /// Its scope in the source: the number of a metadata node.
    pub subprogram: Option<u32>,
    /// Its blocks, the first of which is the entry; none of a declaration.
    pub blocks: Vec<Block>,
    /// How many values there are in it.
    pub locals: u32,
}

impl Function {
    /// Whether it is declared only.
    pub fn is_declaration(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether it is one of `std` itself, which wants a host.
    pub(crate) fn is_of_std(&self) -> bool {
        let spoken = self.spoken();
        ["std::", "<std::"]
            .iter()
            .any(|begin| spoken.starts_with(begin))
    }

    /// The name for messages: the Rust path, or the symbol.
    pub fn spoken(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A variable or constant in memory.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its symbol.
    pub name: Arc<str>,
    /// Who sees it.
    pub linkage: Linkage,
    /// Whether it never changes.
    pub constant: bool,
    /// Whether each thread of the host would have its own.
    pub thread_local: bool,
    /// Its type.
    pub ty: Type,
    /// What it begins with; none of a declaration.
    pub value: Option<Constant>,
    /// Alignment in bytes, if the text says one.
    pub align: Option<u64>,
    /// What debug information says of it: the number of a metadata node.
    pub debug: Option<u32>,
}

/// Another name of something.
#[derive(Clone, Debug)]
pub struct Alias {
    /// The symbol.
    pub name: Arc<str>,
    /// Who sees it.
    pub linkage: Linkage,
    /// What it stands for.
    pub target: Constant,
}

/// Where a symbol stands in its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// Among the functions.
    Function(usize),
    /// Among the variables.
    Variable(usize),
    /// Among the aliases.
    Alias(usize),
}

/// The LLVM IR of one crate.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// What messages call it.
    pub name: String,
    /// Functions and declarations, in the order of the text.
    pub functions: Vec<Function>,
    /// Variables, in the order of the text.
    pub variables: Vec<Variable>,
    /// Other names.
    pub aliases: Vec<Alias>,
    /// Debug information by number.
    pub metadata: HashMap<u32, Metadata>,
    /// By symbol, what it is.
    pub items: HashMap<Arc<str>, Item>,
}

impl Module {
    /// Makes functions declarations: their bodies are to come from elsewhere.
    pub fn forget(&mut self, is_meant: impl Fn(&str) -> bool) {
        for function in self
            .functions
            .iter_mut()
            .filter(|function| is_meant(&function.name))
        {
            function.blocks.clear();
            function.linkage = Linkage::External;
        }
    }

    /// Who sees a symbol, and whether the module defines it.
    pub(crate) fn linkage(&self, item: Item) -> (Linkage, bool) {
        match item {
            Item::Function(index) => {
                let function = &self.functions[index];
                (function.linkage, !function.is_declaration())
            }
            Item::Variable(index) => {
                let variable = &self.variables[index];
                (variable.linkage, variable.value.is_some())
            }
            Item::Alias(index) => (self.aliases[index].linkage, true),
        }
    }
}
