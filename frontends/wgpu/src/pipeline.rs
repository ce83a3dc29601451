//! Shader modules, and pipelines, which are compiled and loaded when they are created.

use crate::options::Options;
use cranelift_thisgpu::Device;
use std::sync::Arc;
use thisgpu_naga::{Pipeline, Reason, Shader, TranslateOptions};
use wgpu_hal as hal;
use wgpu_types as wgt;

/// A module that naga has read and wgpu-core has validated.
#[derive(Clone, Debug)]
pub struct ShaderModule {
    shader: Arc<Shader>,
    /// Whether indices behind the end are to be looked for.
    bounds_checks: bool,
}

impl ShaderModule {
    pub(crate) fn new(
        desc: &hal::ShaderModuleDescriptor<'_>,
        input: hal::ShaderInput<'_>,
    ) -> Result<ShaderModule, hal::ShaderError> {
        let hal::ShaderInput::Naga(naga) = input else {
            let message = "unsupported: shaders that naga has not read".to_string();
            return Err(hal::ShaderError::Compilation(message));
        };
        let label = desc.label.filter(|label| !label.is_empty());
        let name = label.unwrap_or("shader");
        let text = naga.debug_source.map(|source| source.source_code);
        let module = naga.module.into_owned();
        let shader = Shader::validated(name, module, naga.info, text.as_deref());
        let shader = shader.map_err(|error| hal::ShaderError::Compilation(error.to_string()))?;
        Ok(ShaderModule {
            shader: Arc::new(shader),
            bounds_checks: desc.runtime_checks.bounds_checks,
        })
    }
}

/// A compiled entry point on the device. Clones are the same.
#[derive(Clone)]
pub struct ComputePipeline {
    /// What messages call it.
    pub(crate) label: Arc<str>,
    pub(crate) kernel: Arc<Pipeline>,
}

impl std::fmt::Debug for ComputePipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ComputePipeline").field(&self.label).finish()
    }
}

impl ComputePipeline {
    pub(crate) fn new(
        device: &Device,
        options: &Options,
        label: Option<&str>,
        stage: &hal::ProgrammableStage<'_, ShaderModule>,
    ) -> Result<ComputePipeline, hal::PipelineError> {
        let bounds = options.bounds_for(stage.module.bounds_checks);
        let translation = stage.module.shader.translate(
            stage.entry_point,
            &TranslateOptions {
                constants: stage.constants.clone(),
                bounds,
                buffer_bounds: bounds,
                zero_workgroup: stage.zero_initialize_workgroup_memory,
            },
        );
        let compiled = translation.and_then(|it| it.compile(options.compiler_options()));
        let compiled = compiled.map_err(|error| {
            let text = error.to_string();
            match error.reason {
                Reason::Request(_) => hal::PipelineError::PipelineConstants(COMPUTE, text),
                _ => hal::PipelineError::Linkage(COMPUTE, text),
            }
        })?;
        let kernel = compiled.load(device);
        let kernel =
            kernel.map_err(|error| hal::PipelineError::Linkage(COMPUTE, error.to_string()))?;
        let label = label.filter(|label| !label.is_empty());
        Ok(ComputePipeline {
            label: label.unwrap_or(stage.entry_point).into(),
            kernel: Arc::new(kernel),
        })
    }
}

const COMPUTE: wgt::ShaderStages = wgt::ShaderStages::COMPUTE;
