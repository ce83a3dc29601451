//! What must hold of every form of the description.

use super::super::semantics::Reference;
use crate::isa::encode::all_forms;
use crate::isa::generated::{AtomOp, ENUMS, LoadSize};
use crate::isa::inst::FieldEnum;
use crate::isa::table::Effects;
use crate::isa::{Control, PInst};
use crate::sim::decode::action::Action;
use crate::sim::decode::program::Program;

#[test]
fn the_device_knows_every_form() {
    let mut seen = 0;
    for form in all_forms() {
        let Ok(word) = PInst::new(form).encode(Control::default()) else {
            continue;
        };
        let program = Program::new(&[word], Reference::default());
        let op = &program.ops[0];
        assert!(!matches!(op.action, Action::Illegal(_)), "{form:?}");
        let effects = form.info().optype.info().effects;
        let pure = matches!(op.action, Action::Pure(_) | Action::PureOnce(_));
        assert!(
            !pure || !effects.intersects(Effects::LOAD.union(Effects::BRANCH).union(Effects::EXIT)),
            "{form:?}"
        );
        seen += 1;
    }
    assert!(
        seen > 200,
        "only {seen} forms are legal with all fields at their defaults"
    );
}

/// The device reads these fields through one type although the description has narrower ones with the same codes.
#[test]
fn narrower_enumerations_agree_with_the_ones_the_device_uses() {
    let check = |narrow: &str, name_of: &dyn Fn(u64) -> Option<&'static str>| {
        let narrow = ENUMS
            .iter()
            .find(|e| e.name == narrow)
            .expect("in the description");
        for (name, code) in narrow.members {
            assert_eq!(name_of(*code), Some(*name), "{}", narrow.name);
        }
    };
    check("StoreSize", &|c| LoadSize::from_code(c).map(LoadSize::name));
    check("RedOp", &|c| AtomOp::from_code(c).map(AtomOp::name));
}
