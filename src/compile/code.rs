//! Compiled code: what it needs of the machine, and its reports.

use super::Warning;
use super::resources::KernelResources;
use crate::clif::source::SourceFile;
use crate::error::{Error, Place, Problem};
use crate::object::{Object, ObjectFunction};
use crate::remarks::Remark;
use crate::report::model::FunctionCycles;
use crate::text::did_you_mean;

/// Compiled code, ready to be written to a file or loaded onto a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    object: Object,
    kernels: Vec<KernelResources>,
    remarks: Vec<Remark>,
    cycles: Vec<FunctionCycles>,
    warnings: Vec<Warning>,
}

/// A kernel in [`Code`].
#[derive(Clone, Copy, Debug)]
pub struct KernelRef<'a> {
    function: &'a ObjectFunction,
    resources: &'a KernelResources,
}

impl Code {
    /// The code of an object: all that it answers but remarks and cycles, which are reports of the compilation.
    pub fn of_object(object: Object) -> Self {
        Self {
            kernels: KernelResources::of_object(&object),
            warnings: Warning::of_unresolved(&object),
            remarks: Vec::new(),
            cycles: Vec::new(),
            object,
        }
    }

    /// The same code with the reports of its compilation.
    pub(super) fn with_reports(self, remarks: Vec<Remark>, cycles: Vec<FunctionCycles>) -> Self {
        Self {
            remarks,
            cycles,
            ..self
        }
    }

    /// The same code with what is known of the text that it was made of: its name, and its warnings.
    pub(super) fn with_text(mut self, file: &SourceFile) -> Self {
        let found = std::mem::take(&mut self.warnings).into_iter();
        let found = found.map(|mut warning| {
            warning.place.file = Some(file.name.clone());
            warning
        });
        self.warnings = file.warnings.iter().cloned().chain(found).collect();
        self
    }

    /// What is suspicious: names that nothing here defines, and comments of a text that are nearly kernel marks.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// How long the blocks of each function take by the scheduler's model ([`crate::report::model`]), if it was asked
    /// for ([`super::Compiler::model_cycles`]).
    pub fn cycles(&self) -> &[FunctionCycles] {
        &self.cycles
    }

    /// What could have been done and was not, function by function, if it was asked for
    /// ([`super::Compiler::collect_remarks`]).
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// The object: what a device loads.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The object, by value.
    pub fn into_object(self) -> Object {
        self.object
    }

    /// The kernel of a name.
    ///
    /// # Errors
    /// When there is none, with the kernels there are.
    pub fn kernel(&self, name: &str) -> Result<KernelRef<'_>, Error> {
        let wanted = name.trim_start_matches('%');
        let resources = self.kernels.iter().find(|kernel| kernel.name == wanted);
        let found = resources.zip(self.object.function(wanted));
        found
            .map(|(resources, function)| KernelRef {
                function,
                resources,
            })
            .ok_or_else(|| {
                let names: Vec<&str> = self
                    .kernels
                    .iter()
                    .map(|kernel| kernel.name.as_str())
                    .collect();
                let known = if names.is_empty() {
                    "none".to_owned()
                } else {
                    names.join(", ")
                };
                Error::new(
                    Problem::Kernel(format!(
                        "there is no kernel `{wanted}`; kernels: {known}{}",
                        did_you_mean(wanted, names)
                    )),
                    Place::default(),
                )
            })
    }

    /// What each kernel needs, in the order of the code.
    pub fn kernels(&self) -> &[KernelResources] {
        &self.kernels
    }

    /// The ELF file. The same code always gives the same bytes.
    ///
    /// # Errors
    /// What the file format cannot hold.
    pub fn to_elf(&self) -> Result<Vec<u8>, Error> {
        self.object
            .write()
            .map_err(|error| Error::new(Problem::Limit(error.to_string()), Place::default()))
    }
}

impl AsRef<Object> for Code {
    fn as_ref(&self) -> &Object {
        &self.object
    }
}

impl<'a> KernelRef<'a> {
    /// What a launch of it needs.
    pub fn resources(&self) -> &'a KernelResources {
        self.resources
    }

    /// Its instructions and metadata.
    pub fn function(&self) -> &'a ObjectFunction {
        self.function
    }
}
