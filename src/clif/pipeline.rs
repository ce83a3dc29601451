//! The passes on CLIF as a list.
//!
//! A row says what a pass is, when it has anything to do, what it must know of the function, and what nobody knows any
//! more when it has changed something. [`run`] goes through the rows: it finds again what a row needs and a row before
//! has made stale, and nothing else. So no pass computes what another knows, and none has to remember what it breaks.

use super::accesses;
use super::atomics;
use super::by_value;
use super::contents::Contents;
use super::conversions;
use super::fuse;
use super::loops;
use super::merge;
use super::mid_end;
use super::places;
use super::promote;
use super::returns;
use super::rewrite;
use super::tables;
use super::{
    FLAGS, Options, Prepared, broken_rules, has_branches, internal_error, legalize, optimize,
    remove_constant_parameters, with_intrinsics,
};
use crate::analysis::calls::{self, Callees};
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::meeting::Meetings;
use crate::analysis::progress::{self, Progress};
use crate::error::Errors;
use crate::intrinsics::resolve::{Intrinsics, name_text, resolve};
use crate::passes::Pass;
use crate::remarks::Remarks;
use crate::values::tracking::Tracking;
use cranelift_codegen::Context;
use cranelift_codegen::ir::Function;

/// What passes know of a function, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts(u8);

impl Facts {
    /// Nothing.
    const NONE: Facts = Facts(0);
    /// The opcodes and types that occur.
    const CONTENTS: Facts = Facts(1);
    /// Cranelift's graph and dominator tree.
    const GRAPH: Facts = Facts(2);
    /// That there are no aliases, and no parameters of blocks that are always the same value.
    const NO_ALIASES: Facts = Facts(4);
    /// What calls do, and from the graph: post-dominators, loops, endings.
    const FLOW: Facts = Facts(8);

    const fn and(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    fn has(self, other: Facts) -> bool {
        self.0 & other.0 != 0
    }

    fn without(self, other: Facts) -> Facts {
        Facts(self.0 & !other.0)
    }
}

/// A pass.
struct Row {
    pass: Pass,
    /// What switches it on.
    when: fn(&State) -> bool,
    /// What it must know.
    needs: Facts,
    /// Does it; true if the function has changed.
    run: fn(&mut State) -> Result<bool, Errors>,
    /// What is not known any more of a function that it has changed.
    makes_stale: Facts,
}

fn always(_: &State) -> bool {
    true
}

fn optimizes(state: &State) -> bool {
    state.options.settings.optimizes()
}

/// The passes in order.
const ROWS: [Row; 20] = [
    Row {
        pass: Pass::Verify,
        when: always,
        needs: Facts::NONE,
        run: check,
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::Intrinsics,
        when: always,
        needs: Facts::NONE,
        run: find_intrinsics,
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::ByValue,
        when: always,
        needs: Facts::NONE,
        run: |state| {
            by_value::expand(&mut state.context.func);
            Ok(true)
        },
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Atomics,
        when: always,
        needs: Facts::CONTENTS,
        run: |state| Ok(atomics::expand(&mut state.context.func, &state.contents)),
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Conversions,
        when: always,
        needs: Facts::CONTENTS,
        run: |state| {
            Ok(conversions::expand(
                &mut state.context.func,
                &state.contents,
            ))
        },
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Detours,
        when: always,
        needs: Facts::CONTENTS,
        run: |state| Ok(mid_end::expand(&mut state.context.func, &state.contents)),
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Unreachable,
        when: |state| has_branches(&state.context.func),
        needs: Facts::GRAPH,
        run: remove_unreachable,
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::UnrollHints,
        when: always,
        needs: Facts::GRAPH,
        run: |state| {
            state.hints = loops::Hints::take(state.context, &state.intrinsics)?;
            Ok(true)
        },
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::Promote,
        when: |state| !state.options.settings.keep_slots,
        needs: Facts::GRAPH.and(Facts::CONTENTS),
        run: promote_slots,
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::MidEnd,
        when: always,
        needs: Facts::GRAPH.and(Facts::CONTENTS).and(Facts::NO_ALIASES),
        run: run_mid_end,
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Loops,
        // They are the ones that the mid-end has found.
        when: |state| optimizes(state) && !state.options.skip.contains(&Pass::MidEnd),
        needs: Facts::GRAPH.and(Facts::NO_ALIASES),
        run: improve_loops,
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Tables,
        when: |state| optimizes(state) && state.contents.has(&tables::SYMBOLS),
        needs: Facts::NO_ALIASES,
        run: fold_tables,
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Rewrite,
        when: |state| optimizes(state) && state.options.settings.rewrite,
        needs: Facts::GRAPH.and(Facts::CONTENTS).and(Facts::NO_ALIASES),
        run: |state| {
            let context = &mut *state.context;
            let (func, domtree) = (&mut context.func, &context.domtree);
            Ok(rewrite::rewrite(
                func,
                domtree,
                &state.contents,
                &state.intrinsics,
                state.options.kernel.is_some(),
            ))
        },
        makes_stale: Facts::CONTENTS,
    },
    Row {
        pass: Pass::Legalize,
        when: always,
        needs: Facts::CONTENTS.and(Facts::NO_ALIASES),
        run: |state| {
            Ok(legalize::legalize(
                &mut state.context.func,
                &state.contents,
                state.tracking,
            ))
        },
        // Nobody asks for what this and what comes after it adds, so contents are still known.
        makes_stale: Facts::GRAPH,
    },
    Row {
        pass: Pass::Returns,
        when: |state| state.options.kernel.is_none(),
        needs: Facts::NONE,
        run: |state| Ok(returns::unify_returns(&mut state.context.func)),
        makes_stale: Facts::GRAPH,
    },
    Row {
        pass: Pass::SplitAddresses,
        when: |state| merges(state) && state.options.settings.split_addresses,
        needs: Facts::CONTENTS.and(Facts::FLOW),
        run: |state| {
            let (func, given, _) = state.for_accesses();
            accesses::split_addresses(func, &given);
            Ok(true)
        },
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::MergeAccesses,
        when: |state| merges(state) && state.options.settings.merge_accesses,
        needs: Facts::CONTENTS.and(Facts::FLOW),
        run: |state| {
            let (func, given, remarks) = state.for_accesses();
            accesses::merge(func, &given, remarks);
            Ok(true)
        },
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::Fuse,
        when: always,
        needs: Facts::CONTENTS.and(Facts::FLOW),
        run: |state| {
            let func = &mut state.context.func;
            let changed = fuse::fuse(
                func,
                &state.prepared.flow,
                &state.contents,
                &mut state.intrinsics,
                state.options.kernel.is_some(),
                state.tracking,
            );
            // What follows must not take the new calls for calls of unknown functions.
            if changed {
                state
                    .prepared
                    .callees
                    .add_intrinsics(func, &state.intrinsics);
            }
            Ok(changed)
        },
        makes_stale: Facts::NONE,
    },
    Row {
        pass: Pass::Places,
        when: |state| state.contents.has(&progress::SOURCES),
        needs: Facts::FLOW,
        run: |state| {
            let progress = state.progress();
            let func = &mut state.context.func;
            Ok(places::split(
                func,
                &state.prepared.flow,
                &state.prepared.callees,
                &progress,
            ))
        },
        makes_stale: Facts::GRAPH.and(Facts::FLOW),
    },
    Row {
        pass: Pass::Clif,
        when: always,
        needs: Facts::FLOW,
        run: find_meetings,
        makes_stale: Facts::NONE,
    },
];

fn merges(state: &State) -> bool {
    optimizes(state) && state.contents.has_accesses()
}

/// A function on its way through the list, and what is known of it.
pub(super) struct State<'a> {
    pub context: &'a mut Context,
    pub options: &'a Options<'a>,
    pub remarks: &'a mut Remarks,
    /// What became of the values of the source.
    pub tracking: &'a mut Tracking,
    /// Its `func` is not used before the end; the flow and the callees are those of the function in `context`.
    pub prepared: Box<Prepared>,
    pub intrinsics: Intrinsics,
    pub contents: Contents,
    hints: loops::Hints,
    /// What nobody knows any more.
    stale: Facts,
}

impl<'a> State<'a> {
    /// `func` before the first pass.
    pub fn new(
        func: Function,
        context: &'a mut Context,
        options: &'a Options<'a>,
        remarks: &'a mut Remarks,
        tracking: &'a mut Tracking,
        prepared: Box<Prepared>,
    ) -> Self {
        context.func = func;
        Self {
            context,
            options,
            remarks,
            tracking,
            prepared,
            intrinsics: Intrinsics::default(),
            contents: Contents::default(),
            hints: loops::Hints::default(),
            stale: Facts::CONTENTS
                .and(Facts::GRAPH)
                .and(Facts::NO_ALIASES)
                .and(Facts::FLOW),
        }
    }

    /// Finds again what is stale of `facts`.
    fn refresh(&mut self, facts: Facts) -> Result<(), Errors> {
        let mut facts = facts;
        if facts.has(Facts::NO_ALIASES) && self.stale.has(Facts::NO_ALIASES) {
            facts = facts.and(Facts::CONTENTS.and(Facts::GRAPH));
        }
        if facts.has(Facts::FLOW) && self.stale.has(Facts::FLOW) {
            facts = facts.and(Facts::CONTENTS.and(Facts::GRAPH));
        }
        let stale = |state: &Self, fact: Facts| facts.has(fact) && state.stale.has(fact);
        if stale(self, Facts::CONTENTS) {
            self.contents = Contents::of(&self.context.func);
            self.stale = self.stale.without(Facts::CONTENTS);
        }
        if stale(self, Facts::GRAPH) {
            self.context.compute_cfg();
            self.context.compute_domtree();
            self.stale = self.stale.without(Facts::GRAPH);
        }
        if stale(self, Facts::NO_ALIASES) {
            // An alias is no result and no parameter.
            let has_aliases = self.contents.values() != self.context.func.dfg.num_values();
            remove_constant_parameters(self.context, has_aliases, self.tracking)?;
            self.stale = self.stale.without(Facts::NO_ALIASES);
        }
        if stale(self, Facts::FLOW) {
            self.find_flow();
        }
        Ok(())
    }

    /// What calls do, and control flow. It takes the graph.
    fn find_flow(&mut self) {
        let func = &self.context.func;
        let name = |reference| {
            name_text(
                func,
                &func.dfg.ext_funcs[reference].name,
                self.options.namer,
            )
        };
        let callees = match self.contents.has(&calls::OPCODES) {
            true => Callees::of(func, &self.intrinsics, &name, self.options.summarize),
            false => Callees::default(),
        };
        let graph = (&mut self.context.cfg, &mut self.context.domtree);
        let flow: &mut ControlFlow = &mut self.prepared.flow;
        flow.recompute(func, graph, self.options.kernel.is_some(), &callees);
        self.prepared.callees = callees;
        self.stale = self.stale.without(Facts::FLOW).and(Facts::GRAPH);
    }

    /// What the passes on accesses take.
    fn for_accesses(&mut self) -> (&mut Function, accesses::AccessContext<'_>, &mut Remarks) {
        let given = accesses::AccessContext {
            flow: &self.prepared.flow,
            intrinsics: &self.intrinsics,
            kernel: self.options.kernel.is_some(),
            assume_aligned: self.options.settings.assume_aligned,
            tracking: self.tracking,
        };
        (&mut self.context.func, given, self.remarks)
    }

    /// Where lanes wait for others.
    fn progress(&self) -> Progress {
        if !self.contents.has(&progress::SOURCES) {
            return Progress::default();
        }
        let Prepared { flow, callees, .. } = &*self.prepared;
        let kernel = self.options.kernel.is_some();
        Progress::of(&self.context.func, flow, &self.intrinsics, callees, kernel)
    }
}

/// Takes the function through the list; `observe` sees it after each row, also where there was nothing to do. False if
/// it was to stop before the end.
///
/// # Errors
/// Those of the passes.
pub(super) fn run(
    state: &mut State,
    observe: &mut dyn FnMut(Pass, &Function),
) -> Result<bool, Errors> {
    for row in &ROWS {
        let is_skipped = state.options.skip.contains(&row.pass) && row.pass.is_optional();
        if !is_skipped && (row.when)(state) {
            state.refresh(row.needs)?;
            if (row.run)(state)? {
                state.stale = state.stale.and(row.makes_stale);
            }
        }
        observe(row.pass, &state.context.func);
        if state.options.stop_after == Some(row.pass) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Cranelift's verifier, and the rules for types, signatures and kernels.
fn check(state: &mut State) -> Result<bool, Errors> {
    let func = &state.context.func;
    let wrong = broken_rules(func, state.options)?;
    if !wrong.is_empty() {
        with_intrinsics(wrong, func, state.options)?;
    }
    state.tracking.end();
    if state.options.settings.value_locations {
        let assignments = state.options.assignments;
        state.tracking.begin(&mut state.context.func, assignments);
    }
    Ok(false)
}

/// Intrinsics found and checked, thread and launch values rewritten.
fn find_intrinsics(state: &mut State) -> Result<bool, Errors> {
    let func = &mut state.context.func;
    mid_end::constants::renumber(func);
    state.intrinsics = resolve(func, state.options.namer)?;
    Ok(true)
}

fn remove_unreachable(state: &mut State) -> Result<bool, Errors> {
    let removed = state.context.eliminate_unreachable_code(&*FLAGS);
    removed.map_err(|error| internal_error(&error.to_string()))?;
    Ok(true)
}

/// Stack slots in SSA form; then what became equal is merged.
fn promote_slots(state: &mut State) -> Result<bool, Errors> {
    let budget = u32::from(state.options.settings.registers / 2).saturating_sub(SPARE);
    let context = &mut *state.context;
    let promoted = promote::promote(&mut context.func, &context.cfg, &context.domtree, budget);
    if promoted.cells > 0 {
        state.stale = state.stale.and(Facts::CONTENTS);
    }
    state.refresh(Facts::CONTENTS.and(Facts::NO_ALIASES))?;
    let context = &mut *state.context;
    merge::merge_calls(
        &mut context.func,
        &context.domtree,
        &state.intrinsics,
        state.tracking,
    );
    Ok(true)
}

/// Registers less than half of them that the parameters of a block may fill (*assumed*): what aligned runs may leave
/// unused.
const SPARE: u32 = 2;

/// Registers that a thread may have, by the settings and the kernel's bounds.
fn registers(options: &Options<'_>) -> u8 {
    let bound = options
        .kernel
        .and_then(|kernel| kernel.register_limit().ok().flatten());
    let bound = bound.and_then(|bound| u8::try_from(bound).ok());
    bound.unwrap_or(u8::MAX).min(options.settings.registers)
}

/// Cranelift's mid-end; without optimisation what nobody uses goes.
fn run_mid_end(state: &mut State) -> Result<bool, Errors> {
    if optimizes(state) {
        optimize(
            state.context,
            &state.contents,
            &state.intrinsics,
            state.tracking,
        )?;
        return Ok(true);
    }
    let context = &mut *state.context;
    let postorder = context.domtree.cfg_postorder().iter().copied();
    merge::drop_unused(&mut context.func, &state.intrinsics, postorder);
    Ok(false)
}

fn improve_loops(state: &mut State) -> Result<bool, Errors> {
    state.tracking.forget_lost(&state.context.func);
    let given = loops::LoopContext {
        intrinsics: &state.intrinsics,
        kernel: state.options.kernel.is_some(),
        settings: state.options.settings,
        registers: registers(state.options),
        tracking: state.tracking,
    };
    if loops::improve(state.context, &given, &mut state.hints, state.remarks) {
        // Loops are gone, and what they counted is constant in each of their turns.
        remove_constant_parameters(state.context, true, state.tracking)?;
        let contents = Contents::of(&state.context.func);
        optimize(state.context, &contents, &state.intrinsics, state.tracking)?;
        loops::settle(state.context, &given);
    }
    Ok(true)
}

/// Loads of what is known give it.
fn fold_tables(state: &mut State) -> Result<bool, Errors> {
    let State {
        context, options, ..
    } = state;
    Ok(tables::fold(
        &mut context.func,
        &state.intrinsics,
        options.namer,
        options.tables,
    ))
}

/// Where lanes meet.
fn find_meetings(state: &mut State) -> Result<bool, Errors> {
    let progress = state.progress();
    let Prepared { flow, callees, .. } = &*state.prepared;
    let kernel = state.options.kernel.is_some();
    let meetings = Meetings::of(&state.context.func, flow, callees, &progress, kernel);
    state.prepared.meetings = meetings;
    Ok(false)
}
