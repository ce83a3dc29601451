//! The commands of the prompt.

use super::operand::{condition, number, operand};
use cranelift_thisgpu::sim::debug::{Breakpoint, Operand, Place, Space, Thread, Watch, Watchpoint};

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Break(Breakpoint),
    Watch(Watchpoint),
    Delete(u32),
    Points,
    /// So many lines, into calls.
    Step(u64),
    /// So many lines, over calls.
    Next(u64),
    /// So many instructions of the thread.
    Instruction(u64),
    Finish,
    Continue,
    /// So many instructions of the thread, backwards.
    Back(u64),
    ContinueBack,
    GoTo(u64),
    Thread(Thread),
    Warps,
    Lanes(Operand),
    Print(Operand),
    Registers,
    Values,
    /// Of a function that is inlined into so many others, or the one that is looked at.
    Locals(Option<u32>),
    /// Those of the kernel.
    Statics,
    /// Looks at a function that is inlined into so many others.
    Frame(u32),
    Up,
    Down,
    Where,
    Disassemble(Option<u32>, usize),
    Memory(Space, u64, usize),
    Set(u8, u32),
    Output,
    Help,
    Quit,
}

impl Command {
    /// Whether it lets the launch go on or back, or ends the prompt.
    pub fn goes_on(&self) -> bool {
        matches!(
            self,
            Command::Step(_)
                | Command::Next(_)
                | Command::Instruction(_)
                | Command::Finish
                | Command::Continue
                | Command::Back(_)
                | Command::ContinueBack
                | Command::GoTo(_)
                | Command::Quit
        )
    }
}

/// The names of commands, how they are written, and what they do.
pub const HELP: [(&str, &str, &str); 32] = [
    (
        "break",
        "PLACE [block N] [thread N] [if x == 7]",
        "stop before a function, a LINE, FILE:LINE or *ADDRESS",
    ),
    (
        "watch",
        "SPACE ADDRESS BYTES",
        "stop behind stores; SPACE is global, shared or local",
    ),
    ("rwatch", "SPACE ADDRESS BYTES", "stop behind loads"),
    ("awatch", "SPACE ADDRESS BYTES", "stop behind both"),
    ("delete", "N", "take a breakpoint or watchpoint away"),
    ("points", "", "show those that are set"),
    ("step", "[N]", "to the thread's next line, into calls"),
    ("next", "[N]", "to the thread's next line, over calls"),
    ("stepi", "[N]", "one instruction of the thread"),
    ("finish", "", "out of the function that the thread is in"),
    ("continue", "", "until something stops it"),
    ("back", "[N]", "one instruction of the thread, backwards"),
    (
        "rcontinue",
        "",
        "backwards until something would have stopped it",
    ),
    ("goto", "N", "to where N warp instructions had been issued"),
    (
        "thread",
        "BLOCK THREAD",
        "look at another thread; numbers, or X,Y,Z",
    ),
    (
        "warps",
        "",
        "the warps that run, their lanes, and who waits for whom",
    ),
    (
        "lanes",
        "WHAT",
        "a register, value or variable in all lanes of the warp: R4, R[4:5], P0, UR2, v12, p.x[3]",
    ),
    (
        "print",
        "WHAT",
        "a register, value or variable of the thread, or a part of a variable",
    ),
    ("registers", "", "those of the thread that are not 0"),
    (
        "frame",
        "N",
        "look at the Nth function that the thread's is inlined into, 0 is its own",
    ),
    (
        "up",
        "",
        "look at the function that this one is inlined into",
    ),
    ("down", "", "look at the one that is inlined here"),
    (
        "locals",
        "[N]",
        "the variables of the function, or of the Nth one that it is inlined into",
    ),
    (
        "statics",
        "",
        "static variables of the kernel, shared memory among them",
    ),
    ("values", "", "the values of the CLIF that are available"),
    ("where", "", "the thread's place and calls"),
    ("quit", "", "end"),
    (
        "disassemble",
        "[ADDRESS [N]]",
        "instructions from the thread's on",
    ),
    (
        "memory",
        "SPACE ADDRESS BYTES",
        "bytes of memory; shared and local are the thread's",
    ),
    ("set", "R4 = 7", "change a register of the thread"),
    ("output", "", "what kernels have printed so far"),
    ("help", "", "this"),
];

/// Other names, as gdb has them.
const ALIASES: [(&str, &str); 14] = [
    ("b", "break"),
    ("s", "step"),
    ("n", "next"),
    ("si", "stepi"),
    ("fin", "finish"),
    ("c", "continue"),
    ("rc", "rcontinue"),
    ("reverse-continue", "rcontinue"),
    ("rsi", "back"),
    ("bt", "where"),
    ("backtrace", "where"),
    ("p", "print"),
    ("x", "memory"),
    ("q", "quit"),
];

/// Reads a command for a debugger that looks at `thread`, of a grid and blocks of these extents. None for an empty
/// line.
///
/// # Errors
/// What is wrong, in words.
pub fn parse(
    text: &str,
    thread: Thread,
    (grid, block): ([u32; 3], [u32; 3]),
) -> Result<Option<Command>, String> {
    let text = without_comment(text).trim();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let words: Vec<&str> = rest.split_whitespace().collect();
    let name = ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, name)| name);
    let times = || match words[..] {
        [] => Ok(1),
        [times] => number(times),
        _ => Err(format!("{name} takes one number")),
    };
    let only = |command| match words[..] {
        [] => Ok(command),
        _ => Err(format!("{name} takes nothing")),
    };
    Ok(Some(match name {
        "" => return Ok(None),
        "break" => Command::Break(breakpoint(rest, grid, block)?),
        "watch" | "rwatch" | "awatch" => {
            let (space, address, bytes) = range(&words, thread)?;
            Command::Watch(Watchpoint {
                space,
                address,
                bytes,
                watch: match name {
                    "watch" => Watch::Write,
                    "rwatch" => Watch::Read,
                    _ => Watch::Access,
                },
            })
        }
        "delete" => match words[..] {
            [id] => Command::Delete(small(number(id)?)?),
            _ => return Err("delete takes the number of a breakpoint".to_owned()),
        },
        "points" => only(Command::Points)?,
        "step" => Command::Step(times()?),
        "next" => Command::Next(times()?),
        "stepi" => Command::Instruction(times()?),
        "finish" => only(Command::Finish)?,
        "continue" => only(Command::Continue)?,
        "back" => Command::Back(times()?),
        "rcontinue" => only(Command::ContinueBack)?,
        "goto" => match words[..] {
            [position] => Command::GoTo(number(position)?),
            _ => return Err("goto takes a number of warp instructions".to_owned()),
        },
        "thread" => match words[..] {
            [in_grid, in_block] => Command::Thread(Thread {
                block: place(in_grid, grid, "block")?,
                thread: small(place(in_block, block, "thread")?)?,
            }),
            _ => {
                return Err(
                    "thread takes a block and a thread: thread 0 33, or thread 1,0,0 1,1,0"
                        .to_owned(),
                );
            }
        },
        "warps" => only(Command::Warps)?,
        "lanes" => Command::Lanes(operand(rest)?),
        "print" => Command::Print(operand(rest)?),
        "registers" => only(Command::Registers)?,
        "frame" => match words[..] {
            [frame] => Command::Frame(small(number(frame)?)?),
            _ => return Err("frame takes the number of a function, 0 is the innermost".to_owned()),
        },
        "up" => only(Command::Up)?,
        "down" => only(Command::Down)?,
        "values" => only(Command::Values)?,
        "statics" => only(Command::Statics)?,
        "locals" => match words[..] {
            [] => Command::Locals(None),
            [frame] => Command::Locals(Some(small(number(frame)?)?)),
            _ => return Err("locals takes the number of a function, 0 is the innermost".to_owned()),
        },
        "where" => only(Command::Where)?,
        "disassemble" => match words[..] {
            [] => Command::Disassemble(None, 8),
            [address] => Command::Disassemble(Some(small(number(address)?)?), 8),
            [address, count] => {
                let count = number(count)?.min(1 << 16) as usize;
                Command::Disassemble(Some(small(number(address)?)?), count)
            }
            _ => return Err("disassemble takes an address and a number of instructions".to_owned()),
        },
        "memory" => {
            let (space, address, bytes) = range(&words, thread)?;
            let bytes = usize::try_from(bytes)
                .ok()
                .filter(|&bytes| bytes <= 1 << 16);
            let bytes = bytes.ok_or("memory shows 65536 bytes at most")?;
            Command::Memory(space, address, bytes)
        }
        "set" => match rest
            .split_once('=')
            .map(|(left, right)| (left.trim(), right.trim()))
        {
            Some((left, right)) => match operand(left)? {
                Operand::Register(register) => Command::Set(register, small(number(right)?)?),
                _ => return Err("set changes general registers: set R4 = 7".to_owned()),
            },
            None => return Err("set takes a register and a value: set R4 = 7".to_owned()),
        },
        "output" => only(Command::Output)?,
        "help" => only(Command::Help)?,
        "quit" => only(Command::Quit)?,
        _ => return Err(format!("`{name}` is no command; `help` tells them")),
    }))
}

/// A line up to a sign that begins a comment; one in quotes is none.
fn without_comment(text: &str) -> &str {
    let comment = text
        .match_indices('#')
        .find(|(at, _)| !text[..*at].ends_with('\''));
    comment.map_or(text, |(at, _)| &text[..at])
}

fn small(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// Reads a number below all of `extent`, or coordinates.
fn place(text: &str, extent: [u32; 3], what: &str) -> Result<u64, String> {
    let parts: Vec<u64> = text.split(',').map(number).collect::<Result<_, _>>()?;
    let count = extent.iter().map(|&n| u64::from(n)).product();
    let [width, height, _] = extent.map(u64::from);
    let found = match parts[..] {
        [found] => (found < count).then_some(found),
        [x, y] => (x < width && y < height).then_some(x + width * y),
        [x, y, z] => (x < width && y < height && z < u64::from(extent[2]))
            .then_some(x + width * (y + height * z)),
        _ => None,
    };
    found.ok_or_else(|| format!("there is no {what} {text}: there are {extent:?}"))
}

/// Reads a space, an address and a number of bytes; shared and local memory are those of `thread`, or of whom a space
/// says: `shared:BLOCK`, `local:BLOCK:THREAD`.
pub fn range(words: &[&str], thread: Thread) -> Result<(Space, u64, u64), String> {
    let [space, address, bytes] = words[..] else {
        return Err("write a space, an address and a number of bytes: shared 0x80 4".to_owned());
    };
    let mut parts = space.split(':');
    let name = parts.next().unwrap_or_default();
    let (block, of_block) = (parts.next(), parts.next());
    let block = block.map_or(Ok(thread.block), number)?;
    let space = match (name, of_block) {
        ("global", None) => Space::Global,
        ("shared", None) => Space::Shared { block },
        ("local", None) => Space::Local(thread),
        ("local", Some(thread)) => Space::Local(Thread {
            block,
            thread: small(number(thread)?)?,
        }),
        _ => {
            return Err(format!(
                "`{space}` is no space; write global, shared or local"
            ));
        }
    };
    Ok((space, number(address)?, number(bytes)?))
}

/// Reads a place: `*0x40`, a line, a line of a file, or a function.
pub fn code_place(text: &str) -> Result<Place, String> {
    if let Some(address) = text.strip_prefix('*') {
        return Ok(Place::Address(small(number(address)?)?));
    }
    if let Ok(line) = text.parse() {
        return Ok(Place::Line { file: None, line });
    }
    if let Some((file, line)) = text.rsplit_once(':')
        && let Ok(line) = line.parse()
    {
        let file = Some(file.to_owned());
        return Ok(Place::Line { file, line });
    }
    match text {
        "" => Err("break takes a function, a line, FILE:LINE or *ADDRESS".to_owned()),
        _ => Ok(Place::Function(text.to_owned())),
    }
}

fn breakpoint(text: &str, grid: [u32; 3], block: [u32; 3]) -> Result<Breakpoint, String> {
    let (text, when) = match text.split_once(" if ") {
        Some((text, when)) => (text, Some(condition(when)?)),
        None => (text, None),
    };
    let mut words = text.split_whitespace();
    let mut breakpoint = Breakpoint::at(code_place(words.next().unwrap_or_default())?);
    breakpoint.condition = when;
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("block", Some(number)) => breakpoint.block = Some(place(number, grid, "block")?),
            ("thread", Some(number)) => {
                breakpoint.thread = Some(small(place(number, block, "thread")?)?);
            }
            _ => {
                return Err(format!(
                    "`{word}`: a place may be followed by block N, thread N, if R4 == 7"
                ));
            }
        }
    }
    Ok(breakpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Thread = Thread {
        block: 2,
        thread: 33,
    };

    fn read(text: &str) -> Result<Option<Command>, String> {
        parse(text, THREAD, ([4, 2, 1], [64, 1, 1]))
    }

    #[test]
    fn commands_are_read() {
        assert_eq!(read("  # nothing"), Ok(None));
        assert_eq!(read("c"), Ok(Some(Command::Continue)));
        assert_eq!(read("stepi 0x10"), Ok(Some(Command::Instruction(16))));
        let mut breakpoint = Breakpoint::at(Place::Line {
            file: Some("k.clif".to_owned()),
            line: 7,
        });
        breakpoint.block = Some(3);
        breakpoint.condition = condition("P0 == 1").ok();
        let text = "break k.clif:7 block 3 if P0 == 1";
        assert_eq!(read(text), Ok(Some(Command::Break(breakpoint))));
        let thread = Thread {
            block: 5,
            thread: 7,
        };
        assert_eq!(read("thread 1,1 7"), Ok(Some(Command::Thread(thread))));
        let shared = Space::Shared { block: 2 };
        assert_eq!(
            read("memory shared 8 4"),
            Ok(Some(Command::Memory(shared, 8, 4)))
        );
        assert_eq!(read("set R3 = 0xff"), Ok(Some(Command::Set(3, 255))));
    }

    #[test]
    fn what_is_no_command_is_told() {
        for wrong in [
            "frobnicate",
            "continue 3",
            "thread 9 0",
            "thread 0 64",
            "thread 0",
            "memory shared 8",
            "memory moon 0 4",
            "break",
            "break k thread",
            "break 3 if",
            "break 3 if R4",
            "set P0 = 1",
            "set R1",
            "lanes",
            "delete x",
            "goto",
            "step 1 2",
            "memory global 0 99999999",
            "break 3 block 8",
            "break 3 thread 64",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for (name, _, _) in HELP {
            let unknown = format!("`{name}` is no command");
            assert!(
                !matches!(read(name), Err(text) if text.starts_with(&unknown)),
                "{name}"
            );
        }
    }
}
