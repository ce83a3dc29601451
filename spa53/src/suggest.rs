//! What a mistyped word may mean.

use cranelift_thisgpu::asm::{Diagnostic, Span};
use cranelift_thisgpu::unstable::text::{list, near};

/// Most suggestions of one message.
const MOST: usize = 3;

/// A message about a word that is not among those known.
pub(super) fn unknown<'a>(
    span: Span,
    message: String,
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let suggested: Vec<String> = near(word, known.clone())
        .take(MOST)
        .map(|w| format!("`.{w}`"))
        .collect();
    let message = match suggested.is_empty() {
        true => message,
        false => format!("{message}; did you mean {}?", list(&suggested)),
    };
    let expected = known.into_iter().map(|w| format!(".{w}"));
    Diagnostic::new(span, message).expect(expected)
}
