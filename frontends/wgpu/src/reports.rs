//! What the simulator says of kernels: findings, hazards, faults.
//!
//! wgpu has no place for a text when a device is lost, and none at all for a finding; so they are kept here.

use cranelift_thisgpu::launch::{Fault, Finding, Hazard};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many messages are kept.
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
            Message::Finding { finding, .. } => {
                let line = finding.other.as_ref().map(|place| place.location.line);
                line.filter(|&line| line != 0)
            }
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

/// The messages of a device, or of all devices of an instance. Clones are the same list.
#[derive(Clone, Default)]
pub struct Reports {
    list: Arc<Mutex<List>>,
    /// The list of the instance, of a device's messages.
    all: Option<Arc<Mutex<List>>>,
    listener: Arc<Mutex<Option<Listener>>>,
}

#[derive(Default)]
struct List {
    kept: Vec<Message>,
    omitted: u64,
}

impl List {
    /// Keeps a message, and says whether somebody is to hear it: not one that is there, nor one that there is no place
    /// for. A fatal one takes the place of the last, if there is none.
    fn keep(&mut self, message: &Message) -> bool {
        let is_fatal = message.is_fatal();
        if !is_fatal && self.kept.iter().any(|earlier| message.repeats(earlier)) {
            return false;
        }
        if self.kept.len() == MOST {
            self.omitted += 1;
            if !is_fatal {
                return false;
            }
            self.kept.pop();
        }
        self.kept.push(message.clone());
        true
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list().kept).finish()
    }
}

/// Logs a text, or prints it where no logger takes it: many programs have none.
pub(crate) fn log_or_print(level: log::Level, text: &dyn fmt::Display) {
    log::log!(level, "{text}");
    if !log::log_enabled!(level) {
        eprintln!("thisgpu: {text}");
    }
}

/// What is behind a mutex. Whoever panicked with it left it whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reports {
    /// The messages of a new device of the instance whose messages these are.
    pub(crate) fn of_device(&self) -> Reports {
        Reports {
            list: Arc::default(),
            all: Some(self.list.clone()),
            listener: self.listener.clone(),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        locked(&self.list)
    }

    pub(crate) fn listen(&self, listener: Listener) {
        *locked(&self.listener) = Some(listener);
    }

    /// What was said until now, in its order. A mistake that several dispatches of a pipeline make at the same
    /// instructions is there once; a thousand messages are kept.
    pub fn messages(&self) -> Vec<Message> {
        self.list().kept.clone()
    }

    /// The same; it is forgotten here.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.list()).kept
    }

    /// How many messages were not kept, because there were too many.
    pub fn omitted(&self) -> u64 {
        self.list().omitted
    }

    /// Keeps a message; logs it and tells the listener if it is a new one of the device.
    pub(crate) fn say(&self, message: Message) {
        if let Some(all) = &self.all {
            locked(all).keep(&message);
        }
        if self.list().keep(&message) {
            self.tell(&message);
        }
    }

    fn tell(&self, message: &Message) {
        let level = match message.is_fatal() {
            true => log::Level::Error,
            false => log::Level::Warn,
        };
        match &*locked(&self.listener) {
            Some(listener) => {
                log::log!(level, "{message}");
                listener(message);
            }
            None => log_or_print(level, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(number: usize) -> Message {
        Message::Refusal {
            pipeline: None,
            text: number.to_string(),
        }
    }

    #[test]
    fn the_last_fatal_message_is_kept() {
        let all = Reports::default();
        all.listen(Box::new(|_| ()));
        let device = all.of_device();
        (0..MOST + 2).for_each(|number| device.say(refusal(number)));
        for reports in [&device, &all] {
            let messages = reports.messages();
            assert_eq!((messages.len(), reports.omitted()), (MOST, 2));
            assert_eq!(messages[MOST - 1].to_string(), (MOST + 1).to_string());
        }
        assert_eq!(device.take().len(), MOST);
        assert_eq!((device.omitted(), all.omitted()), (0, 2));
    }
}
