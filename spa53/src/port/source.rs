//! A text of both sets: which lines are SPA 5.3's, and what the others name.

use super::super::read::{self, ReadInstruction};
use super::Named;
use cranelift_thisgpu::asm::{self, Assembly, Diagnostic, Span};
use cranelift_thisgpu::unstable::asm::lexer::{self, Token, TokenKind};
use cranelift_thisgpu::unstable::isa::{Control, PInst, PReg, Scoreboard, decode};
use cranelift_thisgpu::unstable::text::line_starts;
use hashbrown::HashSet;

/// An instruction of SPA 5.3 in the text.
pub(super) struct Statement {
    pub(super) read: ReadInstruction,
    /// From its first token to its last, the `;` included.
    span: Span,
}

/// A text and what it is made of.
pub(super) struct Source<'t> {
    pub(super) text: &'t str,
    pub(super) statements: Vec<Statement>,
    /// What is wrong, and what is suspicious.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Registers that it names.
    pub(super) named: Named,
    /// Scoreboards that it uses, a bit each.
    scoreboards: u8,
    /// Tokens of the lines that are not SPA 5.3's, labels left out.
    others: Vec<Vec<Token<'t>>>,
}

impl<'t> Source<'t> {
    /// Reads a text.
    pub(super) fn read(file: &str, text: &'t str) -> Source<'t> {
        let mut source = Source {
            text,
            statements: Vec::new(),
            diagnostics: Vec::new(),
            named: Named::default(),
            scoreboards: 0,
            others: Vec::new(),
        };
        let tokens = lexer::tokens(text, &mut source.diagnostics);
        let mut spans = Vec::new();
        for line in tokens.split_inclusive(|t| t.kind == TokenKind::Newline) {
            let Some((newline, line)) = line.split_last() else {
                continue;
            };
            let line = read::behind_labels(line);
            let (Some(first), Some(last)) = (line.first(), line.last()) else {
                continue;
            };
            if read::is_predecessors(line) {
                spans.push(first.span.to(last.span));
                source.predecessor(line, newline.span.start);
            } else {
                source.others.push(line.to_vec());
            }
        }
        source.assemble(file, &spans);
        source
    }

    fn predecessor(&mut self, line: &[Token<'t>], end: usize) {
        let span = line[0].span.to(line[line.len() - 1].span);
        match read::read(line, end) {
            Ok(read) => {
                self.diagnostics.extend(read.warnings.iter().cloned());
                self.named.0.extend(read.instruction.registers());
                self.scoreboards |= scoreboards(read.control);
                self.statements.push(Statement { read, span });
            }
            Err(errors) => self.diagnostics.extend(errors),
        }
    }

    /// Assembles the other lines, each in its place.
    fn assemble(&mut self, file: &str, spans: &[Span]) {
        let mut rest = self.text.as_bytes().to_vec();
        for span in spans {
            let place = &mut rest[span.start..span.end];
            // A comment within the instruction may have several lines.
            let others = place.iter_mut().filter(|byte| **byte != b'\n');
            others.for_each(|byte| *byte = b' ');
            // Every mnemonic is longer than that.
            place[..3].copy_from_slice(b"NOP");
        }
        let Ok(rest) = String::from_utf8(rest) else {
            return;
        };
        match asm::assemble(file, &rest) {
            Ok(assembly) => {
                self.others_name(&assembly);
                self.diagnostics.extend(assembly.warnings.diagnostics);
            }
            Err(errors) => {
                let known: HashSet<Span> = self.diagnostics.iter().map(|e| e.span).collect();
                let new = errors.diagnostics.into_iter();
                // The lexer's have been reported.
                let new = new.filter(|e| !known.contains(&e.span));
                self.diagnostics.extend(new);
            }
        }
    }

    fn others_name(&mut self, assembly: &Assembly) {
        let words = assembly.object.functions.iter().flat_map(|f| &f.words);
        for (inst, control) in words.filter_map(|word| decode(*word).ok()) {
            self.named
                .0
                .extend(inst.entries().map(|(_, register)| register));
            self.scoreboards |= scoreboards(control);
        }
    }

    /// A scoreboard that the text does not use.
    pub(super) fn spare_scoreboard(&self) -> Option<Scoreboard> {
        let mut all = (0u8..).map_while(Scoreboard::new);
        all.find(|board| self.scoreboards >> board.number() & 1 == 0)
    }

    /// Errors for targets that count instructions, which there are more of afterwards.
    pub(super) fn relative_targets(&self) -> Vec<Diagnostic> {
        let relative = |tokens: &[Token<'_>]| match tokens {
            [
                Token {
                    kind: TokenKind::Mark('.'),
                    span,
                },
                Token {
                    kind: TokenKind::Mark('+' | '-'),
                    ..
                },
                number,
            ] => Some(span.to(number.span)),
            _ => None,
        };
        let spans = self.others.iter().flat_map(|line| line.windows(3));
        spans
            .filter_map(relative)
            .map(|span| {
                let message = "this target counts instructions, of which there are more afterwards";
                Diagnostic::new(span, message).expect(["a label"])
            })
            .collect()
    }

    /// Errors for directives that count what there is more of afterwards: registers up to `highest`, and where `longer`
    /// instructions of loops.
    pub(super) fn counts(&self, highest: Option<PReg>, longer: bool) -> Vec<Diagnostic> {
        let wrong = |line: &Vec<Token<'t>>| {
            let TokenKind::Word(directive) = line.first()?.kind else {
                return None;
            };
            let number = line.iter().find_map(|token| match token.kind {
                TokenKind::Number(text) => text.parse::<u32>().ok(),
                _ => None,
            });
            let why = match directive {
                ".registers" => {
                    let highest = highest?;
                    let few = number.is_none_or(|n| n <= highest.number().into());
                    few.then(|| format!("{highest} is used"))
                }
                ".loops" => longer.then(|| "loops have more instructions".to_owned()),
                _ => None,
            };
            let span = line[0].span.to(line[line.len() - 1].span);
            let message = format!("`{directive}` would be wrong: {} afterwards", why?);
            Some(Diagnostic::new(span, message).note("leave it out, or correct it"))
        };
        self.others.iter().filter_map(wrong).collect()
    }

    /// The lines that are not SPA 5.3's, counted from 1, without labels.
    pub(super) fn copied(&self) -> Vec<(u32, String)> {
        let starts = line_starts(self.text);
        let line = |tokens: &Vec<Token<'t>>| {
            let (first, last) = (tokens.first()?, tokens.last()?);
            let text = &self.text[first.span.start..last.span.end];
            let text = text.trim_end_matches([';', ' ']).to_owned();
            let number = starts.partition_point(|s| *s <= first.span.start) as u32;
            (!text.is_empty()).then_some((number, text))
        };
        self.others.iter().filter_map(line).collect()
    }

    /// The text with each statement replaced, the original as a comment above.
    pub(super) fn with(&self, replacements: &[Vec<(PInst, Control)>]) -> String {
        let newline = if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let mut out = String::with_capacity(2 * self.text.len());
        let mut at = 0;
        for (statement, replacement) in self.statements.iter().zip(replacements) {
            let Span { start, end } = statement.span;
            let line = self.text[..start]
                .rfind('\n')
                .map_or(0, |newline| newline + 1);
            let before = &self.text[line..start];
            let blank = before.len() - before.trim_start().len();
            let indent = &before[..blank];
            out.push_str(&self.text[at..start]);
            // A label or a comment stands before it.
            if blank != before.len() {
                out.truncate(out.trim_end_matches([' ', '\t']).len());
                out.push_str(newline);
                out.push_str(indent);
            }
            // A comment within the instruction may have several lines.
            for (number, line) in self.text[start..end].lines().enumerate() {
                if number != 0 {
                    out.push_str(newline);
                    out.push_str(indent);
                }
                out.push_str("// ");
                out.push_str(line.trim());
            }
            for (inst, control) in replacement {
                out.push_str(newline);
                out.push_str(indent);
                out.push_str(&inst.assembly(*control));
            }
            at = end;
        }
        out.push_str(&self.text[at..]);
        out
    }
}

fn scoreboards(control: Control) -> u8 {
    let boards = [control.write, control.read].into_iter().flatten();
    boards.fold(control.wait(), |mask, board| mask | 1 << board.number())
}
