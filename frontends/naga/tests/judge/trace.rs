//! Records of operations: buffers, modules, pipelines, bind groups, commands, and what a buffer holds then.

use super::mended::WeakExchange;
use super::record::Outcome;
use super::run::{Entry, Machine, bytes, list, number, text, wrong};
use cranelift_thisgpu::Buffer;
use serde_json::Value;
use std::collections::HashMap;
use thisgpu_naga::Binding;

impl Machine {
    /// Operations of the interface, and what a buffer holds then.
    pub fn trace(&mut self, record: &Value) -> Result<(), Outcome> {
        let ops = list(record, "ops")?;
        // A record repeats the operations of those before it, or begins anew.
        let known = match ops.starts_with(&self.done) {
            true => self.done.len(),
            false => 0,
        };
        if known == 0 {
            self.failed = Ok(());
        }
        for op in &ops[known..] {
            // What has failed is said once; the objects of later records must be there.
            let done = self.operation(op);
            if self.failed.is_ok() {
                self.failed = done;
            }
        }
        self.done = ops.to_vec();
        self.failed.clone()?;
        let buffer = self.buffer(number(record, "buffer")?)?;
        let offset = number(record, "offset")?;
        let mut expected = bytes(record, "expected")?;
        let is = buffer.read_range(offset..offset + expected.len() as u64);
        let is = is.map_err(|error| wrong(error.to_string()))?;
        if let Some(exchange) = WeakExchange::of(text(record, "name")?) {
            let exchanged = self.bound_at(exchange.exchanged)?.to_vec();
            let exchanged = exchanged.map_err(|error| wrong(error.to_string()))?;
            if self.bound_at(exchange.input)?.address() == buffer.address() {
                exchange.mend(&mut expected, &exchanged);
            }
        }
        match is.iter().zip(&expected).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(first) => {
                let end = (first + 16).min(is.len());
                Err(wrong(format!(
                    "byte {first} of {}: expected {:02x?}, is {:02x?}",
                    is.len(),
                    &expected[first..end],
                    &is[first..end]
                )))
            }
        }
    }

    /// The buffer at a binding of the last bind group.
    fn bound_at(&self, binding: u32) -> Result<&Buffer, Outcome> {
        let last = self.groups.iter().max_by_key(|(number, _)| **number);
        let entry = last.and_then(|(_, entries)| entries.iter().find(|e| e.binding == binding));
        self.buffer(entry.ok_or_else(|| wrong("no such binding"))?.buffer)
    }

    fn buffer(&self, number: u64) -> Result<&Buffer, Outcome> {
        self.buffers
            .get(&number)
            .ok_or_else(|| wrong(format!("no buffer {number}")))
    }

    fn operation(&mut self, op: &Value) -> Result<(), Outcome> {
        match text(op, "op")? {
            "buffer" => {
                let size = number(op, "size")?;
                let buffer = self.device.allocate_zeroed(size);
                let buffer = buffer.map_err(|error| wrong(error.to_string()))?;
                self.buffers.insert(number(op, "o")?, buffer);
            }
            "unmap" => {
                if op.get("data").is_some() {
                    let (first, data) = (number(op, "off")?, bytes(op, "data")?);
                    let written = self.buffer(number(op, "o")?)?.write_at(first, &data);
                    written.map_err(|error| wrong(error.to_string()))?;
                }
            }
            "write" => {
                let (first, data) = (number(op, "off")?, bytes(op, "data")?);
                let written = self.buffer(number(op, "o")?)?.write_at(first, &data);
                written.map_err(|error| wrong(error.to_string()))?;
            }
            "module" => {
                let code = text(op, "code")?.to_string();
                self.modules.insert(number(op, "o")?, code);
            }
            "cp" => {
                let code = self.modules.get(&number(op, "m")?);
                let code = code.ok_or_else(|| wrong("no module"))?.clone();
                let entry = op.get("e").and_then(Value::as_str);
                let compiled = self.compile(&code, entry, &op["k"]);
                let pipeline = compiled.and_then(|compiled| self.load(&compiled));
                let failed = pipeline.as_ref().err().cloned();
                self.pipelines.insert(number(op, "o")?, pipeline);
                failed.map_or(Ok(()), Err)?;
            }
            "bg" => {
                let mut entries = Vec::new();
                for entry in list(op, "entries")? {
                    entries.push(Entry {
                        binding: number(entry, "binding")? as u32,
                        buffer: number(entry, "b")?,
                        offset: number(entry, "off")?,
                        size: entry.get("size").and_then(Value::as_u64),
                    });
                }
                self.groups.insert(number(op, "o")?, entries);
            }
            "finish" => {
                self.commands.insert(number(op, "o")?, op["c"].clone());
            }
            "submit" => {
                for commands in list(op, "l")? {
                    let commands = commands
                        .as_u64()
                        .and_then(|n| self.commands.get(&n))
                        .cloned();
                    let commands = commands.ok_or_else(|| wrong("no commands"))?;
                    for command in commands.as_array().into_iter().flatten() {
                        self.command(command)?;
                    }
                }
            }
            "bgl" | "pl" | "pbgl" | "destroy" => {}
            other => return Err(wrong(format!("the operation `{other}`"))),
        }
        Ok(())
    }

    fn command(&mut self, command: &Value) -> Result<(), Outcome> {
        if let Some(copy) = command.get("copy").and_then(Value::as_array) {
            let copy: Vec<u64> = copy.iter().filter_map(Value::as_u64).collect();
            let [from, first, to, start, size] = copy[..] else {
                return Err(wrong("a copy of other operands"));
            };
            let part = self.buffer(from)?.slice(first..first + size);
            let target = self.buffer(to)?.slice(start..start + size);
            let copied = part.and_then(|part| part.copy_to(&target?));
            return copied.map_err(|error| wrong(error.to_string()));
        }
        let mut pipeline = None;
        let mut bound: HashMap<u64, (u64, Vec<u64>)> = HashMap::new();
        for step in list(command, "pass")? {
            let numbers = |from: usize| -> Vec<u64> {
                let parts = step
                    .as_array()
                    .map_or(&[][..], |parts| &parts[from.min(parts.len())..]);
                parts.iter().filter_map(Value::as_u64).collect()
            };
            match step.get(0).and_then(Value::as_str) {
                Some("p") => pipeline = numbers(1).first().copied(),
                Some("g") => {
                    let offsets = step.get(3).and_then(Value::as_array);
                    let offsets =
                        offsets.map(|list| list.iter().filter_map(Value::as_u64).collect());
                    if let [index, group] = numbers(1)[..] {
                        bound.insert(index, (group, offsets.unwrap_or_default()));
                    }
                }
                Some("d") => {
                    let groups: Vec<u32> = numbers(1).into_iter().map(|n| n as u32).collect();
                    let groups = <[u32; 3]>::try_from(groups).map_err(|_| wrong("a dispatch"))?;
                    let pipeline = pipeline.and_then(|number| self.pipelines.get(&number));
                    let pipeline = pipeline.ok_or_else(|| wrong("no pipeline"))?.clone()?;
                    let bindings = self.bindings(&bound)?;
                    self.dispatch(&pipeline, groups, &bindings)?;
                }
                _ => return Err(wrong(format!("the step {step}"))),
            }
        }
        Ok(())
    }

    fn bindings(&self, bound: &HashMap<u64, (u64, Vec<u64>)>) -> Result<Vec<Binding>, Outcome> {
        let mut bindings = Vec::new();
        for (&index, (group, offsets)) in bound {
            let entries = self
                .groups
                .get(group)
                .ok_or_else(|| wrong("no bind group"))?;
            // The cases with dynamic offsets have one buffer that takes them, the first of its group.
            let mut entries = entries.clone();
            entries.sort_by_key(|entry| entry.binding);
            for (number, entry) in entries.iter().enumerate() {
                let buffer = self.buffer(entry.buffer)?;
                let offset = entry.offset + offsets.get(number).copied().unwrap_or(0);
                let end = entry.size.map_or(buffer.bytes(), |size| offset + size);
                let part = buffer.slice(offset..end);
                let part = part.map_err(|error| wrong(error.to_string()))?;
                bindings.push(Binding::new(index as u32, entry.binding, &part));
            }
        }
        Ok(bindings)
    }
}
