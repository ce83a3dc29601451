//! Why the compiler does not emit some documented forms.

/// Forms and the reason why none of them is emitted.
pub struct Excuse {
    /// Names of the forms.
    pub forms: &'static [&'static str],
    /// The reason, as the page gives it.
    pub reason: &'static str,
}

/// All excuses. The check fails when a form here is emitted after all.
pub const EXCUSES: &[Excuse] = &[
    Excuse {
        forms: &["P2R_RR", "P2R_RU", "P2R_RC", "R2P_RR", "R2P_RU", "R2P_RC"],
        reason: "only the assembler: the register allocator, which packs predicates, knows their mask (errata I-40, \
         I-43)",
    },
    Excuse {
        forms: &["BREV_R", "BREV_I", "BREV_U", "BREV_C"],
        reason: "only the assembler: the document says both bitwise NOT and bit reversal (errata X-23)",
    },
    Excuse {
        forms: &["SETGPR_U", "GETGPR_U"],
        reason: "only the assembler: what it reads or writes is known at run time only, its hazards are not stated \
         (errata I-79, I-80)",
    },
    Excuse {
        forms: &["R2UR_R"],
        reason: "only where more computed uniform values are alive than there are uniform registers: constants and \
         parameters are read again instead, and no test here has so many",
    },
    Excuse {
        forms: &["PLOP3_U"],
        reason: "only the assembler: no instruction writes the uniform predicates that it reads (errata I-58)",
    },
];

/// The reason of a form.
pub fn reason(form: &str) -> Option<&'static str> {
    let excuse = EXCUSES.iter().find(|excuse| excuse.forms.contains(&form))?;
    Some(excuse.reason)
}
