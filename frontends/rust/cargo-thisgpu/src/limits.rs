//! What ends a launch, as the command line says it.

use clap::Args;
use thisgpu_build::SimConfig;

#[derive(Args, Clone, Debug)]
pub struct Limits {
    /// Instructions that a warp may issue [default: 16777216; 2097152 with checks].
    #[arg(long, value_name = "COUNT")]
    budget: Option<u64>,
    /// Instructions that blocks may issue together without ending [default: 134217728; 4194304 with checks].
    #[arg(long, value_name = "COUNT")]
    launch_budget: Option<u64>,
    /// Bytes of a thread's stack, up to 4 MiB.
    #[arg(long, value_name = "BYTES", default_value_t = SimConfig::default().stack_bytes)]
    stack: u32,
}

impl Limits {
    /// A simulator with these limits, and checks or none.
    pub fn config(&self, check: bool) -> SimConfig {
        let defaults = SimConfig::default();
        SimConfig {
            check,
            budget: self.budget.unwrap_or(defaults.budget),
            launch_budget: self.launch_budget.unwrap_or(defaults.launch_budget),
            stack_bytes: self.stack,
            ..defaults
        }
    }
}
