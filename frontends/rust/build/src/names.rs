//! Names of functions as the Rust source has them, in what a launch says.

use cranelift_thisgpu::{DeviceError, Fault, Report};
use std::iter::once;

/// A symbol as the source says it.
pub fn said(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}

/// Says the functions of an outcome so.
pub fn say_in(outcome: &mut Result<Report, DeviceError>) {
    match outcome {
        Ok(report) => in_report(report),
        Err(DeviceError::Fault { fault, report }) => {
            in_fault(fault);
            in_report(report);
        }
        Err(_) => {}
    }
}

fn in_report(report: &mut Report) {
    for finding in &mut report.findings {
        let places = once(&mut finding.place).chain(&mut finding.other);
        places.for_each(|place| say(&mut place.function));
    }
    report.fault.iter_mut().for_each(in_fault);
}

fn in_fault(fault: &mut Fault) {
    let waiting = fault.waits.iter_mut().map(|wait| &mut wait.place);
    let places = once(&mut fault.place).chain(waiting);
    let functions = places.map(|place| &mut place.function);
    let calling = fault.calls.iter_mut().map(|call| &mut call.function);
    functions.chain(calling).for_each(say);
}

fn say(function: &mut Option<String>) {
    if let Some(symbol) = function {
        *symbol = said(symbol);
    }
}
