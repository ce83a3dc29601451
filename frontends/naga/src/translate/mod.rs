//! An entry point of a naga module as a function of CLIF.
//!
//! What comes in is a module that naga's validator accepts: expressions in an arena, statements as a tree. Every value
//! becomes a list of CLIF values, one for each scalar in it ([`values`]); what has too many scalars lies in a stack
//! slot. Pointers are no values of CLIF but [`places`], known while translating, and so functions are inlined where
//! they are called: a pointer that is passed keeps what it points to. Variables that are only accessed by constant
//! indices are variables of `FunctionBuilder`, which makes them SSA values; all others are memory.
//!
//! Order: overrides get their values (naga), the table of bindings is made, then the kernel: addresses of buffers,
//! zeroed memory, private variables, the body. There is a file for each family of expressions and statements.

mod access;
mod arithmetic;
mod atomic;
mod bits;
mod builtins;
mod compare;
mod constants;
mod control;
mod convert;
mod expression;
mod float;
mod function;
mod geometry;
mod globals;
mod math;
mod matrix;
mod memory;
mod overrides;
mod packing;
mod places;
mod reach;
mod subgroup;
mod types;
mod values;

use crate::error::{self, Error, Reason, Result, invalid};
use crate::interface::Interface;
use crate::nesting::deep;
use crate::source::{Source, chain, guarded};
use cranelift_codegen::ir;
use cranelift_frontend::FunctionBuilder;
use cranelift_thisgpu::build;
use cranelift_thisgpu::locations::Locations;
use cranelift_thisgpu::object::DataObject;
use function::Frame;
use hashbrown::HashMap;
use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use naga::proc::{GlobalCtx, Layouter};
use naga::valid::ModuleInfo;
use naga::{GlobalVariable, Handle, Module, ShaderStage, Span};
use places::Place;
use reach::Reach;

/// What becomes of an access whose index is behind the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// The index becomes that of the last element.
    #[default]
    Restrict,
    /// A read gives zeros, a write does nothing, an atomic neither reads nor writes and gives zeros.
    Zero,
    /// The launch ends with a fault that names the line: the trap [`Bounds::TRAP`]. The machine itself sees only an
    /// address outside of all memory, not an index that stays in memory of somebody else.
    Fault,
}

impl Bounds {
    /// The code of the trap of [`Bounds::Fault`]: `user2`.
    pub const TRAP: u8 = 2;
}

/// How an entry point is translated.
#[derive(Clone, Debug)]
pub struct TranslateOptions {
    /// Values of overrides, by `@id` as a decimal number or by name.
    pub constants: PipelineConstants,
    /// What becomes of indices behind the end of variables and values.
    pub bounds: Bounds,
    /// What becomes of indices behind the end of buffers.
    pub buffer_bounds: Bounds,
    /// Whether workgroup memory is zeroed first, as WGSL wants it.
    pub zero_workgroup: bool,
}

impl Default for TranslateOptions {
    fn default() -> Self {
        TranslateOptions {
            constants: PipelineConstants::default(),
            bounds: Bounds::Restrict,
            buffer_bounds: Bounds::Restrict,
            zero_workgroup: true,
        }
    }
}

/// A translated entry point.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The kernel, which has all functions that it calls in it.
    pub function: ir::Function,
    /// What a launch must give to it.
    pub interface: Interface,
    /// Constants that it refers to by their names.
    pub data: Vec<DataObject>,
    /// What the numbers at its instructions stand for.
    pub locations: Locations,
    /// Where it is that the compiler refuses, if it does: the largest variable in local memory if all are more than a
    /// thread has, otherwise the beginning of the entry point.
    pub place: error::Place,
}

/// Translates the compute entry point `entry` of a module that naga's validator has accepted.
///
/// # Errors
/// An entry point that there is not, overrides without values, and what is unsupported, with its place.
pub fn translate(
    module: &Module,
    info: &ModuleInfo,
    source: &Source,
    entry: &str,
    options: &TranslateOptions,
) -> std::result::Result<Translation, Error> {
    deep(source, || translated(module, info, source, entry, options))
}

/// [`translate`], on a thread that has room.
fn translated(
    module: &Module,
    info: &ModuleInfo,
    source: &Source,
    entry: &str,
    options: &TranslateOptions,
) -> std::result::Result<Translation, Error> {
    let nowhere = |reason| source.error(Span::UNDEFINED, reason);
    let is_entry =
        |point: &&naga::EntryPoint| point.name == entry && point.stage == ShaderStage::Compute;
    let Some(point) = module.entry_points.iter().find(is_entry) else {
        let names = module.entry_points.iter();
        let names = names.filter(|point| point.stage == ShaderStage::Compute);
        let names: Vec<_> = names.map(|point| point.name.as_str()).collect();
        let known = match names.is_empty() {
            true => "there is none".to_string(),
            false => format!("there are {}", names.join(", ")),
        };
        let message = format!("no compute entry point `{entry}`; {known}");
        return Err(nowhere(Reason::Request(message)));
    };
    let size_span = overrides::size_span(module, point);
    let (module, info) = guarded(source, || {
        let selected = Some((ShaderStage::Compute, entry));
        process_overrides(module, info, selected, &options.constants).map_err(|error| {
            let span = overrides::span(module, point, &options.constants, &error);
            source.error(span, Reason::Request(chain(&error)))
        })
    })?;
    let (module, info) = (&*module, &*info);
    let index = module.entry_points.iter().position(|p| is_entry(&p));
    let index = index.ok_or_else(|| nowhere(invalid("the entry point is gone")))?;
    let mut layouter = Layouter::default();
    let laid_out = layouter.update(module.to_ctx());
    laid_out.map_err(|error| nowhere(invalid(chain(&error))))?;
    let plan = globals::Plan::new(module, info, index, &layouter, size_span);
    let plan = plan.map_err(|(span, reason)| source.error(span, reason))?;
    let mut locations = Locations::table();
    let file = locations.file(source.name());
    let mut outcome = Ok(None);
    let mut data = Vec::new();
    let types = plan.parameter_types();
    let function = build::function(
        &plan.interface.symbol,
        &types,
        &[],
        |builder, parameters| {
            let point = &module.entry_points[index];
            let mut translator = Translator {
                module,
                info,
                types: module.to_ctx(),
                layouter: &layouter,
                source,
                options,
                builder,
                locations: &mut locations,
                file,
                call: 0,
                span: Span::UNDEFINED,
                reach: Reach::new(module, point),
                globals: HashMap::new(),
                lengths: Vec::new(),
                constants: constants::Constants::default(),
                slots: memory::Slots::default(),
                workgroup_size: point.workgroup_size,
                frame: Frame::new(&point.function, info.get_entry_point(index)),
                depth: 0,
            };
            outcome = translator
                .kernel(&plan, parameters)
                .map(|()| translator.slots.excess())
                .map_err(|reason| source.error(translator.span, reason));
            data = translator.constants.data;
        },
    );
    let span =
        outcome?.unwrap_or_else(|| function::first_span(&module.entry_points[index].function));
    Ok(Translation {
        function,
        interface: plan.interface,
        data,
        locations,
        place: source.place(span),
    })
}

/// An entry point that is being translated.
struct Translator<'a, 'b, 'f> {
    module: &'a Module,
    info: &'a ModuleInfo,
    types: GlobalCtx<'a>,
    layouter: &'a Layouter,
    source: &'a Source,
    options: &'a TranslateOptions,
    builder: &'b mut FunctionBuilder<'f>,
    locations: &'b mut Locations,
    /// The shader's number among the files of `locations`.
    file: u32,
    /// The number of the call that the current function is inlined at; 0 in the entry point.
    call: u32,
    /// What is being translated, for errors and locations.
    span: Span,
    reach: Reach,
    globals: HashMap<Handle<GlobalVariable>, Place>,
    /// The length in bytes of each buffer of the interface.
    lengths: Vec<ir::Value>,
    constants: constants::Constants,
    slots: memory::Slots,
    workgroup_size: [u32; 3],
    frame: Frame<'a>,
    /// How many blocks and calls are around.
    depth: usize,
}

impl Translator<'_, '_, '_> {
    /// Goes on at a span: what is inserted from here on comes from there.
    fn at(&mut self, span: Span) {
        if !span.is_defined() {
            return;
        }
        self.span = span;
        if let Some((line, column)) = self.source.position(span) {
            let location = (self.locations).add_inlined(self.file, line, column, self.call);
            self.builder.set_srcloc(location);
        }
    }
}
