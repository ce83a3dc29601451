//! The test kinds that print something of one function and compare it with its comments.

use crate::compiled::without_locations;
use crate::expectation;
use cranelift_codegen::Context;
use cranelift_codegen::cfg_printer::CFGPrinter;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verifier::verify_function;
use cranelift_thisgpu::compile::SourceFunction;
use std::fmt::Write;

/// Kinds of tests that need no compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The function reads and prints.
    Cat,
    /// Cranelift's verifier finds exactly the errors that `; error:` comments announce.
    Verifier,
    /// The control-flow graph in dot format.
    PrintCfg,
    /// The dominator tree; `; dominates:` comments name the blocks a branch's block immediately dominates.
    Domtree,
    /// The function after Cranelift's redundant-load elimination.
    AliasAnalysis,
}

impl Check {
    /// All kinds with their names in `test` lines.
    pub const ALL: [(&'static str, Check); 5] = [
        ("cat", Check::Cat),
        ("verifier", Check::Verifier),
        ("print-cfg", Check::PrintCfg),
        ("domtree", Check::Domtree),
        ("alias-analysis", Check::AliasAnalysis),
    ];

    /// Makes the text that is compared with the comments.
    ///
    /// # Errors
    /// What is wrong, for kinds that check something by themselves.
    pub fn output(self, function: &SourceFunction) -> Result<String, String> {
        let func = &function.func;
        match self {
            Check::Cat => Ok(without_locations(func).to_string()),
            Check::Verifier => verifier(function).map(|()| String::new()),
            Check::PrintCfg => {
                let mut text = String::new();
                CFGPrinter::new(func)
                    .write(&mut text)
                    .map_err(|error| error.to_string())?;
                Ok(text)
            }
            Check::Domtree => domtree(function),
            Check::AliasAnalysis => {
                verify(func)?;
                let mut context = Context::for_function(without_locations(func));
                context.flowgraph();
                context
                    .replace_redundant_loads()
                    .map_err(|error| error.to_string())?;
                context.func.dfg.resolve_all_aliases();
                Ok(context.func.to_string())
            }
        }
    }
}

/// Compares with the function's expectation, exactly or by directives.
///
/// # Errors
/// The difference.
pub fn compare(function: &SourceFunction, exact: Option<&str>, output: &str) -> Result<(), String> {
    match exact {
        Some(expected) => expectation::compare(expected, output),
        None => expectation::filecheck(
            function
                .comments
                .iter()
                .map(|comment| comment.text.as_str()),
            output,
        ),
    }
}

fn flags() -> Flags {
    Flags::new(settings::builder())
}

/// # Errors
/// All that Cranelift's verifier says.
fn verify(func: &Function) -> Result<(), String> {
    verify_function(func, &flags()).map_err(|errors| errors.to_string())
}

/// Compares the verifier's errors with the `; error: TEXT` comments at the places that they follow.
fn verifier(function: &SourceFunction) -> Result<(), String> {
    let announced = |text: &str| {
        text.trim_start_matches(';')
            .trim()
            .strip_prefix("error:")
            .map(|rest| rest.trim().to_owned())
    };
    let mut expected: Vec<(AnyEntity, String)> = function
        .comments
        .iter()
        .filter_map(|comment| Some((comment.entity, announced(&comment.text)?)))
        .collect();
    let found = verify_function(&function.func, &flags())
        .err()
        .map_or_else(Vec::new, |errors| errors.0);
    let mut wrong = String::new();
    for error in found {
        let matching = expected
            .iter()
            .position(|(place, text)| *place == error.location && error.message.contains(text));
        match matching {
            Some(index) => drop(expected.swap_remove(index)),
            None => writeln!(wrong, "unexpected: {error}").map_err(|error| error.to_string())?,
        }
    }
    for (place, text) in expected {
        writeln!(wrong, "missing at {place}: {text}").map_err(|error| error.to_string())?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Checks the `; dominates:` comments and prints the tree.
fn domtree(function: &SourceFunction) -> Result<String, String> {
    let func = &function.func;
    let cfg = ControlFlowGraph::with_function(func);
    let tree = DominatorTree::with_function(func, &cfg);
    for comment in &function.comments {
        let Some(blocks) = comment
            .text
            .trim_start_matches(';')
            .trim()
            .strip_prefix("dominates:")
        else {
            continue;
        };
        let AnyEntity::Inst(inst) = comment.entity else {
            return Err(format!(
                "line {}: `dominates` must follow a branch",
                comment.line
            ));
        };
        let dominator = func.layout.inst_block(inst);
        for name in blocks.split_whitespace() {
            let block = name
                .strip_prefix("block")
                .and_then(|number| number.parse().ok())
                .and_then(Block::with_number);
            let block =
                block.ok_or_else(|| format!("line {}: `{name}` is no block", comment.line))?;
            if tree.idom(block) != dominator {
                let actual = tree
                    .idom(block)
                    .map_or_else(|| "nothing".to_owned(), |block| block.to_string());
                return Err(format!(
                    "line {}: {name} is immediately dominated by {actual}",
                    comment.line
                ));
            }
        }
    }
    let names = |blocks: &mut dyn Iterator<Item = Block>| {
        blocks.map(|block| format!(" {block}")).collect::<String>()
    };
    let mut text = format!(
        "cfg_postorder:{}\ndomtree_preorder {{\n",
        names(&mut tree.cfg_postorder().iter().copied())
    );
    let mut work: Vec<Block> = func.layout.entry_block().into_iter().collect();
    while let Some(block) = work.pop() {
        let children: Vec<Block> = tree.children(block).collect();
        writeln!(text, "    {block}:{}", names(&mut children.iter().copied()))
            .map_err(|error| error.to_string())?;
        work.extend(children.into_iter().rev());
    }
    text.push_str("}\n");
    Ok(text)
}
