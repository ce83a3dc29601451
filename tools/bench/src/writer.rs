//! Writes a kernel as CLIF text.

use std::fmt::Write;

/// A function being written.
pub struct Writer {
    text: String,
    values: usize,
}

impl Writer {
    /// A kernel of a pointer v0 and a number v1 with v2 = the thread's index, in block0.
    pub fn kernel(declarations: &str) -> Self {
        let text = format!(
            "; kernel\nfunction %shape(i64, i32) {{\n    fn0 = %gpu_tid_x() -> i32\n{declarations}\nblock0(v0: i64, \
             v1: i32):\n    v2 = call fn0()\n"
        );
        Self { text, values: 3 }
    }

    /// An instruction with a result.
    pub fn value(&mut self, operation: &str) -> usize {
        let value = self.fresh();
        self.line(&format!("v{value} = {operation}"));
        value
    }

    /// The number of a new value.
    pub fn fresh(&mut self) -> usize {
        self.values += 1;
        self.values - 1
    }

    /// An instruction without a result.
    pub fn line(&mut self, line: &str) {
        writeln!(self.text, "    {line}").expect("a string takes everything");
    }

    /// The head of a block, with its parameters.
    pub fn block(&mut self, header: &str) {
        writeln!(self.text, "{header}:").expect("a string takes everything");
    }

    /// The text, with a return in the end.
    pub fn finish(mut self) -> String {
        self.line("return");
        self.text.push_str("}\n");
        self.text
    }
}
