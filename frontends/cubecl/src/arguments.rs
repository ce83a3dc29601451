//! What a launch passes to a kernel: the addresses of its buffers, its scalars and what is known of the buffers when it
//! is launched.
//!
//! CubeCL packs scalars, lengths and places of shapes into words of 64 bits, whose number the kernel fixes, and behind
//! them shapes and strides, whose number it does not. The first are parameters of the kernel, so that they cost no
//! load; the second are a small array on the device.

use crate::error::TranslateError;
use cranelift_codegen::ir::{Type, types};
use cubecl_core::ir::metadata::{INFO_ALIGN, Info};

/// Bytes of parameters that a kernel may have.
const MOST_BYTES: usize = 4096;

/// The parameters of a kernel, in order: buffers, words, and the address of shapes and strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Of each buffer its number among those that the launch has.
    pub buffers: Vec<usize>,
    /// Words of scalars, lengths and places of shapes.
    pub words: usize,
    /// Whether there are shapes and strides.
    pub has_shapes: bool,
}

impl Arguments {
    /// Those of a kernel with these buffers.
    ///
    /// # Errors
    /// When they are more than a kernel's parameters may be.
    pub fn new(buffers: Vec<usize>, info: &Info) -> Result<Arguments, TranslateError> {
        let arguments = Arguments {
            buffers,
            words: info.dynamic_meta_offset.div_ceil(INFO_ALIGN),
            has_shapes: info.has_dynamic_meta,
        };
        let bytes = arguments.types().len() * size_of::<u64>();
        if bytes > MOST_BYTES {
            return Err(TranslateError::Unsupported(format!(
                "{bytes} bytes of parameters, of which a kernel has at most {MOST_BYTES}"
            )));
        }
        Ok(arguments)
    }

    /// The types of the parameters.
    pub fn types(&self) -> Vec<Type> {
        vec![types::I64; self.buffers.len() + self.words + usize::from(self.has_shapes)]
    }

    /// The parameter that is this word.
    pub fn word(&self, index: usize) -> Option<usize> {
        (index < self.words).then_some(self.buffers.len() + index)
    }

    /// The parameter that is the address of shapes and strides.
    pub fn shapes(&self) -> Option<usize> {
        (self.has_shapes).then_some(self.buffers.len() + self.words)
    }
}
