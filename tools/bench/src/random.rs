//! Random kernels of any size: arithmetic on integers and floats, memory, branches and loops, in the mix of a compute
//! kernel.
//!
//! Control is structured, so every function is valid: what a side of a branch or the body of a loop defines is read
//! inside only, and leaves as a parameter. Operands are mostly recent values and now and then old ones, so that live
//! ranges are short and long.

use crate::writer::Writer;
use cranelift_thisgpu::unstable::isa::random::Random;

/// Branches and loops inside each other, at most.
const DEPTH: usize = 4;
/// Of so many last values operands are chosen mostly.
const RECENT: usize = 12;

const INTEGER: &[&str] = &[
    "iadd", "isub", "imul", "band", "bor", "bxor", "ishl", "ushr", "sshr", "rotl", "umin", "smax",
];
const WIDE: &[&str] = &["iadd", "isub", "bxor", "band", "ishl"];
const FLOAT: &[&str] = &["fadd", "fsub", "fmul", "fmin"];
const CONDITIONS: &[&str] = &["eq", "ne", "slt", "ult", "sge", "ugt"];

/// Values in reach, by type.
#[derive(Default)]
struct Scope {
    integers: Vec<usize>,
    wide: Vec<usize>,
    floats: Vec<usize>,
}

impl Scope {
    fn lengths(&self) -> [usize; 3] {
        [self.integers.len(), self.wide.len(), self.floats.len()]
    }

    fn truncate(&mut self, lengths: [usize; 3]) {
        self.integers.truncate(lengths[0]);
        self.wide.truncate(lengths[1]);
        self.floats.truncate(lengths[2]);
    }
}

struct Generator {
    random: Random,
    writer: Writer,
    scope: Scope,
    blocks: usize,
    /// Instructions still to be written.
    left: usize,
}

/// The text of a kernel of about `size` instructions; the same seed and size give the same text.
pub fn text(seed: u64, size: usize) -> String {
    let mut generator = Generator {
        random: Random::new(seed),
        writer: Writer::kernel(""),
        scope: Scope::default(),
        blocks: 1,
        left: size,
    };
    generator.scope.integers.extend([1, 2]);
    generator.scope.wide.push(0);
    let float = generator.writer.value("f32const 0x1.8p0");
    generator.scope.floats.push(float);
    while generator.left > 0 {
        generator.body(0);
    }
    let last = generator.integer();
    generator.writer.line(&format!("store aligned v{last}, v0"));
    generator.writer.finish()
}

impl Generator {
    fn choose(&mut self, of: &'static [&'static str]) -> &'static str {
        of[self.random.below(of.len())]
    }

    /// A recent value mostly.
    fn one_of(random: &mut Random, values: &[usize]) -> usize {
        let within = if random.one_in(6) {
            values.len()
        } else {
            values.len().min(RECENT)
        };
        values[values.len() - 1 - random.below(within)]
    }

    fn integer(&mut self) -> usize {
        Self::one_of(&mut self.random, &self.scope.integers)
    }

    fn wide(&mut self) -> usize {
        Self::one_of(&mut self.random, &self.scope.wide)
    }

    fn float(&mut self) -> usize {
        Self::one_of(&mut self.random, &self.scope.floats)
    }

    fn value(&mut self, operation: &str) -> usize {
        self.left = self.left.saturating_sub(1);
        self.writer.value(operation)
    }

    fn block(&mut self) -> usize {
        self.blocks += 1;
        self.blocks - 1
    }

    /// Some instructions, branches and loops.
    fn body(&mut self, depth: usize) {
        for _ in 0..4 + self.random.below(20) {
            match self.random.below(if depth < DEPTH { 40 } else { 37 }) {
                0..15 => {
                    let (operation, a, b) = (self.choose(INTEGER), self.integer(), self.integer());
                    let value = self.value(&format!("{operation} v{a}, v{b}"));
                    self.scope.integers.push(value);
                }
                15..19 => {
                    let (operation, a, b) = (self.choose(WIDE), self.wide(), self.wide());
                    let value = self.value(&format!("{operation} v{a}, v{b}"));
                    self.scope.wide.push(value);
                }
                19..26 => {
                    let (operation, a, b) = (self.choose(FLOAT), self.float(), self.float());
                    let value = self.value(&format!("{operation} v{a}, v{b}"));
                    self.scope.floats.push(value);
                }
                26..29 => self.convert(),
                29..31 => {
                    let condition = self.condition();
                    let (a, b) = (self.integer(), self.integer());
                    let value = self.value(&format!("select v{condition}, v{a}, v{b}"));
                    self.scope.integers.push(value);
                }
                31..34 => self.load(),
                34..37 => self.store(),
                37..39 => self.branch(depth),
                _ => self.repeat(depth),
            }
            if self.left == 0 {
                return;
            }
        }
    }

    fn convert(&mut self) {
        match self.random.below(3) {
            0 => {
                let a = self.integer();
                let value = self.value(&format!("uextend.i64 v{a}"));
                self.scope.wide.push(value);
            }
            1 => {
                let a = self.wide();
                let value = self.value(&format!("ireduce.i32 v{a}"));
                self.scope.integers.push(value);
            }
            _ => {
                let number = self.random.number(32) as u32 as i32;
                let value = self.value(&format!("iconst.i32 {number}"));
                self.scope.integers.push(value);
            }
        }
    }

    fn condition(&mut self) -> usize {
        let (condition, a, b) = (self.choose(CONDITIONS), self.integer(), self.integer());
        self.value(&format!("icmp {condition} v{a}, v{b}"))
    }

    fn load(&mut self) {
        let offset = 8 * self.random.below(512);
        match self.random.below(3) {
            0 => {
                let value = self.value(&format!("load.i32 aligned v0+{offset}"));
                self.scope.integers.push(value);
            }
            1 => {
                let value = self.value(&format!("load.i64 aligned v0+{offset}"));
                self.scope.wide.push(value);
            }
            _ => {
                let value = self.value(&format!("load.f32 aligned v0+{offset}"));
                self.scope.floats.push(value);
            }
        }
    }

    fn store(&mut self) {
        let offset = 8 * self.random.below(512);
        let value = match self.random.below(3) {
            0 => self.integer(),
            1 => self.wide(),
            _ => self.float(),
        };
        self.writer
            .line(&format!("store aligned v{value}, v0+{offset}"));
        self.left = self.left.saturating_sub(1);
    }

    /// Two sides, one of which may be empty, that agree on an integer and a float.
    fn branch(&mut self, depth: usize) {
        let [then, other, after] = [self.block(), self.block(), self.block()];
        let condition = self.condition();
        self.writer
            .line(&format!("brif v{condition}, block{then}, block{other}"));
        let lengths = self.scope.lengths();
        let empty = self.random.one_in(3);
        for side in [then, other] {
            self.writer.block(&format!("block{side}"));
            if side == then || !empty {
                self.body(depth + 1);
            }
            let (a, b) = (self.integer(), self.float());
            self.writer.line(&format!("jump block{after}(v{a}, v{b})"));
            self.scope.truncate(lengths);
        }
        let (a, b) = (self.writer.fresh(), self.writer.fresh());
        self.writer
            .block(&format!("block{after}(v{a}: i32, v{b}: f32)"));
        self.scope.integers.push(a);
        self.scope.floats.push(b);
    }

    /// A loop that counts down and carries an integer and a float.
    fn repeat(&mut self, depth: usize) {
        let [head, after] = [self.block(), self.block()];
        let turns = 2 + self.random.below(30);
        let turns = self.value(&format!("iconst.i32 {turns}"));
        let (a, b) = (self.integer(), self.float());
        self.writer
            .line(&format!("jump block{head}(v{turns}, v{a}, v{b})"));
        let [counter, x, y] = [(); 3].map(|()| self.writer.fresh());
        self.writer.block(&format!(
            "block{head}(v{counter}: i32, v{x}: i32, v{y}: f32)"
        ));
        let lengths = self.scope.lengths();
        self.scope.integers.extend([counter, x]);
        self.scope.floats.push(y);
        self.body(depth + 1);
        let step = self.value("iconst.i32 -1");
        let next = self.value(&format!("iadd v{counter}, v{step}"));
        let (a, b) = (self.integer(), self.float());
        self.writer.line(&format!(
            "brif v{next}, block{head}(v{next}, v{a}, v{b}), block{after}"
        ));
        self.scope.truncate(lengths);
        self.scope.integers.push(a);
        self.scope.floats.push(b);
        self.writer.block(&format!("block{after}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::size;
    use cranelift_thisgpu::compile::Compiler;
    use cranelift_thisgpu::compile::SourceFile;

    #[test]
    fn every_seed_gives_a_kernel_of_the_size_that_compiles() {
        for seed in 0..20 {
            let written = text(seed, 300);
            assert_eq!(written, text(seed, 300));
            let file = SourceFile::parse("random", &written).unwrap();
            let insts = size(&file.functions[0].func);
            assert!((300..400).contains(&insts), "{insts} instructions");
            Compiler::default().file(&file).unwrap();
        }
    }
}
