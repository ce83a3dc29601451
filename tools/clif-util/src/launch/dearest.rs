//! A profile for people: the instructions that cost most, and the time of all warps by reason.

use cranelift_thisgpu::launch::profile::{InstructionProfile, Profile, Stalls};
use std::cmp::Reverse;

/// Instructions that are listed (*assigned*).
const LISTED: usize = 10;

/// The report. An instruction costs the cycles of its issues and those that warps waited before it; all of them
/// together are the time of all warps.
pub fn report(profile: &Profile) -> String {
    let mut instructions: Vec<&InstructionProfile> = profile.instructions.iter().collect();
    // Of equals the first comes first.
    instructions.sort_by_key(|instruction| Reverse(cost(instruction)));
    let total: u64 = instructions.iter().copied().map(cost).sum();
    let share = |cycles: u64| 100.0 * cycles as f64 / total.max(1) as f64;
    let mut out = format!(
        "{}: {} cycles, {total} cycles of all warps\n   share     cycles     issues  instruction\n",
        profile.kernel, profile.cycles
    );
    for instruction in instructions.iter().take(LISTED) {
        let cycles = cost(instruction);
        out += &format!(
            "{:>6.1} % {cycles:>10} {:>10}  {}\n",
            share(cycles),
            instruction.counts.issues,
            described(instruction)
        );
    }
    let issues: u64 = instructions.iter().map(|i| i.counts.issues).sum();
    let mut stalls = Stalls::default();
    for (stall, cycles) in instructions.iter().flat_map(|i| i.counts.stalls.iter()) {
        stalls.add(stall, cycles);
    }
    let mut reasons: Vec<(&str, u64)> = stalls.iter().map(|(s, n)| (s.name(), n)).collect();
    reasons.push(("issue", issues));
    reasons.sort_by_key(|(_, cycles)| Reverse(*cycles));
    out += "   share     cycles  reason\n";
    for (reason, cycles) in reasons {
        out += &format!("{:>6.1} % {cycles:>10}  {reason}\n", share(cycles));
    }
    out
}

/// Cycles of warps.
fn cost(instruction: &InstructionProfile) -> u64 {
    instruction.counts.issues + instruction.counts.stalls.total()
}

/// Where it is, what it is, and what it waits for most.
fn described(instruction: &InstructionProfile) -> String {
    let InstructionProfile {
        address,
        text,
        function,
        offset,
        file,
        line,
        counts,
    } = instruction;
    let mut out = match function {
        Some(function) => format!("{function}+{offset:#x}"),
        None => format!("{address:#x}"),
    };
    if *line != 0 {
        out += &format!(", {}:{line}", file.as_deref().unwrap_or("line"));
    }
    out += &format!(": {text}");
    if let Some((stall, cycles)) = counts.stalls.iter().max_by_key(|(_, cycles)| *cycles) {
        out += &format!(" ({cycles} for {})", stall.name());
    }
    out
}
