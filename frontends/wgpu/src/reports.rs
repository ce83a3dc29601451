//! What the simulator says of kernels: findings, hazards, faults.
//!
//! wgpu has no place for a text when a device is lost, and none at all for a finding; so they are kept here.

use cranelift_thisgpu::launch::{Fault, Finding, Hazard};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many messages are kept; later ones are only counted.
const MOST: usize = 1000;

/// Something that the simulator said of a pipeline. It prints with the pipeline's label.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message {
    /// The checking simulator found a mistake; the dispatch went on.
    Finding {
        /// The pipeline.
        pipeline: String,
        /// What, and where.
        finding: Box<Finding>,
    },
    /// The timed simulator found an error of the compiler; the dispatch went on.
    Hazard {
        /// The pipeline.
        pipeline: String,
        /// What, and where.
        hazard: Box<Hazard>,
    },
    /// A kernel ended with a fault; the device of wgpu is lost.
    Fault {
        /// The pipeline.
        pipeline: String,
        /// What, and where.
        fault: Box<Fault>,
    },
    /// A dispatch or a copy that the device refuses; the device of wgpu is lost.
    Refusal {
        /// The pipeline; none of a copy.
        pipeline: Option<String>,
        /// Why.
        text: String,
    },
}

impl Message {
    /// The label of the pipeline.
    pub fn pipeline(&self) -> Option<&str> {
        match self {
            Message::Finding { pipeline, .. }
            | Message::Hazard { pipeline, .. }
            | Message::Fault { pipeline, .. } => Some(pipeline),
            Message::Refusal { pipeline, .. } => pipeline.as_deref(),
        }
    }

    /// The line of the shader.
    pub fn line(&self) -> Option<u32> {
        let line = match self {
            Message::Finding { finding, .. } => finding.place.location.line,
            Message::Hazard { hazard, .. } => hazard.place.location.line,
            Message::Fault { fault, .. } => fault.place.location.line,
            Message::Refusal { .. } => 0,
        };
        (line != 0).then_some(line)
    }

    /// The line of the other place that takes part in a finding: the earlier access of a race, or the load of what
    /// nobody wrote.
    pub fn other_line(&self) -> Option<u32> {
        match self {
            Message::Finding { finding, .. } => finding.other.as_ref().map(|p| p.location.line),
            _ => None,
        }
    }

    /// Whether the device of wgpu is lost by it.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Message::Fault { .. } | Message::Refusal { .. })
    }

    /// Whether it says the same of the same instructions.
    fn repeats(&self, earlier: &Message) -> bool {
        let same = match (self, earlier) {
            (Message::Finding { finding, .. }, Message::Finding { finding: other, .. }) => {
                let pc = |finding: &Finding| finding.other.as_ref().map(|place| place.pc);
                std::mem::discriminant(&finding.kind) == std::mem::discriminant(&other.kind)
                    && finding.place.pc == other.place.pc
                    && finding.place.kernel == other.place.kernel
                    && pc(finding) == pc(other)
            }
            (Message::Hazard { hazard, .. }, Message::Hazard { hazard: other, .. }) => {
                hazard.place.pc == other.place.pc && hazard.earlier.0 == other.earlier.0
            }
            _ => false,
        };
        same && self.pipeline() == earlier.pipeline()
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pipeline) = self.pipeline() {
            write!(f, "pipeline `{pipeline}`: ")?;
        }
        match self {
            Message::Finding { finding, .. } => write!(f, "{finding}"),
            Message::Hazard { hazard, .. } => write!(f, "{hazard}"),
            Message::Fault { fault, .. } => write!(f, "{fault}"),
            Message::Refusal { text, .. } => f.write_str(text),
        }
    }
}

/// Who is told of messages.
type Listener = Box<dyn Fn(&Message) + Send + Sync>;

/// The messages of an instance's devices. Clones are the same list.
#[derive(Clone, Default)]
pub struct Reports {
    state: Arc<Mutex<State>>,
    listener: Arc<Mutex<Option<Listener>>>,
}

#[derive(Default)]
struct State {
    kept: Vec<Message>,
    more: u64,
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.state().kept).finish()
    }
}

impl Reports {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listen(&self, listener: Listener) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// What was said until now, in its order. A mistake that several dispatches of a pipeline make at the same
    /// instructions is there once; a thousand messages are kept.
    pub fn messages(&self) -> Vec<Message> {
        self.state().kept.clone()
    }

    /// The same; it is forgotten here.
    pub fn take(&self) -> Vec<Message> {
        let mut state = self.state();
        state.more = 0;
        std::mem::take(&mut state.kept)
    }

    /// How many messages were said and not kept, because there were too many.
    pub fn omitted(&self) -> u64 {
        self.state().more
    }

    /// Logs a message, tells the listener, and keeps it.
    pub(crate) fn say(&self, message: Message) {
        let mut state = self.state();
        if !message.is_fatal() && state.kept.iter().any(|earlier| message.repeats(earlier)) {
            return;
        }
        match state.kept.len() < MOST || message.is_fatal() {
            true => state.kept.push(message.clone()),
            false => {
                state.more += 1;
                return;
            }
        }
        drop(state);
        match message.is_fatal() {
            true => log::error!("{message}"),
            false => log::warn!("{message}"),
        }
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = &*listener {
            listener(&message);
        }
    }
}
