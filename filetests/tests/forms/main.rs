//! Every documented form is shown by a golden or excused, and `docs/forms.md` says which.
//!
//! All functions of the repository are compiled and the forms of their words collected ([`corpus`]). What the compiler
//! does not emit has a reason ([`excuses`]); the page is generated ([`page`]), with what reaches an operation by rules
//! ([`rules`]). The kernels that show forms with constant and uniform operands run here ([`operands`]), because run
//! lines cannot pass kernel parameters. What Rust emits beside the rules is compared with `docs/lowering.md`
//! ([`emission`]); rules of different files are not told apart by priorities ([`priorities`]).

mod corpus;
mod emission;
mod excuses;
mod isle;
mod operands;
mod page;
mod priorities;
mod rules;

use std::path::Path;
use thisgpu_filetests::expectation;

fn repository() -> &'static Path {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    parent.expect("the package lies in the repository")
}

#[test]
fn every_documented_form_is_shown_or_excused() {
    let seen = corpus::forms_of_repository(repository());
    let complaints = page::complaints(&seen);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let page = page::markdown(repository(), &seen);
    let path = repository().join("docs/forms.md");
    if expectation::blessing() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/forms.md is out of date; bless it with {}=1",
        expectation::BLESS
    );
}

/// The check notices a form that nothing shows, one that is excused and emitted, and a function that does not show the
/// form of its name.
#[test]
fn gaps_are_found() {
    let seen = corpus::forms_of_text(
        "filetests/lower/gaps.clif",
        "test compile precise-output
target thisgpu

function %iadd_ri(i32, i32) -> i32 {
block0(v0: i32, v1: i32):
    v2 = iadd v0, v1
    return v2
}
",
    );
    let mut seen: corpus::Seen = seen
        .into_iter()
        .map(|(form, place)| (form, vec![place]))
        .collect();
    let place = seen["IADD_RR"][0].clone();
    assert!(
        place.golden && place.operations.contains("iadd"),
        "{place:?}"
    );
    seen.insert("PLOP3_U", vec![place.clone()]);
    let elsewhere = corpus::Place {
        golden: false,
        ..place
    };
    seen.insert("POPC_R", vec![elsewhere]);
    let complaints = page::complaints(&seen);
    let has = |text: &str| {
        complaints
            .iter()
            .any(|complaint| complaint.starts_with(text))
    };
    assert!(has("PLOP3_U is excused, but %iadd_ri"));
    assert!(has("IADD_RI is emitted nowhere"));
    assert!(has("POPC_R is in no golden"));
    assert!(has("%iadd_ri of filetests/lower/gaps.clif does not have"));
    assert!(!has("IADD_RR") && !has("BREV_R"), "{complaints:?}");
}
