//! Loading: an object's data goes to device memory, its functions get code addresses, relocations are filled in.

use super::buffer::Buffer;
use super::device::Device;
use super::error::DeviceError;
use crate::abi::{ALLOCATION_ALIGN, SHARED_WINDOW};
use crate::launch::Image;
use crate::launch::Origin;
use crate::launch::image::{Function, Line};
use crate::object::{
    DataContents, LinkError, LinkErrors, Object, StaticPlace, Symbols, suggestion,
};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Linked code and the memory of its data objects, in the object's order.
pub struct Linked {
    /// What the driver loads.
    pub image: Image,
    /// Code address of each function.
    pub functions: BTreeMap<String, u32>,
    /// The data objects.
    pub data: Vec<(String, Buffer)>,
}

/// The word at code address 0, before [`crate::object::CODE_START`]: a call of a null pointer is a fault.
const NOT_AN_INSTRUCTION: u128 = 0;

/// Links an object for a device.
///
/// # Errors
/// All symbols without a value; kernels that do not keep their launch bounds; no room for data.
pub fn link(device: &Device, object: &Object) -> Result<Linked, DeviceError> {
    let mut functions = BTreeMap::new();
    let mut image = Image {
        constants: object.constants.clone(),
        files: object.files.clone(),
        calls: object.calls.clone(),
        types: object.types.clone(),
        words: vec![NOT_AN_INSTRUCTION],
        ..Image::default()
    };
    for (function, address) in object.functions.iter().zip(object.code_addresses()) {
        let address = address as u32;
        functions.insert(function.name.clone(), address);
        image.functions.push(Function {
            name: function.name.clone(),
            address,
            redzones: function.redzones.clone(),
            values: function.values.clone(),
            scopes: function.scopes.clone(),
        });
        image.lines.extend(function.lines.iter().map(|l| Line {
            address: address.saturating_add(l.offset),
            location: l.location,
        }));
    }
    let mut data = Vec::new();
    for item in &object.data {
        if u64::from(item.align) > ALLOCATION_ALIGN {
            return Err(DeviceError::DataAlignment {
                name: item.name.clone(),
                align: item.align,
            });
        }
        let origin = Origin::Data(item.name.clone());
        let buffer = device
            .allocate_for(item.contents.len(), origin)
            .map_err(|error| DeviceError::Data {
                name: item.name.clone(),
                error: Box::new(error),
            })?;
        data.push((item.name.clone(), buffer));
    }
    let places: HashMap<&str, u64> = data
        .iter()
        .map(|(name, buffer)| (name.as_str(), buffer.address()))
        .collect();
    let symbols = Placed {
        functions: &functions,
        data: &places,
    };
    let beyond = object.beyond_bounds().into_iter();
    let mut errors: Vec<LinkError> = beyond.map(LinkError::Bounds).collect();
    for function in &object.functions {
        let mut linked = function.clone();
        match linked.link(u64::from(functions[&function.name]), &symbols) {
            Ok(()) => image.words.append(&mut linked.words),
            Err(list) => errors.extend(list),
        }
    }
    for (item, (name, buffer)) in object.data.iter().zip(&data) {
        match &item.contents {
            DataContents::Bytes(bytes) => buffer.write(bytes)?,
            DataContents::Zeros(_) => buffer.clear()?,
        }
        for relocation in &item.relocations {
            match relocation.link_data(name, buffer.len(), &symbols) {
                Ok(address) => buffer.write_at(relocation.offset.into(), &address)?,
                Err(error) => errors.push(error),
            }
        }
        if !item.writable {
            device.driver().protect(buffer.address())?;
        }
    }
    LinkErrors::finish(errors, ()).map_err(DeviceError::Link)?;
    image.statics.extend(object.statics.iter().filter_map(|of| {
        let address = match &of.place {
            StaticPlace::Data(symbol) => *places.get(symbol.as_str())?,
            StaticPlace::Shared { offset, .. } => SHARED_WINDOW + u64::from(*offset),
        };
        Some((of.clone(), address))
    }));
    drop(places);
    Ok(Linked {
        image,
        functions,
        data,
    })
}

/// The addresses of an object's symbols.
struct Placed<'a> {
    functions: &'a BTreeMap<String, u32>,
    data: &'a HashMap<&'a str, u64>,
}

impl Symbols for Placed<'_> {
    fn address(&self, name: &str) -> Option<u64> {
        let code = self.functions.get(name).map(|a| u64::from(*a));
        code.or_else(|| self.data.get(name).copied())
    }

    fn remedy(&self, name: &str) -> String {
        let code = self.functions.keys().map(String::as_str);
        let known: BTreeSet<&str> = code.chain(self.data.keys().copied()).collect();
        suggestion(name, known)
    }
}
