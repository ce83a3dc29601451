//! Operations of bit vectors by their instructions, on words of any kind.

use super::Reference;
use crate::bits::Word;
use crate::isa::generated::*;
use crate::isa::semantics::{Gather, PureOperation, Scatter};
use crate::isa::{Inst, PReg};

/// Runs an instruction on the operands of `lane`, and writes its results there. False, and nothing is done, where the
/// instruction is none of bit vectors: a floating-point operation, or one with effects.
pub fn evaluate<W: Word, L: Gather<W> + Scatter<W>>(
    semantics: Reference,
    inst: &Inst<PReg>,
    lane: &mut L,
) -> bool {
    macro_rules! dispatch {
        ($($optype:ident $module:ident;)*) => {
            match inst.optype() {
                $(Optype::$optype => {
                    let modifiers = <$module::Operation as PureOperation<W>>::decode(inst.form(), inst.word());
                    let sources = <$module::Operation as PureOperation<W>>::gather(lane);
                    let results =
                        <$module::Operation as PureOperation<W>>::evaluate(&semantics, &modifiers, &sources);
                    <$module::Operation as PureOperation<W>>::scatter(results, lane);
                    true
                })*
                _ => false,
            }
        };
    }
    for_each_bit_vector_operation!(dispatch)
}
