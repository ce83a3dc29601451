//! States of `clif-util exec`: files of the tool, which is a program and no library.

#[allow(dead_code, reason = "the tool runs another instruction set too")]
#[path = "../../tools/clif-util/src/exec/machine.rs"]
mod machine;
#[path = "../../tools/clif-util/src/exec/state.rs"]
mod state;
#[path = "../../tools/clif-util/src/exec/straight.rs"]
mod straight;

use cranelift_thisgpu::asm;
use cranelift_thisgpu::sim::Reference;
use cranelift_thisgpu::unstable::sim::Program;
use machine::{Code, Machine};
use state::State;

/// Straight-line code in front of the first line that begins with `{`, and from there states, one a line. The code runs
/// once for each state that is one, and what changes is written.
pub fn states(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (code, states) = text.split_at(text.find("\n{").unwrap_or(text.len()));
    let Ok(assembly) = asm::assemble("input.s", code) else {
        return;
    };
    let Ok(words) = assembly.words() else {
        return;
    };
    if !straight::refused("input.s", &assembly).is_empty() {
        return;
    }
    let program = Program::new(&words, Reference::default());
    let mut machine = Machine::new(Code::Words(&program));
    let none = State::default();
    let states = states.lines().map(serde_json::from_str::<State>);
    for state in std::iter::once(none).chain(states.flatten()) {
        let mut line = Vec::new();
        machine
            .run(&state, &mut line)
            .expect("memory takes everything");
        serde_json::from_slice::<serde_json::Value>(&line).expect("an answer is JSON");
    }
}
