//! Loading: an object's data goes to device memory, its functions get code addresses, relocations are filled in.

use super::device::{Buffer, Device};
use super::error::DeviceError;
use crate::isa::encode::WORD_BYTES;
use crate::object::{DataContents, LinkError, Object};
use crate::sim::Image;
use crate::sim::image::{Function, Line};
use std::collections::BTreeMap;

/// Linked code and the memory of its data objects, in the object's order.
pub struct Linked {
    /// What the driver loads.
    pub image: Image,
    /// Code address of each function.
    pub functions: BTreeMap<String, u32>,
    /// The data objects.
    pub data: Vec<(String, Buffer)>,
}

/// Links an object for a device.
///
/// # Errors
/// All symbols without a value; no room for data.
pub fn link(device: &Device, object: &Object) -> Result<Linked, DeviceError> {
    let mut functions = BTreeMap::new();
    let mut image = Image {
        constants: object.constants.clone(),
        ..Image::default()
    };
    let mut address = 0;
    for function in &object.functions {
        functions.insert(function.name.clone(), address);
        image.functions.push(Function {
            name: function.name.clone(),
            address,
        });
        image.lines.extend(function.lines.iter().map(|l| Line {
            address: address + l.offset,
            line: l.line,
        }));
        address += (function.words.len() * WORD_BYTES) as u32;
    }
    let mut data = Vec::new();
    for item in &object.data {
        data.push((item.name.clone(), device.allocate(item.contents.len())?));
    }
    let symbols = |name: &str| {
        let code = functions.get(name).map(|a| u64::from(*a));
        code.or_else(|| data.iter().find(|d| d.0 == name).map(|d| d.1.address()))
    };
    let mut errors: Vec<LinkError> = Vec::new();
    for function in &object.functions {
        let mut linked = function.clone();
        match linked.link(u64::from(functions[&function.name]), &symbols) {
            Ok(()) => image.words.append(&mut linked.words),
            Err(mut list) => errors.append(&mut list),
        }
    }
    for (item, (name, buffer)) in object.data.iter().zip(&data) {
        let mut bytes = match &item.contents {
            DataContents::Bytes(bytes) => bytes.clone(),
            DataContents::Zeros(count) => vec![0; *count as usize],
        };
        for relocation in &item.relocations {
            if let Err(error) = relocation.link_data(name, &mut bytes, &symbols) {
                errors.push(error);
            }
        }
        buffer.write(&bytes)?;
    }
    if errors.is_empty() {
        Ok(Linked {
            image,
            functions,
            data,
        })
    } else {
        Err(DeviceError::Link(errors))
    }
}

impl AsRef<Object> for Object {
    fn as_ref(&self) -> &Object {
        self
    }
}
