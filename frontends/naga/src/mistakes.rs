//! Mistakes of the translator that its tests plant, each of which a test must find. Outside of tests none is planted,
//! and the questions cost nothing.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// Columns of three rows lie three scalars apart.
    ColumnStride,
    /// Members of structures lie without padding.
    Padding,
    /// Integers are divided by zero.
    UnguardedDivision,
    /// The least integer is divided by -1.
    LeastQuotient,
    /// `continue` does not come by the `continuing` block.
    SkippedContinuing,
    /// `break` in a switch leaves the loop around it.
    SwitchBreak,
    /// Workgroup memory is not zeroed.
    WorkgroupZeros,
    /// Variables keep what a call before has left.
    KeptLocals,
    /// Scans read invocations that are not active.
    InactiveScan,
    /// Indices are restricted to the length.
    LastElement,
    /// Stores behind the end happen.
    OutsideStore,
    /// The length of an array counts what stands in front of it.
    ArrayLength,
    /// Signed integers get zeros above.
    SignExtension,
    /// Barriers are left out.
    Barrier,
    /// A vector in front of a matrix is a column.
    RowVector,
    /// No bits of a field are all bits.
    EmptyField,
    /// Floats become integers that no float is.
    FloatLimit,
    /// `!=` is false of a NaN.
    OrderedNotEqual,
    /// Signed shifts to the right bring zeros.
    UnsignedShift,
}

/// Whether a mistake is to be made.
#[cfg(not(test))]
pub(crate) const fn planted(_: Mistake) -> bool {
    false
}

/// Something that is done on another thread, with the mistake of this one.
#[cfg(not(test))]
pub(crate) fn carried<T>(body: impl FnOnce() -> T + Send) -> impl FnOnce() -> T + Send {
    body
}

#[cfg(test)]
pub(crate) use planting::{carried, plant, planted};

#[cfg(test)]
mod planting {
    use super::Mistake;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
    }

    pub(crate) fn planted(mistake: Mistake) -> bool {
        PLANTED.get() == Some(mistake)
    }

    /// Does something on this thread with a mistake in the translator.
    pub(crate) fn plant<T>(mistake: Option<Mistake>, body: impl FnOnce() -> T) -> T {
        PLANTED.set(mistake);
        let result = body();
        PLANTED.set(None);
        result
    }

    pub(crate) fn carried<T>(body: impl FnOnce() -> T + Send) -> impl FnOnce() -> T + Send {
        let mistake = PLANTED.get();
        move || plant(mistake, body)
    }
}
