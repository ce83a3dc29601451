//! What naga 30.0.1 forgets of a SPIR-V binary, which is looked at again.
//!
//! Of a control barrier it keeps which memory is ordered, and forgets who waits, a workgroup or a subgroup: what it
//! made of each barrier is changed to what the translator goes by. Its places do not count some words in front of them:
//! they are counted here.

use crate::error::{Reason, unsupported};
use hashbrown::HashMap;
use naga::{Barrier, Block, Module, Span, Statement};

/// Opcodes and scopes, as SPIR-V numbers them.
const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_TYPE_FUNCTION: u32 = 33;
const OP_CONSTANT: u32 = 43;
const OP_CONTROL_BARRIER: u32 = 224;
const WORKGROUP: u32 = 2;
const SUBGROUP: u32 = 3;

/// Words in front of the first instruction.
const HEADER: usize = 5;

/// What is found in a binary. All places are naga's.
#[derive(Debug, Default)]
pub(crate) struct Binary {
    /// The scope of execution of each control barrier, by the byte that it begins at. A scope that is no constant is
    /// naga's to refuse.
    scopes: Vec<(u32, u32)>,
    /// From which byte on how many words are not counted.
    pub uncounted: Vec<(u32, u32)>,
}

impl Binary {
    pub(crate) fn new(bytes: &[u8]) -> Binary {
        let words = bytes.chunks_exact(4);
        let words = words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let words: Vec<u32> = words.collect();
        let (mut constants, mut binary) = (HashMap::new(), Binary::default());
        let (mut at, mut uncounted) = (HEADER, 0);
        while let Some(&first) = words.get(at) {
            let length = (first >> 16) as usize;
            let operands = words.get(at + 1..at + length).unwrap_or_default();
            let place = (at as u32).saturating_sub(uncounted) * 4;
            let more = match (first & 0xffff, operands) {
                (OP_ENTRY_POINT, [_, _, rest @ ..]) => {
                    // The name ends with the first word that has a byte of 0.
                    let name = rest.iter().position(|word| word.to_le_bytes().contains(&0));
                    rest.len() - name.map_or(rest.len(), |last| last + 1)
                }
                (OP_EXECUTION_MODE | OP_TYPE_FUNCTION, [_, _, rest @ ..]) => rest.len(),
                (OP_CONSTANT, &[_, result, value]) => {
                    constants.insert(result, value);
                    0
                }
                (OP_CONTROL_BARRIER, &[scope, _, _]) => {
                    let scope = constants.get(&scope);
                    binary.scopes.extend(scope.map(|&scope| (place, scope)));
                    0
                }
                _ => 0,
            };
            at += length.max(1);
            if more > 0 {
                uncounted += more as u32;
                let from = (at as u32).saturating_sub(uncounted) * 4;
                binary.uncounted.push((from, uncounted));
            }
        }
        binary
    }

    /// Marks the barriers of a module that was read from this binary.
    ///
    /// # Errors
    /// A barrier of another scope, which naga leaves out.
    pub(crate) fn mend(&self, module: &mut Module) -> Result<(), (Span, Reason)> {
        let scopes = &self.scopes;
        let other = scopes
            .iter()
            .find(|(_, scope)| ![WORKGROUP, SUBGROUP].contains(scope));
        if let Some(&(at, scope)) = other {
            let reason = unsupported(format!("a control barrier of the scope {scope}"));
            return Err((Span::new(at, at + 4), reason));
        }
        let scopes: HashMap<u32, u32> = scopes.iter().copied().collect();
        let functions = module.functions.iter_mut().map(|(_, function)| function);
        let entries = module
            .entry_points
            .iter_mut()
            .map(|point| &mut point.function);
        for function in functions.chain(entries) {
            mark(&mut function.body, &scopes);
        }
        Ok(())
    }
}

fn mark(block: &mut Block, scopes: &HashMap<u32, u32>) {
    for (statement, span) in block.span_iter_mut() {
        match statement {
            Statement::ControlBarrier(barrier) => {
                let range = span.and_then(|span| span.to_range());
                match range.and_then(|range| scopes.get(&(range.start as u32))) {
                    Some(&SUBGROUP) => *barrier = Barrier::SUB_GROUP,
                    Some(_) => *barrier |= Barrier::WORK_GROUP,
                    None => {}
                }
            }
            Statement::Block(block) => mark(block, scopes),
            Statement::If { accept, reject, .. } => {
                mark(accept, scopes);
                mark(reject, scopes);
            }
            Statement::Switch { cases, .. } => {
                for case in cases {
                    mark(&mut case.body, scopes);
                }
            }
            Statement::Loop {
                body, continuing, ..
            } => {
                mark(body, scopes);
                mark(continuing, scopes);
            }
            _ => {}
        }
    }
}
