//! A stack machine: enumerations with data, `match`, errors as values, dynamic dispatch.

/// An instruction.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    Push(i32),
    Apply(u8),
    Duplicate,
    Swap,
    /// Back by so many instructions while the top, counted down, is above 0.
    Loop(u8),
    End,
}

/// Why a program ended too early.
#[derive(Clone, Copy, Debug)]
enum Failure {
    StackEmpty,
    StackFull,
    DivisionByZero,
    TooLong,
}

/// An operation of two operands.
trait Operation {
    fn apply(&self, a: i32, b: i32) -> Result<i32, Failure>;
}

struct Add;
struct Multiply;
struct Divide;
struct Mix(i32);

impl Operation for Add {
    fn apply(&self, a: i32, b: i32) -> Result<i32, Failure> {
        Ok(a.wrapping_add(b))
    }
}

impl Operation for Multiply {
    fn apply(&self, a: i32, b: i32) -> Result<i32, Failure> {
        Ok(a.wrapping_mul(b))
    }
}

impl Operation for Divide {
    fn apply(&self, a: i32, b: i32) -> Result<i32, Failure> {
        if b == 0 {
            Err(Failure::DivisionByZero)
        } else {
            Ok(a.wrapping_div(b))
        }
    }
}

impl Operation for Mix {
    fn apply(&self, a: i32, b: i32) -> Result<i32, Failure> {
        Ok((a ^ b).rotate_left(self.0 as u32))
    }
}

/// Chosen by a number at run time.
static OPERATIONS: [&(dyn Operation + Sync); 5] = [&Add, &Multiply, &Divide, &Mix(3), &Mix(11)];

#[derive(Default)]
struct Machine {
    stack: [i32; 16],
    len: usize,
}

impl Machine {
    fn push(&mut self, value: i32) -> Result<(), Failure> {
        *self.stack.get_mut(self.len).ok_or(Failure::StackFull)? = value;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self) -> Result<i32, Failure> {
        self.len = self.len.checked_sub(1).ok_or(Failure::StackEmpty)?;
        Ok(self.stack[self.len])
    }

    fn run(&mut self, program: &[Instruction]) -> Result<i32, Failure> {
        let (mut at, mut steps) = (0usize, 0);
        while let Some(instruction) = program.get(at) {
            steps += 1;
            if steps > 200 {
                return Err(Failure::TooLong);
            }
            at += 1;
            match *instruction {
                Instruction::Push(value) => self.push(value)?,
                Instruction::Apply(number) => {
                    let (b, a) = (self.pop()?, self.pop()?);
                    let operation = OPERATIONS[number as usize % OPERATIONS.len()];
                    self.push(operation.apply(a, b)?)?;
                }
                Instruction::Duplicate => {
                    let top = self.pop()?;
                    self.push(top)?;
                    self.push(top)?;
                }
                Instruction::Swap => {
                    let (b, a) = (self.pop()?, self.pop()?);
                    self.push(b)?;
                    self.push(a)?;
                }
                Instruction::Loop(back) => {
                    let top = self.pop()?.wrapping_sub(1);
                    self.push(top)?;
                    if top > 0 {
                        at = at.saturating_sub(back as usize + 1);
                    }
                }
                Instruction::End => break,
            }
        }
        self.pop()
    }
}

/// Runs a program that depends on the seed; what comes of it as a number.
pub fn run(seed: u64) -> u64 {
    let mut random = oorandom::Rand32::new(seed);
    let mut program = [Instruction::End; 24];
    for instruction in &mut program {
        let value = random.rand_u32();
        *instruction = match value % 12 {
            0..=4 => Instruction::Push((value >> 8) as i32 % 50),
            5..=7 => Instruction::Apply((value >> 8) as u8),
            8 => Instruction::Duplicate,
            9 => Instruction::Swap,
            10 => Instruction::Loop((value >> 8) as u8 % 6),
            _ => Instruction::End,
        };
    }
    match Machine::default().run(&program) {
        Ok(value) => value as u32 as u64,
        Err(failure) => 1 << 40 | failure as u64,
    }
}
