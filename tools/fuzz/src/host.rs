//! Functions on the host: compiled by Cranelift's own back end for it, unoptimised, and called.
//!
//! Cranelift's mid-end does not run here, so a mistake of the mid-end, which both sides would share, shows as a
//! difference too.

use crate::substitute::{self, Calls, HELPERS};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    AbiParam, Endianness, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData,
    Signature, UserExternalName, UserFuncName,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::verify_function;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use std::collections::BTreeMap;
use thisgpu_filetests::panics;
use thisgpu_filetests::trampoline::{SLOT_BYTES, decode_results, encode_arguments, row_bytes};

/// The host's instruction set with all that this processor has; `opt_level` is Cranelift's setting.
///
/// # Errors
/// When Cranelift has no back end for this host.
pub fn isa(opt_level: &str) -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", opt_level),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("enable_verifier", "false"),
        ("enable_llvm_abi_extensions", "true"),
        ("enable_multi_ret_implicit_sret", "true"),
        // The convention `tail` needs them.
        ("preserve_frame_pointers", "true"),
    ] {
        flags
            .set(name, value)
            .map_err(|error| format!("setting {name}: {error}"))?;
    }
    cranelift_native::builder()
        .map_err(|error| format!("this host is not supported: {error}"))?
        .finish(Flags::new(flags))
        .map_err(|error| error.to_string())
}

/// Compiled functions.
pub struct Host {
    /// None only while it is dropped.
    module: Option<JITModule>,
    callers: Vec<FuncId>,
    signatures: Vec<Signature>,
}

impl Host {
    /// Compiles functions that may call each other.
    ///
    /// # Errors
    /// What the back end lacks; it panics on most of that.
    pub fn compile(isa: &OwnedTargetIsa, functions: &[&Function]) -> Result<Host, String> {
        let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
        builder.symbols(
            HELPERS
                .iter()
                .map(|helper| (helper.name, (helper.address)())),
        );
        let mut host = Host {
            module: Some(JITModule::new(builder)),
            callers: Vec::new(),
            signatures: functions
                .iter()
                .map(|func| func.signature.clone())
                .collect(),
        };
        panics::catch(|| host.define(functions))??;
        Ok(host)
    }

    fn define(&mut self, functions: &[&Function]) -> Result<(), String> {
        let Some(module) = &mut self.module else {
            return Ok(());
        };
        let mut ids = BTreeMap::new();
        for (index, func) in functions.iter().enumerate() {
            let id = module
                .declare_function(&format!("f{index}"), Linkage::Local, &func.signature)
                .map_err(|error| error.to_string())?;
            ids.insert(func.name.to_string(), id);
        }
        let mut context = module.make_context();
        for func in functions {
            context.clear();
            context.func = (*func).clone();
            name_callees(&mut context.func, &ids)?;
            substitute(module, &mut context.func)?;
            define(module, ids[&func.name.to_string()], &mut context)?;
        }
        for (index, func) in functions.iter().enumerate() {
            context.clear();
            context.func = caller(func, ids[&func.name.to_string()]);
            let id = module
                .declare_function(
                    &format!("call{index}"),
                    Linkage::Local,
                    &context.func.signature,
                )
                .map_err(|error| error.to_string())?;
            define(module, id, &mut context)?;
            self.callers.push(id);
        }
        module
            .finalize_definitions()
            .map_err(|error| error.to_string())
    }

    /// Calls the function at this position. The caller vouches that it neither traps nor runs forever: a trap ends the
    /// process.
    ///
    /// # Errors
    /// Arguments that do not fit the signature.
    pub fn call(&self, index: usize, arguments: &[DataValue]) -> Result<Vec<DataValue>, String> {
        let Some(module) = &self.module else {
            return Ok(Vec::new());
        };
        let signature = &self.signatures[index];
        let row = encode_arguments(signature, arguments).map_err(|error| error.to_string())?;
        let (slots, _) = row.as_chunks::<SLOT_BYTES>();
        let arguments: Vec<Slot> = slots.iter().copied().map(Slot).collect();
        let mut results = vec![Slot([0; SLOT_BYTES]); row_bytes(&signature.returns) / SLOT_BYTES];
        let code = module.get_finalized_function(self.callers[index]);
        // SAFETY: `caller` made a function of exactly this type, which reads the row of arguments and writes the row of
        // results; both rows are as long as the signature needs, and slots are aligned to 16 bytes. The memory of the
        // code lives as long as `self`.
        unsafe {
            let call =
                std::mem::transmute::<*const u8, extern "C" fn(*const Slot, *mut Slot)>(code);
            call(arguments.as_ptr(), results.as_mut_ptr());
        }
        let bytes: Vec<u8> = results.iter().flat_map(|slot| slot.0).collect();
        Ok(decode_results(signature, &bytes))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: pointers to the code do not leave `call`, which is not running.
            unsafe { module.free_memory() }
        }
    }
}

/// A slot of a row, aligned as the code of `caller` trusts it to be.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Slot([u8; SLOT_BYTES]);

fn define(
    module: &mut JITModule,
    id: FuncId,
    context: &mut cranelift_codegen::Context,
) -> Result<(), String> {
    module
        .define_function_with_control_plane(id, context, &mut ControlPlane::default())
        .map_err(|error| format!("{error:?}"))
}

/// Replaces the names in the text by those of the module. Functions may be far from each other.
fn name_callees(func: &mut Function, ids: &BTreeMap<String, FuncId>) -> Result<(), String> {
    let callees: Vec<_> = func.dfg.ext_funcs.keys().collect();
    for callee in callees {
        let data = &func.dfg.ext_funcs[callee];
        let name = data.name.display(Some(&func.params)).to_string();
        let id = ids
            .get(&name)
            .ok_or_else(|| format!("{name} is not defined"))?;
        let reference = func.declare_imported_user_function(UserExternalName {
            namespace: 0,
            index: id.as_u32(),
        });
        let data = &mut func.dfg.ext_funcs[callee];
        data.name = ExternalName::User(reference);
        data.colocated = false;
    }
    Ok(())
}

/// Rewrites what the back end lacks.
fn substitute(module: &mut JITModule, func: &mut Function) -> Result<(), String> {
    let mut insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    if !insts.any(|inst| substitute::is_rewritten(func, inst)) {
        return Ok(());
    }
    let mut functions = Vec::new();
    for helper in &HELPERS {
        let mut signature = Signature::new(CallConv::triple_default(&target()));
        let params = helper.params.iter().copied().map(AbiParam::new);
        signature.params.extend(params);
        signature.returns.push(AbiParam::new(helper.result));
        let id = module
            .declare_function(helper.name, Linkage::Import, &signature)
            .map_err(|error| error.to_string())?;
        functions.push(module.declare_func_in_func(id, func));
    }
    let functions = functions
        .try_into()
        .map_err(|_| "one reference for each helper".to_owned())?;
    substitute::rewrite(func, Calls { functions });
    Ok(())
}

/// A function `(arguments, results)` in the C convention that calls `callee`, with rows as the simulator's trampolines
/// have them.
fn caller(callee: &Function, id: FuncId) -> Function {
    let mut signature = Signature::new(CallConv::triple_default(&target()));
    signature.params.extend([AbiParam::new(I64); 2]);
    let mut func = Function::with_name_signature(UserFuncName::default(), signature);
    let block = func.dfg.make_block();
    let [arguments, results] = [I64; 2].map(|ty| func.dfg.append_block_param(block, ty));
    let reference = func.declare_imported_user_function(UserExternalName {
        namespace: 0,
        index: id.as_u32(),
    });
    let signature = func.import_signature(callee.signature.clone());
    let target = func.import_function(ExtFuncData {
        name: ExternalName::User(reference),
        signature,
        colocated: false,
        patchable: false,
    });
    let flags = MemFlagsData::new()
        .with_aligned()
        .with_endianness(Endianness::Little);
    let offset = |index: usize| (index * SLOT_BYTES) as i32;
    let mut pos = FuncCursor::new(&mut func);
    pos.insert_block(block);
    let mut values = Vec::new();
    for (index, param) in callee.signature.params.iter().enumerate() {
        values.push(
            pos.ins()
                .load(param.value_type, flags, arguments, offset(index)),
        );
    }
    let call = pos.ins().call(target, &values);
    let returned = pos.func.dfg.inst_results(call).to_vec();
    for (index, value) in returned.into_iter().enumerate() {
        pos.ins().store(flags, value, results, offset(index));
    }
    pos.ins().return_(&[]);
    func
}

fn target() -> target_lexicon::Triple {
    target_lexicon::Triple::host()
}

/// Whether the host can compile a function; `verify_function` has accepted it.
///
/// # Errors
/// What it lacks, or why the function is wrong.
pub fn supports(isa: &OwnedTargetIsa, func: &Function) -> Result<(), String> {
    verify_function(func, &**isa).map_err(|errors| errors.to_string())?;
    Host::compile(isa, &[func]).map(drop)
}
