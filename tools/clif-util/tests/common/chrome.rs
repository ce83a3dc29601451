//! The rules of the Chrome trace format, for traces that have complete slices and metadata.

use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A slice of a valid trace.
#[derive(Clone, Debug)]
pub struct Slice {
    pub row: (u64, u64),
    pub name: String,
    pub category: String,
    pub start: u64,
    pub duration: u64,
    pub arguments: Map<String, Value>,
}

impl Slice {
    pub fn end(&self) -> u64 {
        self.start + self.duration
    }
}

/// A valid trace.
#[derive(Debug)]
pub struct Trace {
    /// In the order of the file.
    pub slices: Vec<Slice>,
    /// The names of rows.
    pub rows: BTreeMap<(u64, u64), String>,
    pub totals: Map<String, Value>,
}

/// Reads a trace; what breaks a rule of the format is an error.
pub fn read(text: &str) -> Result<Trace, String> {
    let whole: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let whole = whole.as_object().ok_or("the file is no object")?;
    keys(whole, &["traceEvents", "displayTimeUnit", "otherData"], &[])?;
    if !["ms", "ns"]
        .map(Some)
        .contains(&whole["displayTimeUnit"].as_str())
    {
        return Err("displayTimeUnit is neither ms nor ns".to_owned());
    }
    let totals = whole["otherData"]
        .as_object()
        .ok_or("otherData is no object")?;
    let events = whole["traceEvents"].as_array().ok_or("no list of events")?;
    let mut trace = Trace {
        slices: Vec::new(),
        rows: BTreeMap::new(),
        totals: totals.clone(),
    };
    let mut processes = BTreeSet::new();
    let mut places = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        let read = read_event(event, &mut trace, &mut processes, &mut places);
        read.map_err(|reason| format!("event {index}: {reason}: {event}"))?;
    }
    for slice in &trace.slices {
        if !trace.rows.contains_key(&slice.row) || !processes.contains(&slice.row.0) {
            return Err(format!("nothing names the row of {slice:?}"));
        }
    }
    nested(&trace.slices)?;
    Ok(trace)
}

/// All of `required` and some of `optional`.
fn keys(object: &Map<String, Value>, required: &[&str], optional: &[&str]) -> Result<(), String> {
    let missing = required.iter().find(|key| !object.contains_key(**key));
    let unknown = object.keys().find(|key| {
        let key = &key.as_str();
        !required.contains(key) && !optional.contains(key)
    });
    match (missing, unknown) {
        (Some(key), _) => Err(format!("without {key}")),
        (None, Some(key)) => Err(format!("with unknown {key}")),
        (None, None) => Ok(()),
    }
}

fn read_event(
    event: &Value,
    trace: &mut Trace,
    processes: &mut BTreeSet<u64>,
    places: &mut BTreeSet<(u64, u64)>,
) -> Result<(), String> {
    let event = event.as_object().ok_or("no object")?;
    let phase = event.get("ph").and_then(Value::as_str).ok_or("no phase")?;
    match phase {
        "X" => keys(
            event,
            &["name", "cat", "ph", "ts", "dur", "pid", "tid", "args"],
            &[],
        )?,
        "M" => keys(event, &["name", "ph", "pid", "tid", "args"], &["ts"])?,
        _ => return Err("unknown phase".to_owned()),
    }
    let text = |key: &str| {
        let text = event[key].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or(format!("{key} is no name"))
    };
    let number = |key: &str| {
        let number = event[key].as_u64();
        number.ok_or(format!("{key} is no whole number from 0 on"))
    };
    let row = (number("pid")?, number("tid")?);
    let arguments = event["args"].as_object().ok_or("args is no object")?;
    let argument = |key: &str| keys(arguments, &[key], &[]).map(|()| &arguments[key]);
    let once = |new: bool| {
        if new {
            Ok(())
        } else {
            Err("for the second time".to_owned())
        }
    };
    if phase == "X" {
        trace.slices.push(Slice {
            row,
            name: text("name")?,
            category: text("cat")?,
            start: number("ts")?,
            duration: number("dur")?,
            arguments: arguments.clone(),
        });
        return Ok(());
    }
    match text("name")?.as_str() {
        "process_name" => {
            argument("name")?.as_str().ok_or("no name")?;
            once(processes.insert(row.0))
        }
        "thread_name" => {
            let name = argument("name")?.as_str().ok_or("no name")?;
            once(trace.rows.insert(row, name.to_owned()).is_none())
        }
        "thread_sort_index" => {
            argument("sort_index")?.as_i64().ok_or("no whole number")?;
            once(places.insert(row))
        }
        _ => Err("unknown metadata".to_owned()),
    }
}

/// Slices of a row lie inside of each other or do not touch.
fn nested(slices: &[Slice]) -> Result<(), String> {
    let mut sorted: Vec<&Slice> = slices.iter().collect();
    sorted.sort_by_key(|slice| (slice.row, slice.start, Reverse(slice.duration)));
    let mut open: Vec<&Slice> = Vec::new();
    for slice in sorted {
        open.retain(|outer| outer.row == slice.row && outer.end() > slice.start);
        if let Some(outer) = open.last()
            && outer.end() < slice.end()
        {
            return Err(format!("{slice:?} overlaps {outer:?}"));
        }
        open.push(slice);
    }
    Ok(())
}
