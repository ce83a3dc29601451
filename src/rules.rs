//! What both sets of ISLE rules, those that rewrite CLIF and those that select instructions, see of CLIF in the same
//! way.

use cranelift_codegen::ir::{BlockCall, Value};

/// Operands of an instruction with two.
pub type ValueArray2 = [Value; 2];
/// Operands of an instruction with three.
pub type ValueArray3 = [Value; 3];
/// The targets of a branch with two.
pub type BlockArray2 = [BlockCall; 2];

/// The methods of a context that take arrays of operands apart and put them together.
macro_rules! array_methods {
    () => {
        fn unpack_value_array_2(&mut self, array: &$crate::rules::ValueArray2) -> (Value, Value) {
            (array[0], array[1])
        }
        fn pack_value_array_2(&mut self, a: Value, b: Value) -> $crate::rules::ValueArray2 {
            [a, b]
        }
        fn unpack_value_array_3(
            &mut self,
            array: &$crate::rules::ValueArray3,
        ) -> (Value, Value, Value) {
            (array[0], array[1], array[2])
        }
        fn pack_value_array_3(
            &mut self,
            a: Value,
            b: Value,
            c: Value,
        ) -> $crate::rules::ValueArray3 {
            [a, b, c]
        }
        fn unpack_block_array_2(
            &mut self,
            array: &$crate::rules::BlockArray2,
        ) -> (
            cranelift_codegen::ir::BlockCall,
            cranelift_codegen::ir::BlockCall,
        ) {
            (array[0], array[1])
        }
        fn pack_block_array_2(
            &mut self,
            a: cranelift_codegen::ir::BlockCall,
            b: cranelift_codegen::ir::BlockCall,
        ) -> $crate::rules::BlockArray2 {
            [a, b]
        }
    };
}
pub(crate) use array_methods;
