//! What is told of a fault besides its message: the line of the source, and the registers of the thread.

use crate::messages;
use cranelift_thisgpu::error::{Error, Errors, Place, Problem};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::sim::Fault;
use std::collections::BTreeMap;

/// Registers in a line.
const IN_LINE: usize = 6;
/// Predicates that can be false.
const PREDICATES: u8 = 7;

/// The texts that were compiled, by the names of their files.
pub type Texts = BTreeMap<String, String>;

/// Prints a fault of `object`, with the line of the source if that is one of `texts`.
pub fn print(fault: &Fault, object: &Object, texts: &Texts) {
    let mut details = excerpt(fault, object, texts).map_or(String::new(), |text| text + "\n");
    details.push_str(&registers(fault));
    messages::print_explained(fault, &details);
}

/// The line of the source that the instruction comes from, with carets.
fn excerpt(fault: &Fault, object: &Object, texts: &Texts) -> Option<String> {
    let location = fault.place.location;
    let text = texts.get(object.file_name(location.file)?)?;
    let place = Place::default().at_line(location.line);
    let error = Error::new(Problem::Syntax(String::new()), place);
    let errors = Errors::from(error).with_text(text);
    errors.iter().next()?.excerpt()
}

/// The registers that are not 0, and the predicates that are true.
fn registers(fault: &Fault) -> String {
    let named = fault
        .registers
        .iter()
        .map(|(number, value)| format!("R{number} = {value:#x}"));
    let named: Vec<String> = named.collect();
    let held: Vec<String> = (0..PREDICATES)
        .filter(|number| fault.predicates >> number & 1 != 0)
        .map(|number| format!("P{number}"))
        .collect();
    let mut text = String::new();
    for line in named.chunks(IN_LINE) {
        text.push_str(&format!("  {}\n", line.join(", ")));
    }
    let others = if named.is_empty() { "all" } else { "all other" };
    let held = match held.as_slice() {
        [] => "no predicate is true".to_owned(),
        [one] => format!("{one} is true"),
        several => format!("{} are true", several.join(", ")),
    };
    text.push_str(&format!("  {others} registers are 0; {held}\n"));
    text
}
