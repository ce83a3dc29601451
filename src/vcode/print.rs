//! The text of a [`VCode`] for dumps and golden tests.

use super::{Attachment, Callee, FunctionKind, Meeting, SourceLine, SymbolUse, Terminator, VCode};
use crate::isa::{Inst, Register};
use std::fmt;

fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    items
        .into_iter()
        .map(|i| i.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Where the line of an instruction comes from, as Cranelift writes it, if the text is to say that (`{:#}`).
pub(crate) fn origin(f: &mut fmt::Formatter<'_>, line: SourceLine) -> fmt::Result {
    if f.alternate() && line != SourceLine::default() {
        write!(f, "@{:04x} ", line.0)?;
    }
    Ok(())
}

impl<R: Register> fmt::Display for VCode<R> {
    /// With `#` lines of instructions begin with the numbers of their places in the source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FunctionKind::Kernel(_) => "kernel",
            FunctionKind::Device => "function",
        };
        let entry = list(self.entry.iter().map(|(r, p)| format!("{r}@{p}")));
        writeln!(f, "{kind} {}({entry}) {{", self.name)?;
        for (block, data) in self.blocks.iter() {
            write!(f, "{block}")?;
            if !data.params.is_empty() {
                write!(f, "({})", list(&data.params))?;
            }
            write!(f, ":")?;
            if data.divergent {
                write!(f, " // divergent")?;
            }
            match data.meeting {
                Meeting::Together => {}
                Meeting::At(block) => write!(f, " // lanes meet at {block}")?,
                Meeting::Nowhere => write!(f, " // lanes go on apart")?,
            }
            writeln!(f)?;
            for entry in self.block_insts(block) {
                origin(f, entry.line)?;
                write!(f, "    {}", entry.inst)?;
                match entry.attachment.map(|a| &self.attachments[a]) {
                    None => {}
                    Some(Attachment::Else(values)) => {
                        let values = values
                            .iter()
                            .map(|v| v.map_or("dead".to_string(), |v| v.to_string()));
                        write!(f, " // else {}", list(values))?;
                    }
                    Some(Attachment::Call(call)) => {
                        let side = |list_: &[(R, crate::isa::PReg)]| {
                            list(list_.iter().map(|(r, p)| format!("{r}@{p}")))
                        };
                        let callee = call.callee.as_deref().unwrap_or("indirect");
                        write!(
                            f,
                            " // {callee}({}) -> {}",
                            side(&call.uses),
                            side(&call.defs)
                        )?;
                    }
                    Some(Attachment::Symbol(s)) => write!(f, " // {}", s.print(&entry.inst))?,
                    Some(Attachment::Label(target)) => write!(f, " // {target}")?,
                    Some(Attachment::Pack(values)) => {
                        write!(
                            f,
                            " // {}: {}",
                            entry.attachment.expect("there is one"),
                            list(values)
                        )?;
                    }
                    Some(Attachment::Bit(bit)) => write!(f, " // {} of {}", bit.place, bit.pack)?,
                }
                writeln!(f)?;
            }
            origin(f, data.line)?;
            writeln!(f, "    {}", data.terminator)?;
        }
        writeln!(f, "}}")
    }
}

impl<R: Register> fmt::Display for Terminator<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divergence = |d: bool| if d { "divergent " } else { "" };
        let values = |v: &[(R, crate::isa::PReg)]| list(v.iter().map(|(r, p)| format!("{r}@{p}")));
        match self {
            Terminator::Jump { target, args } if args.is_empty() => write!(f, "jump {target}"),
            Terminator::Jump { target, args } => write!(f, "jump {target}({})", list(args)),
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                divergent,
            } => {
                let not = if guard.negated { "!" } else { "" };
                write!(
                    f,
                    "{}branch {not}{} {taken}, {fallthrough}",
                    divergence(*divergent),
                    guard.reg
                )
            }
            Terminator::Table {
                index,
                table,
                targets,
                divergent,
            } => {
                let loaded = table.map_or(String::new(), |t| format!(" at {t:#x}"));
                write!(
                    f,
                    "{}table {index}{loaded} [{}]",
                    divergence(*divergent),
                    list(targets)
                )
            }
            Terminator::Return { address, values: v } => {
                write!(f, "return {} via {}", values(v), list(address))
            }
            Terminator::TailCall { callee, values: v } => match callee {
                Callee::Symbol(name) => write!(f, "tail call {name}({})", values(v)),
                Callee::Registers(r) => write!(f, "tail call [{}]({})", list(r), values(v)),
            },
            Terminator::Exit => write!(f, "exit"),
            Terminator::Trap(code) => write!(f, "trap {code}"),
        }
    }
}

impl SymbolUse {
    /// The symbol as used by `inst`, whose operand gets its name in the documents.
    pub(crate) fn print<R: Register>(&self, inst: &Inst<R>) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let operand = inst.operand(self.role).map_or("?", |o| o.name);
            write!(
                f,
                "{operand} = {:?} {}{:+}",
                self.kind, self.name, self.addend
            )
        })
    }
}
