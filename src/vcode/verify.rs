//! What must hold of every [`VCode`], checked after each pass in debug builds and tests.

use super::{Attachment, Block, Meeting, Terminator, VCode};
use crate::isa::{Register, VReg};
use cranelift_codegen::entity::EntityRef;
use thiserror::Error;

/// A broken rule, with the function and place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{function}: {block}: {message}")]
pub struct VerifyError {
    /// Function.
    pub function: String,
    /// Block.
    pub block: String,
    /// The rule and what breaks it.
    pub message: String,
}

impl<R: Register> VCode<R> {
    /// Checks the shape that every phase keeps: ranges, edges, arguments, attachments.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn verify_shape(&self) -> Result<(), VerifyError> {
        let fail = |block: Block, message: String| VerifyError {
            function: self.name.clone(),
            block: block.to_string(),
            message,
        };
        let mut next = 0;
        let preds = self.predecessors();
        for (block, data) in self.blocks.iter() {
            if data.insts.start != next
                || data.insts.end < data.insts.start
                || data.insts.end as usize > self.insts.len()
            {
                return Err(fail(
                    block,
                    format!("instructions {:?} do not follow {next}", data.insts),
                ));
            }
            next = data.insts.end;
            if let Some(entry) = self
                .block_insts(block)
                .iter()
                .find(|e| !e.inst.has_clean_entries())
            {
                let message = format!("{} has registers beyond its width", entry.inst);
                return Err(fail(block, message));
            }
            for target in data.terminator.successors() {
                if target.index() >= self.blocks.len() {
                    return Err(fail(block, format!("successor {target} does not exist")));
                }
                if target == self.entry_block() {
                    return Err(fail(block, "the entry block has a predecessor".to_string()));
                }
                let params = self.blocks[target].params.len();
                let args = match &data.terminator {
                    Terminator::Jump { args, .. } => args.len(),
                    _ => 0,
                };
                if args != params {
                    return Err(fail(
                        block,
                        format!("{args} arguments for the {params} parameters of {target}"),
                    ));
                }
                if let Meeting::At(meeting) = data.meeting
                    && meeting.index() >= self.blocks.len()
                {
                    return Err(fail(block, format!("{meeting} to meet at does not exist")));
                }
                if data.terminator.successors().len() > 1 && preds[target].len() > 1 {
                    return Err(fail(block, format!("critical edge to {target}")));
                }
            }
            for entry in self.block_insts(block) {
                if let Some(Attachment::Else(values)) =
                    entry.attachment.map(|a| &self.attachments[a])
                {
                    let results = entry.inst.definitions().count();
                    if values.len() != results {
                        return Err(fail(
                            block,
                            format!("{} values kept for {results} results", values.len()),
                        ));
                    }
                }
                if let Some(Attachment::Label(target)) =
                    entry.attachment.map(|a| &self.attachments[a])
                    && target.index() >= self.blocks.len()
                {
                    return Err(fail(block, format!("label {target} does not exist")));
                }
            }
        }
        if next as usize != self.insts.len() {
            return Err(fail(
                self.entry_block(),
                "instructions outside of all blocks".to_string(),
            ));
        }
        Ok(())
    }
}

impl VCode<VReg> {
    /// [`VCode::verify_shape`], and: registers are defined once, in a block that dominates the use as far as a forward
    /// walk tells, of the class that arguments and parameters agree on; no uniform register is written in a divergent
    /// block.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.verify_shape()?;
        let mut defined = vec![false; self.vreg_count as usize];
        let fail = |block: Block, message: String| VerifyError {
            function: self.name.clone(),
            block: block.to_string(),
            message,
        };
        let mut define = |block: Block, r: VReg| {
            let slot = defined
                .get_mut(r.index())
                .ok_or_else(|| fail(block, format!("{r} is not a register of the function")))?;
            if std::mem::replace(slot, true) {
                return Err(fail(block, format!("{r} is defined twice")));
            }
            Ok(())
        };
        for (r, _) in &self.entry {
            define(self.entry_block(), *r)?;
        }
        for (block, data) in self.blocks.iter() {
            for &r in &data.params {
                define(block, r)?;
            }
            for entry in self.block_insts(block) {
                for r in self.definitions(entry) {
                    define(block, r)?;
                    if data.divergent && r.class() == crate::isa::RegisterClass::Uniform {
                        return Err(fail(block, format!("{r} is written in a divergent block")));
                    }
                }
            }
        }
        for (block, data) in self.blocks.iter() {
            let used = self
                .block_insts(block)
                .iter()
                .flat_map(|e| self.uses(e))
                .chain(data.terminator.uses());
            for r in used {
                if !defined.get(r.index()).copied().unwrap_or(false) {
                    return Err(fail(block, format!("{r} is used and never defined")));
                }
            }
            if let Terminator::Jump { target, args } = &data.terminator {
                for (arg, param) in args.iter().zip(&self.blocks[*target].params) {
                    if arg.class() != param.class() {
                        return Err(fail(
                            block,
                            format!("argument {arg} for parameter {param} of another class"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
