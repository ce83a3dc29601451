//! Which calling conventions and argument purposes a function may declare; `docs/clif.md` has the table.
//!
//! Takes a verified function. Guarantees on success: the function, and everything that it calls, has a convention that
//! means this target's own, or `tail`; nothing is called in a way that has no meaning here; structures passed by value
//! are pointers of 64 bits, to no more bytes than local memory has, in calls that return.

use crate::abi;
use crate::error::{Error, ErrorList, Errors, Place, Problem};
use cranelift_codegen::ir::{ArgumentPurpose, Function, InstructionData, Opcode, Signature, types};
use cranelift_codegen::isa::CallConv;

/// Checks the signature of `func` and of all its calls.
///
/// # Errors
/// Every convention and purpose that is not supported, with the call's place.
pub fn check(func: &Function, is_kernel: bool) -> Result<(), Errors> {
    let mut errors = ErrorList::new();
    // A place owns text: it is made for a complaint only, which most functions give no cause for.
    let mut complain = |place: &dyn Fn() -> Place, item: String, remedy: &str| {
        let remedy = remedy.to_owned();
        errors.push(Error::new(Problem::Unsupported { item, remedy }, place()));
    };
    let own = || Place::of_function(func);
    check_signature(&func.signature, &mut |item, remedy| {
        complain(&own, item, remedy)
    });
    if is_kernel && has_structures(&func.signature) {
        let item = "a kernel with structures passed by value".to_owned();
        complain(&own, item, "pass a pointer, or the fields one by one");
    }
    // Nothing is called without a signature.
    let calling = |_: &_| !func.dfg.signatures.is_empty();
    for block in func.layout.blocks().take_while(calling) {
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            let Some(signature) = func.dfg.call_signature(inst) else {
                continue;
            };
            let signature = &func.dfg.signatures[signature];
            let place = || Place::of_inst(func, inst);
            check_signature(signature, &mut |item, remedy| {
                complain(&place, item, remedy)
            });
            if let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst]
                && func.dfg.ext_funcs[func_ref].patchable
            {
                let item = "a patchable call".to_owned();
                complain(
                    &place,
                    item,
                    "code is not changed once it is loaded; leave it out",
                );
            }
            let leaves = matches!(opcode, Opcode::ReturnCall | Opcode::ReturnCallIndirect);
            if leaves && has_structures(signature) {
                let item = "a tail call with structures passed by value".to_owned();
                complain(
                    &place,
                    item,
                    "their copies would go with the frame; call and return",
                );
            }
        }
    }
    errors.finish(())
}

/// Whether a parameter is a structure passed by value.
pub(super) fn has_structures(signature: &Signature) -> bool {
    let is_structure = |purpose| matches!(purpose, ArgumentPurpose::StructArgument(_));
    signature
        .params
        .iter()
        .any(|param| is_structure(param.purpose))
}

/// Hands what is not supported in a signature, and what to do instead, to `complain`.
fn check_signature(signature: &Signature, complain: &mut dyn FnMut(String, &str)) {
    match signature.call_conv {
        CallConv::Fast | CallConv::SystemV | CallConv::Tail => {}
        foreign @ (CallConv::WindowsFastcall
        | CallConv::AppleAarch64
        | CallConv::Probestack
        | CallConv::Winch
        | CallConv::PreserveAll) => complain(
            format!("the calling convention {foreign}"),
            "this target has its own, named fast or system_v, and tail",
        ),
    }
    for param in &signature.params {
        match param.purpose {
            ArgumentPurpose::Normal
            | ArgumentPurpose::StructReturn
            | ArgumentPurpose::VMContext => {}
            ArgumentPurpose::StructArgument(size) if size > abi::MAX_LOCAL => complain(
                format!("a structure of {size} bytes passed by value"),
                "pass a pointer to it",
            ),
            ArgumentPurpose::StructArgument(_) if param.value_type == types::I64 => {}
            ArgumentPurpose::StructArgument(_) => complain(
                format!("a structure behind a pointer of type {}", param.value_type),
                "its copy lies in the caller's frame, whose addresses have type i64",
            ),
        }
    }
    for result in &signature.returns {
        if result.purpose == ArgumentPurpose::StructReturn {
            complain(
                "a result sret".to_owned(),
                "mark the parameter only, and return the pointer as an ordinary result if somebody needs it",
            );
        }
    }
}
