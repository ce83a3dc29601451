//! Finds the intrinsics among a function's external names, checks their use, and turns the thread and launch values
//! into pure instructions.
//!
//! Takes a function, a verified one where it is rewritten. Guarantees on success: every `%gpu_NAME` is a row of
//! [`super::TABLE`] with its exact signature, called only by `call`, with its constant operand a constant in range;
//! every `symbol %gpu_NAME` is a thread or launch value read as i32, or the shared memory as i32 or i64. Calls of the
//! nullary pure intrinsics have become `symbol_value.i32`, one global value per intrinsic, so that Cranelift's mid-end
//! merges and hoists them.

use super::{Intrinsic, Lowering, PREFIX, SHARED, TABLE, lookup, similar_names};
use crate::constants;
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use crate::isa::generated::PRMTMode;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, GlobalValue, GlobalValueData, Inst,
    InstBuilder, InstructionData, Opcode, Signature, Type, UserExternalName, Value, ValueDef,
    types,
};
use cranelift_codegen::isa::CallConv;
use hashbrown::HashMap;

/// Name of a function or data object that the embedding knows by number, without the `%`.
pub type Namer<'a> = dyn Fn(&UserExternalName) -> Option<String> + 'a;

/// What `symbol %gpu_NAME` stands for.
#[derive(Clone, Copy, Debug)]
pub enum GpuSymbol {
    /// A thread or launch value.
    Special(&'static Intrinsic),
    /// The kernel's shared memory.
    Shared,
}

/// Which external functions and symbols of a function are intrinsics.
#[derive(Clone, Debug, Default)]
pub struct Intrinsics {
    functions: SecondaryMap<FuncRef, Option<&'static Intrinsic>>,
    symbols: SecondaryMap<GlobalValue, Option<GpuSymbol>>,
    /// Parameters that are promised to be multiples of a power of two.
    multiples: Vec<(Value, u32)>,
}

impl Intrinsics {
    /// Whether there are none. [`Resolver`] has an entry for nothing else.
    fn is_empty(&self) -> bool {
        self.functions.values().all(Option::is_none) && self.symbols.values().all(Option::is_none)
    }

    /// The intrinsic that `callee` is.
    pub fn function(&self, callee: FuncRef) -> Option<&'static Intrinsic> {
        self.functions[callee]
    }

    /// Whether some are atomic operations.
    pub fn has_atomics(&self) -> bool {
        let mut known = self.functions.values().flatten();
        known.any(|intrinsic| matches!(intrinsic.lowering, Lowering::AtomicAdd(_)))
    }

    /// What a `symbol_value` of `gv` reads, if it is no ordinary data object.
    pub fn symbol(&self, gv: GlobalValue) -> Option<GpuSymbol> {
        self.symbols[gv]
    }

    /// What power of two a parameter of the function is promised to be a multiple of.
    pub fn promised(&self, parameter: Value) -> Option<u32> {
        let of_it = self
            .multiples
            .iter()
            .filter(|(value, _)| *value == parameter);
        of_it.map(|(_, power)| *power).max()
    }

    /// The operand that the result of `inst` is, with the power of two that it is promised to be a multiple of.
    pub fn alignment(&self, func: &Function, inst: Inst) -> Option<(Value, u32)> {
        let row = self.of_call(func, inst)?;
        if row.lowering != Lowering::Aligned {
            return None;
        }
        let &[value, power] = func.dfg.inst_args(inst) else {
            return None;
        };
        match func.dfg.insts[func.dfg.value_def(power).inst()?] {
            InstructionData::UnaryImm { imm, .. } => Some((value, imm.bits() as u32)),
            _ => None,
        }
    }

    /// The words that PRMT puts the bytes of `value` together from, and which: a nibble each.
    pub fn permutation(&self, func: &Function, value: Value) -> Option<([Value; 2], u32)> {
        let inst = func.dfg.value_def(value).inst()?;
        if self.of_call(func, inst)?.lowering != Lowering::Permute(PRMTMode::Idx) {
            return None;
        }
        let &[a, b, selector] = func.dfg.inst_args(inst) else {
            return None;
        };
        Some(([a, b], constants::bits(func, selector)? as u32))
    }

    /// A bit for each byte that PRMT puts zeros into, where it computes `value`.
    pub fn zero_bytes(&self, func: &Function, value: Value) -> u32 {
        let Some((words, selector)) = self.permutation(func, value) else {
            return 0;
        };
        let words = words.map(|word| constants::bits(func, word));
        (0..4).fold(0, |zeros, place| {
            let nibble = selector >> (4 * place);
            let (word, byte) = (nibble >> 2 & 1, nibble & 3);
            // Bit 3 repeats the sign of the byte: that of zero is zero, too.
            let of_byte = if nibble & 8 == 0 { 0xff } else { 0x80 };
            let is_zero = words[word as usize].is_some_and(|n| n >> (8 * byte) & of_byte == 0);
            zeros | u32::from(is_zero) << place
        })
    }

    /// What a call of the intrinsic with this lowering names, declared if it is not there. `first`: the type of its
    /// first operand.
    pub(crate) fn declare(
        &mut self,
        func: &mut Function,
        lowering: Lowering,
        first: Type,
    ) -> Option<FuncRef> {
        let is_wanted = |row: &&Intrinsic| row.lowering == lowering;
        let has_type = |callee: FuncRef| {
            let signature = &func.dfg.signatures[func.dfg.ext_funcs[callee].signature];
            (signature.params.first()).is_none_or(|p| p.value_type == first)
        };
        let mut declared = self.functions.iter();
        if let Some((callee, _)) =
            declared.find(|(callee, row)| row.as_ref().is_some_and(is_wanted) && has_type(*callee))
        {
            return Some(callee);
        }
        let row = TABLE.iter().find(is_wanted)?;
        let mut signature = Signature::new(CallConv::Fast);
        let (parameters, result) = row.types(first);
        (signature.params).extend(parameters.map(AbiParam::new));
        signature.returns.extend(result.map(AbiParam::new));
        let signature = func.import_signature(signature);
        let callee = func.import_function(ExtFuncData {
            name: ExternalName::testcase(format!("{PREFIX}{}", row.name)),
            signature,
            colocated: false,
            patchable: false,
        });
        self.functions[callee] = Some(row);
        Some(callee)
    }

    /// The inputs and the truth table of `%gpu_lop3`, if `inst` calls it.
    pub fn logic(&self, func: &Function, inst: Inst) -> Option<([Value; 3], u8)> {
        if self.of_call(func, inst)?.lowering != Lowering::Lop3 {
            return None;
        }
        let &[a, b, c, table] = func.dfg.inst_args(inst) else {
            return None;
        };
        Some(([a, b, c], constants::bits(func, table)? as u8))
    }

    /// The intrinsic that `inst` calls.
    pub fn of_call(&self, func: &Function, inst: Inst) -> Option<&'static Intrinsic> {
        match func.dfg.insts[inst] {
            InstructionData::Call {
                opcode: Opcode::Call,
                func_ref,
                ..
            } => self.function(func_ref),
            _ => None,
        }
    }

    /// What the `symbol_value` at `inst` reads, if it is no ordinary data object.
    pub fn of_symbol_value(&self, func: &Function, inst: Inst) -> Option<GpuSymbol> {
        match func.dfg.insts[inst] {
            InstructionData::UnaryGlobalValue {
                opcode: Opcode::SymbolValue,
                global_value,
            } => self.symbol(global_value),
            _ => None,
        }
    }
}

/// The text of an external name, without the `%`.
pub fn name_text(func: &Function, name: &ExternalName, namer: &Namer) -> Option<String> {
    match name {
        ExternalName::TestCase(name) => Some(String::from_utf8_lossy(name.raw()).into_owned()),
        ExternalName::User(reference) => namer(&func.params.user_named_funcs()[*reference]),
        ExternalName::LibCall(call) => Some(call.to_string()),
        ExternalName::KnownSymbol(_) => None,
    }
}

/// Finds and checks all intrinsics of `func`, which need not be verified, and rewrites nothing.
///
/// # Errors
/// All unknown names, wrong signatures and wrong uses, each with the legal declaration.
pub fn check(func: &Function, namer: &Namer) -> Result<Intrinsics, Errors> {
    let mut resolver = Resolver {
        found: Intrinsics::default(),
        errors: ErrorList::new(),
    };
    resolver.functions(func, namer);
    resolver.symbols(func, namer);
    if resolver.found.is_empty() {
        return resolver.errors.finish(resolver.found);
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            // Of an instruction with values that there are not the verifier says enough.
            if func
                .dfg
                .inst_values(inst)
                .all(|value| func.dfg.value_is_valid(value))
            {
                resolver.check_use(func, inst);
            }
        }
    }
    resolver.errors.finish(resolver.found)
}

/// [`check`], and rewrites the thread and launch values.
///
/// # Errors
/// As there.
pub fn resolve(func: &mut Function, namer: &Namer) -> Result<Intrinsics, Errors> {
    let mut found = check(func, namer)?;
    if !found.is_empty() {
        rewrite_special_values(func, &mut found);
        collect_promises(func, &mut found);
    }
    Ok(found)
}

struct Resolver {
    found: Intrinsics,
    errors: ErrorList,
}

impl Resolver {
    /// Looks every external function up and compares signatures.
    fn functions(&mut self, func: &Function, namer: &Namer) {
        for (reference, data) in func.dfg.ext_funcs.iter() {
            let Some(name) = name_text(func, &data.name, namer) else {
                continue;
            };
            let Some(name) = name.strip_prefix(PREFIX) else {
                continue;
            };
            // The verifier says what is wrong with a signature that there is not.
            let Some(declared) = func.dfg.signatures.get(data.signature) else {
                continue;
            };
            let message = match lookup(name) {
                Some(intrinsic) if intrinsic.accepts(declared) => {
                    self.found.functions[reference] = Some(intrinsic);
                    continue;
                }
                Some(intrinsic) => {
                    format!("declared as {declared}; declare it as {intrinsic}")
                }
                None => unknown(name),
            };
            let place = first_use(func, reference)
                .map_or_else(|| Place::of_function(func), |i| Place::of_inst(func, i));
            self.errors.push(Error::new(
                Problem::Intrinsic {
                    name: name.to_owned(),
                    message,
                },
                place,
            ));
        }
    }

    /// Looks every symbol up.
    fn symbols(&mut self, func: &Function, namer: &Namer) {
        for (gv, data) in func.global_values.iter() {
            let GlobalValueData::Symbol { name, offset, .. } = data else {
                continue;
            };
            let Some(name) = name_text(func, name, namer) else {
                continue;
            };
            let Some(name) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let message = if name == SHARED {
                self.found.symbols[gv] = Some(GpuSymbol::Shared);
                continue;
            } else if let Some(intrinsic) = lookup(name).filter(|row| row.is_special_value()) {
                if offset.bits() == 0 {
                    self.found.symbols[gv] = Some(GpuSymbol::Special(intrinsic));
                    continue;
                }
                format!("{gv} adds {offset} to a value that is no address; add it with iadd")
            } else if let Some(intrinsic) = lookup(name) {
                format!("{gv} is no value that can be read as a symbol; call it as {intrinsic}")
            } else {
                unknown(name)
            };
            let place = Place::of_function(func);
            self.errors.push(Error::new(
                Problem::Intrinsic {
                    name: name.to_owned(),
                    message,
                },
                place,
            ));
        }
    }

    /// Checks how `inst` uses an intrinsic.
    fn check_use(&mut self, func: &Function, inst: Inst) {
        let (name, message) = match func.dfg.insts[inst] {
            InstructionData::Call {
                opcode, func_ref, ..
            } => {
                let Some(intrinsic) = self.found.functions[func_ref] else {
                    return;
                };
                if opcode != Opcode::Call {
                    (
                        intrinsic.name,
                        format!("{opcode} of an intrinsic; call {intrinsic}, then return"),
                    )
                } else if let Some(message) = check_constant(func, inst, intrinsic) {
                    (intrinsic.name, message)
                } else {
                    return;
                }
            }
            InstructionData::TryCall { func_ref, .. } => {
                let Some(intrinsic) = self.found.functions[func_ref] else {
                    return;
                };
                (
                    intrinsic.name,
                    format!("an intrinsic throws no exception; call {intrinsic}"),
                )
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                let Some(intrinsic) = self.found.functions[func_ref] else {
                    return;
                };
                (
                    intrinsic.name,
                    format!(
                        "an intrinsic has no address; call {intrinsic} in a function of your own"
                    ),
                )
            }
            InstructionData::UnaryGlobalValue {
                opcode,
                global_value,
            } => {
                let Some(symbol) = self.found.symbols[global_value] else {
                    return;
                };
                let ty = func.dfg.ctrl_typevar(inst);
                match symbol {
                    _ if opcode != Opcode::SymbolValue => return,
                    GpuSymbol::Special(row) if ty != types::I32 => (
                        row.name,
                        format!("read as {ty}; read it with symbol_value.i32 and extend it"),
                    ),
                    GpuSymbol::Shared if ty != types::I32 && ty != types::I64 => (
                        SHARED,
                        format!("read as {ty}; i32 is the offset, i64 the generic address"),
                    ),
                    _ => return,
                }
            }
            _ => return,
        };
        let problem = Problem::Intrinsic {
            name: name.to_owned(),
            message,
        };
        self.errors
            .push(Error::new(problem, Place::of_inst(func, inst)));
    }
}

/// What is wrong with the constant operand of a call, if anything is.
fn check_constant(func: &Function, inst: Inst, intrinsic: &Intrinsic) -> Option<String> {
    let (index, legal) = intrinsic.constant?;
    let operand = *func.dfg.inst_args(inst).get(index)?;
    let constant = func
        .dfg
        .value_def(operand)
        .inst()
        .and_then(|def| match func.dfg.insts[def] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits()),
            _ => None,
        });
    match constant {
        Some(value) if legal.contains(value) => None,
        Some(value) => Some(format!(
            "operand {} is {value}; it must be one {legal}",
            index + 1
        )),
        None => Some(format!("operand {} must be an iconst {legal}", index + 1)),
    }
}

/// The message for a name that is no row.
fn unknown(name: &str) -> String {
    let near: Vec<String> = similar_names(name)
        .into_iter()
        .filter_map(lookup)
        .map(|row| row.to_string())
        .collect();
    if near.is_empty() {
        format!("unknown; names that begin with {PREFIX} are reserved")
    } else {
        format!("unknown; did you mean {}?", near.join(" or "))
    }
}

/// The first instruction in layout order that names `callee`.
fn first_use(func: &Function, callee: FuncRef) -> Option<Inst> {
    let mut insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    insts.find(|inst| match func.dfg.insts[*inst] {
        InstructionData::Call { func_ref, .. }
        | InstructionData::TryCall { func_ref, .. }
        | InstructionData::FuncAddr { func_ref, .. } => func_ref == callee,
        _ => false,
    })
}

/// Replaces calls of the thread and launch values by `symbol_value.i32`, and makes all reads of one value go through
/// one global value, whatever the text declared.
fn rewrite_special_values(func: &mut Function, found: &mut Intrinsics) {
    let mut values: HashMap<&'static str, GlobalValue> = HashMap::new();
    for gv in func.global_values.keys() {
        if let Some(GpuSymbol::Special(row)) = found.symbols[gv] {
            values.entry(row.name).or_insert(gv);
        }
    }
    let mut reads = Vec::new();
    let mut shared = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let symbol = found.of_symbol_value(func, inst);
            match (found.of_call(func, inst), symbol) {
                (Some(row), _) if row.is_special_value() => reads.push((inst, row)),
                (_, Some(GpuSymbol::Special(row))) => reads.push((inst, row)),
                (_, Some(GpuSymbol::Shared)) if is_word(func, inst) => shared.push(inst),
                _ => {}
            }
        }
    }
    for (inst, row) in reads {
        let gv = *values.entry(row.name).or_insert_with(|| {
            func.global_values.push(GlobalValueData::Symbol {
                name: ExternalName::testcase(format!("{PREFIX}{}", row.name)),
                offset: 0.into(),
                colocated: true,
                tls: false,
            })
        });
        found.symbols[gv] = Some(GpuSymbol::Special(row));
        func.replace(inst).symbol_value(types::I32, gv);
    }
    // Shared memory starts at offset 0 of its window, so its place there is a number that the mid-end can fold.
    for inst in shared {
        if let InstructionData::UnaryGlobalValue { global_value, .. } = func.dfg.insts[inst] {
            let offset = symbol_offset(func, global_value);
            func.replace(inst)
                .iconst(types::I32, i64::from(offset as u32));
        }
    }
}

/// Takes promises about parameters from the calls that every execution makes before anything else: the calls go, so
/// that Cranelift's mid-end, to which every call may write memory, does not meet them.
fn collect_promises(func: &mut Function, found: &mut Intrinsics) {
    let aligned =
        |row: &Option<&Intrinsic>| row.is_some_and(|row| row.lowering == Lowering::Aligned);
    let Some(entry) = func.layout.entry_block() else {
        return;
    };
    if !found.functions.values().any(aligned) {
        return;
    }
    let mut calls: Vec<Inst> = Vec::new();
    for inst in func.layout.block_insts(entry) {
        let opcode = func.dfg.insts[inst].opcode();
        match found.alignment(func, inst) {
            Some((value, power)) => {
                let value = func.dfg.resolve_aliases(value);
                if matches!(func.dfg.value_def(value), ValueDef::Param(..)) {
                    found.multiples.push((value, power));
                    calls.push(inst);
                }
            }
            None if has_effect(opcode) => break,
            None => {}
        }
    }
    for &inst in &calls {
        let (value, result) = (func.dfg.inst_args(inst)[0], func.dfg.first_result(inst));
        func.dfg.clear_results(inst);
        func.dfg.change_to_alias(result, value);
        func.layout.remove_inst(inst);
    }
    if !calls.is_empty() {
        func.dfg.resolve_all_aliases();
    }
}

/// Whether an operation may end the function, or do what others see.
fn has_effect(opcode: Opcode) -> bool {
    opcode.is_call()
        || opcode.is_branch()
        || opcode.can_trap()
        || opcode.can_load()
        || opcode.can_store()
        || opcode.other_side_effects()
}

fn is_word(func: &Function, inst: Inst) -> bool {
    func.dfg.value_type(func.dfg.first_result(inst)) == types::I32
}

/// The constant that a symbol's declaration adds.
pub fn symbol_offset(func: &Function, gv: GlobalValue) -> i64 {
    match func.global_values[gv] {
        GlobalValueData::Symbol { offset, .. } => offset.bits(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Function {
        cranelift_reader::parse_functions(text).unwrap().remove(0)
    }

    fn resolve_text(text: &str) -> Result<(Function, Intrinsics), Errors> {
        let mut func = parse(text);
        let found = resolve(&mut func, &|_| None)?;
        Ok((func, found))
    }

    #[test]
    fn thread_values_become_one_symbol() {
        let (func, found) = resolve_text(
            "function %f() -> i32 {
                gv4 = symbol colocated %gpu_tid_x
                fn0 = %gpu_tid_x() -> i32
                fn1 = %gpu_ctaid_x() -> i32
            block0:
                v0 = call fn0()
                v1 = call fn1()
                v2 = symbol_value.i32 gv4
                v3 = iadd v0, v1
                v4 = iadd v3, v2
                return v4
            }",
        )
        .unwrap();
        let text = func.to_string();
        assert_eq!(text.matches("symbol_value.i32 gv4").count(), 2, "{text}");
        assert!(
            text.contains("symbol_value.i32 gv5")
                && text.contains("gv5 = symbol colocated %gpu_ctaid_x"),
            "{text}"
        );
        assert!(!text.contains("call "), "{text}");
        let kinds: Vec<_> = func
            .global_values
            .keys()
            .filter_map(|gv| found.symbol(gv))
            .collect();
        assert_eq!(kinds.len(), 2);
    }

    #[test]
    fn every_wrong_use_is_named_with_the_legal_form() {
        let errors = resolve_text(
            "function %f(i32) -> i32 {
                gv0 = symbol %gpu_bar_sync
                gv1 = symbol %gpu_tid_x+4
                fn0 = %gpu_tid_x(i32) -> i32
                fn1 = %gpu_tidx() -> i32
                fn2 = %gpu_lop3(i32, i32, i32, i32) -> i32
                fn3 = %gpu_warpid() -> i32
            block0(v0: i32):
                v1 = call fn0(v0)
                v2 = call fn1()
                v3 = call fn2(v0, v0, v0, v0)
                v4 = iconst.i32 256
                v5 = call fn2(v0, v0, v0, v4)
                v6 = func_addr.i64 fn3
                return v1
            }",
        )
        .unwrap_err()
        .to_string();
        for expected in [
            "intrinsic %gpu_tid_x: declared as (i32) -> i32 fast; declare it as %gpu_tid_x() -> i32",
            "intrinsic %gpu_tidx: unknown; did you mean %gpu_tid_x() -> i32",
            "intrinsic %gpu_lop3: operand 4 must be an iconst from 0 to 255",
            "intrinsic %gpu_lop3: operand 4 is 256; it must be one from 0 to 255",
            "intrinsic %gpu_warpid: an intrinsic has no address",
            "intrinsic %gpu_bar_sync: gv0 is no value",
            "intrinsic %gpu_tid_x: gv1 adds 4",
        ] {
            assert!(
                errors.contains(expected),
                "{expected:?} is missing in\n{errors}"
            );
        }
        assert_eq!(errors.lines().count(), 7, "{errors}");
    }

    #[test]
    fn an_embedding_maps_its_own_numbers() {
        let mut func = parse(
            "function %f() -> i32 {
                fn0 = u0:7() -> i32
            block0:
                v0 = call fn0()
                return v0
            }",
        );
        let namer = |name: &UserExternalName| (name.index == 7).then(|| "gpu_laneid".to_owned());
        resolve(&mut func, &namer).unwrap();
        assert!(
            func.to_string().contains("symbol colocated %gpu_laneid"),
            "{func}"
        );
    }

    #[test]
    fn shared_memory_is_kept_as_a_symbol() {
        let (func, found) = resolve_text(
            "function %f() -> i64 {
                gv0 = symbol %gpu_shared
            block0:
                v0 = symbol_value.i64 gv0
                return v0
            }",
        )
        .unwrap();
        let gv = func.global_values.keys().next().unwrap();
        assert!(matches!(found.symbol(gv), Some(GpuSymbol::Shared)));
    }

    #[test]
    fn offsets_in_shared_memory_are_numbers() {
        let (func, _) = resolve_text(
            "function %f() -> i32 {
                gv0 = symbol %gpu_shared+16
            block0:
                v0 = symbol_value.i32 gv0
                return v0
            }",
        )
        .unwrap();
        assert!(func.to_string().contains("v0 = iconst.i32 16"), "{func}");
    }
}
