//! What the data has wrong, and what is compared instead.
//!
//! 1. Expressions on uniform memory are in several records where 16 KiB do not hold all inputs, and every one of these
//!    records has the inputs of the last. The same inputs in the same order are those of the case with
//!    `inputSource="storage_r"`, in one record. They are taken from there, if that gives for the last record what it
//!    has.
//! 2. The cases that index arrays of matrices have a record for each matrix, and all have the inputs of the last: three
//!    matrices with the elements `100 * matrix + 10 * i + j`, where j counts to the number of columns and i beyond, and
//!    the index. They are made for each record by the declarations in its shader, if that gives for the last record
//!    what it has.
//! 3. Bytes of arrays of `vec3` are expected without the gaps between the vectors (`expected.rs`).
//! 4. A weak exchange may fail without a reason, and the suite computes what the input must hold then from what the
//!    device says of each exchange. The data holds what a device says that never exchanges. Here the exchanges that are
//!    said to have happened are applied to it, and must be those of the elements that are compared with their own
//!    value, every third.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Uniform elements begin at multiples of so many bytes.
const UNIFORM_STEP: usize = 16;

fn inputs(record: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(record.get("inputs")?.as_str()?).ok()
}

fn count(record: &Value) -> Option<usize> {
    record.get("n")?.as_u64().map(|n| n as usize)
}

/// Gives records with uniform inputs those of the record of the same case in storage.
pub fn uniform_inputs(records: &mut [Value], partner: &str) {
    if let Some(mended) = mended(records, partner) {
        for (record, inputs) in records.iter_mut().zip(mended) {
            record["inputs"] = Value::String(STANDARD.encode(inputs));
        }
    }
}

fn mended(records: &[Value], partner: &str) -> Option<Vec<Vec<u8>>> {
    let partner: Value = serde_json::from_str(partner).ok()?;
    let all = inputs(&partner)?;
    let mut total = 0;
    for record in records {
        total += count(record)?;
    }
    if records.len() < 2 || count(&partner)? != total || total == 0 {
        return None;
    }
    let size = all.len() / total;
    let stride = size.next_multiple_of(UNIFORM_STEP);
    let mut elements = all.chunks(size);
    let mut mended = Vec::new();
    for record in records {
        let mut own = Vec::new();
        for element in elements.by_ref().take(count(record)?) {
            own.extend_from_slice(element);
            own.resize(own.len().next_multiple_of(stride), 0);
        }
        mended.push(own);
    }
    (mended.last() == inputs(records.last()?).as_ref()).then_some(mended)
}

/// Gives records that index arrays of matrices their inputs.
pub fn matrix_inputs(records: &mut [Value]) {
    let made: Option<Vec<Vec<u8>>> = records.iter().map(matrices).collect();
    let last = records.last().and_then(inputs);
    if let Some(made) = made
        && made.last() == last.as_ref()
    {
        for (record, inputs) in records.iter_mut().zip(made) {
            record["inputs"] = Value::String(STANDARD.encode(inputs));
        }
    }
}

/// The inputs of a shader that indexes an array of three matrices: the matrices, the index, padding.
fn matrices(record: &Value) -> Option<Vec<u8>> {
    let text = record.get("wgsl")?.as_str()?;
    let size = |member: &str| {
        let (before, _) = text.split_once(&format!(") {member} :"))?;
        before.rsplit_once("@size(")?.1.parse::<usize>().ok()
    };
    let (_, ty) = text.split_once("param0 : array<mat")?;
    let (shape, ty) = ty.split_once('<')?;
    let (columns, rows) = shape.split_once('x')?;
    let (columns, rows): (usize, usize) = (columns.parse().ok()?, rows.parse().ok()?);
    let mut bytes = Vec::new();
    for matrix in 0..3 {
        for column in 0..columns {
            for row in 0..rows.next_multiple_of(2) {
                let value = match row < rows {
                    true => {
                        let number = column * rows + row;
                        (100 * matrix + 10 * (number / columns) + number % columns) as f32
                    }
                    false => 0.0,
                };
                match ty.starts_with("f16") {
                    true => bytes.extend(half::f16::from_f32(value).to_le_bytes()),
                    false => bytes.extend(value.to_le_bytes()),
                }
            }
        }
    }
    bytes.resize(size("param0")?, 0);
    bytes.extend(1u32.to_le_bytes());
    bytes.resize(bytes.len() + size("padding").unwrap_or(0), 0);
    Some(bytes)
}

/// A case of the weak exchange.
pub struct WeakExchange {
    /// How many elements are exchanged among each other.
    elements: i64,
    is_mixed: bool,
    /// Where what is compared and exchanged is bound.
    pub input: u32,
    /// Where it stands which were exchanged.
    pub exchanged: u32,
}

impl WeakExchange {
    /// By the name of a case.
    pub fn of(name: &str) -> Option<WeakExchange> {
        let (_, parameters) = name.split_once(":compare_exchange_weak_")?;
        let is_storage = parameters.starts_with("storage_basic:");
        if !is_storage && !parameters.starts_with("workgroup_basic:") {
            return None;
        }
        let (_, parameters) = parameters.split_once(':')?;
        let value = |key: &str| {
            let parameter = parameters.split(';').find_map(|p| p.strip_prefix(key));
            parameter.map(|value| value.trim_matches('"'))
        };
        let number = |key: &str| value(key)?.parse::<i64>().ok();
        Some(WeakExchange {
            elements: match is_storage {
                true => number("workgroupSize=")? * number("dispatchSize=")?,
                false => number("workgroupSize=")?,
            },
            is_mixed: value("mapId=")? == "remap",
            input: if is_storage { 0 } else { 2 },
            exchanged: if is_storage { 2 } else { 1 },
        })
    }

    /// What an element is exchanged for, as the shader computes it.
    fn new_value(&self, element: i64) -> i64 {
        let id = element * 2;
        match self.is_mixed {
            true => ((id * 14957) ^ ((id * 26561) >> 2)) % self.elements,
            false => id,
        }
    }

    /// Applies the exchanges that have happened. One that must not happen, or must, leaves what no shader writes.
    pub fn mend(&self, expected: &mut [u8], exchanged: &[u8]) {
        let words = expected.chunks_exact_mut(4).zip(exchanged.chunks_exact(4));
        for (element, (word, exchanged)) in (0..).zip(words) {
            let is_exchanged = exchanged == 1u32.to_le_bytes();
            match (is_exchanged, element % 3 == 0) {
                (true, true) => {
                    word.copy_from_slice(&(self.new_value(element) as u32).to_le_bytes())
                }
                (false, false) => {}
                _ => word.copy_from_slice(&[0xff; 4]),
            }
        }
    }
}
