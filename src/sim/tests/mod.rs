//! Programs for the simulator's tests, written as `FORM field=value ..` with the names of the description, independent
//! of the assembler.

mod checks;
mod concurrent;
mod divergence;
mod endless;
mod faults;
mod forms;
mod fuzz;
mod judged;
mod kernels;
mod parallel;
mod profile;
mod programs;
mod races;
mod simd;
mod timing;

use super::SimConfig;
use super::launch::Loaded;
use crate::isa::generated::FORMS;
use crate::isa::register::{PReg, RegisterClass};
use crate::isa::table::FieldType;
use crate::isa::{Control, Form, PInst, Scoreboard};
use crate::launch::{Image, LaunchRequest, Report};
use crate::sim::memory::global::Global;

/// Words of a program. A line is `LABEL:` or `@!P0 FORM field=value .. ?4 &req=3 &wr=1 &rd=2` (`req` is a mask). A
/// value is a number, a member's name, `c0:0x160`, or `>LABEL`. Registers are given by their number, a wide operand by
/// its first; what is not given is hard-wired.
fn words(text: &str) -> Vec<u128> {
    let lines: Vec<&str> = text
        .lines()
        .map(|l| l.split("//").next().unwrap_or("").trim())
        .filter(|l| !l.is_empty())
        .collect();
    let mut labels = Vec::new();
    let mut count = 0;
    for line in &lines {
        match line.strip_suffix(':') {
            Some(label) => labels.push((label, count)),
            None => count += 1,
        }
    }
    let place = |label: &str| {
        labels
            .iter()
            .find(|l| l.0 == label)
            .unwrap_or_else(|| panic!("no label {label}"))
            .1
    };
    let code = lines.iter().filter(|l| !l.ends_with(':')).enumerate();
    code.map(|(index, line)| {
        let offset = |label: &str| (place(label) as i64 - index as i64 - 1) * 16;
        word(line, &offset).unwrap_or_else(|e| panic!("{line}: {e}"))
    })
    .collect()
}

fn word(line: &str, offset: &dyn Fn(&str) -> i64) -> Result<u128, String> {
    let mut tokens = line.split_whitespace().peekable();
    let guard = tokens.next_if(|t| t.starts_with('@'));
    let name = tokens.next().ok_or("empty")?;
    let index = FORMS
        .iter()
        .position(|f| f.name == name)
        .ok_or("no such form")?;
    let mut inst = PInst::new(Form::from_index(index).ok_or("no such form")?);
    let mut control = Control::default();
    let mut registers = Vec::new();
    for token in tokens {
        if let Some(stall) = token.strip_prefix('?') {
            control.set_stall(stall.parse().map_err(|_| "stall")?);
            continue;
        }
        let (field, value) = token.split_once('=').ok_or("field=value expected")?;
        let number = number(value, offset, &inst, field).ok_or_else(|| format!("value {value}"))?;
        match field {
            "&req" => control.set_wait(number as u8),
            "&wr" => control.write = Scoreboard::new(number as u8),
            "&rd" => control.read = Scoreboard::new(number as u8),
            _ => match inst
                .info()
                .operands
                .iter()
                .find(|o| o.name == field && o.class.is_some())
            {
                Some(operand) => registers.push((operand, number as u8)),
                None => {
                    let fields = inst.info().fields;
                    let index = fields.iter().position(|f| f.name == field);
                    inst.set_field(index.ok_or("no such field")? as u8, number as u64);
                }
            },
        }
    }
    // Widths depend on modifiers: registers last.
    for (operand, first) in registers {
        let class = operand.class.ok_or("a register")?;
        let regs: Vec<Option<PReg>> = match first == class.hardwired() {
            true => vec![None; inst.register_count(operand)],
            false => (0..inst.register_count(operand))
                .map(|i| Some(PReg::new(class, first + i as u8)))
                .collect(),
        };
        inst.set_regs(operand, &regs);
    }
    if let Some(guard) = guard {
        let negated = guard.starts_with("@!");
        let number = guard
            .trim_start_matches(['@', '!', 'P'])
            .parse()
            .map_err(|_| "guard")?;
        inst.set_guard(Some(PReg::new(RegisterClass::Predicate, number)), negated);
    }
    inst.encode(control).map_err(|e| e.to_string())
}

fn number(value: &str, offset: &dyn Fn(&str) -> i64, inst: &PInst, field: &str) -> Option<i64> {
    if let Some(label) = value.strip_prefix('>') {
        return Some(offset(label));
    }
    if let Some(FieldType::Enum(e)) = inst.find_field(field).map(|f| f.ty)
        && let Some(member) = e.members.iter().find(|m| m.0 == value)
    {
        return Some(member.1 as i64);
    }
    if let Some((bank, byte)) = value.strip_prefix('c').and_then(|v| v.split_once(':')) {
        return Some(bank.parse::<i64>().ok()? << 17 | plain(byte)?);
    }
    plain(value)
}

fn plain(value: &str) -> Option<i64> {
    match value.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok(),
    }
}

/// A device with one buffer of words and a program.
struct Bench {
    config: SimConfig,
    global: Global,
    loaded: Loaded,
    /// Address of the buffer.
    buffer: u64,
    /// Words of the buffer.
    count: usize,
    shared: u32,
}

impl Bench {
    fn new(text: &str, buffer: &[u32]) -> Bench {
        Bench::with(SimConfig::default(), text, buffer)
    }

    fn with(config: SimConfig, text: &str, buffer: &[u32]) -> Bench {
        let mut global = Global::new(1 << 24, config.check);
        let bytes: Vec<u8> = buffer.iter().flat_map(|w| w.to_le_bytes()).collect();
        let address = global.allocate(bytes.len() as u64).expect("room");
        global.write(address, &bytes).expect("mapped");
        let loaded = Loaded::new(
            Image {
                words: words(text),
                ..Image::default()
            },
            &config,
        );
        Bench {
            config,
            global,
            loaded,
            buffer: address,
            count: buffer.len(),
            shared: 1024,
        }
    }

    /// Launches with the buffer's address as first parameter, more 32-bit parameters behind it.
    fn launch(&mut self, grid: u32, block: u32, more: &[u32]) -> Report {
        let mut parameters = self.buffer.to_le_bytes().to_vec();
        parameters.extend(more.iter().flat_map(|w| w.to_le_bytes()));
        let request = LaunchRequest {
            kernel: "test",
            entry: 0,
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            static_shared: self.shared,
            dynamic_shared: 0,
            local_bytes: 0,
            parameters: &parameters,
            progress: None,
            time_limit: None,
        };
        self.loaded
            .launch(&request, self.global.table(), &self.config)
            .expect("a possible launch")
    }

    /// Launches and demands that nothing is wrong, and that timed mode computes the same.
    fn run(&mut self, grid: u32, block: u32, more: &[u32]) -> Report {
        let before = self.global.clone();
        let report = self.launch(grid, block, more);
        let texts = |report: &Report| -> Vec<String> {
            let findings = report.findings.iter().map(|f| f.to_string());
            report
                .fault
                .iter()
                .map(|f| f.to_string())
                .chain(findings)
                .collect()
        };
        assert_eq!(texts(&report), [""; 0]);
        if self.config.timed {
            let hazards: Vec<String> = report.hazards.iter().map(|h| h.to_string()).collect();
            assert_eq!(hazards, [""; 0]);
        } else {
            let config = self.config;
            self.config.timed = true;
            let after = std::mem::replace(&mut self.global, before);
            let timed = self.launch(grid, block, more);
            assert_eq!(texts(&timed), [""; 0]);
            assert!(
                self.words(self.count) == buffer_words(&after, self.buffer, self.count),
                "timing changes the result"
            );
            (self.global, self.config) = (after, config);
        }
        report
    }

    /// The buffer's words.
    fn words(&self, count: usize) -> Vec<u32> {
        buffer_words(&self.global, self.buffer, count)
    }
}

fn buffer_words(global: &Global, address: u64, count: usize) -> Vec<u32> {
    let bytes = global.read(address, 4 * count as u64).expect("mapped");
    bytes
        .chunks(4)
        .map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

/// R0 = thread in the grid, R[2:3] = address of its word of the buffer. Uses R0 to R5.
const ADDRESS: &str = "
    S2R_X rd=0 sreg=SR_CTAID_X &wr=0
    S2R_X rd=1 sreg=SR_TID_X &wr=0
    IMAD_RCR rd=0 ra=0 vb=c0:0x0 rc=1 &req=1 ?5
    MOV_C rd=4 vb=c0:0x160 ?1
    MOV_C rd=5 vb=c0:0x164 ?4
    IMAD_WIDE_RIR itype=U32 rd=2 ra=0 vb=4 rc=4 ?6
";
