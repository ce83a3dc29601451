//! Numbers of threads that only the launch gives out: each thread has one of its own, and nobody can make another.
//!
//! They are what safe code needs to get an element that others must not have. They are not `Copy`, `Clone` or `Send`,
//! and no element of memory, so none comes into the hands of another thread.

use crate::thread;
use core::marker::PhantomData;

/// Keeps a type from being sent to another thread.
type Here = PhantomData<*mut ()>;

mod sealed {
    pub trait Sealed {}
}

/// What tells threads of a launch apart.
pub trait ThreadIndex: Sized + sealed::Sealed {
    /// This thread's; `None` where it has none.
    fn here() -> Option<Self>;
}

macro_rules! indices {
    ($(
        $(#[$attribute:meta])*
        $name:ident { $($(#[$part_attribute:meta])* $part:ident: $type:ty = $value:expr),* } if $holds:expr;
    )*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug)]
            pub struct $name {
                $($part: $type,)*
                here: Here,
            }

            impl sealed::Sealed for $name {}

            impl ThreadIndex for $name {
                #[inline(always)]
                fn here() -> Option<$name> {
                    $holds.then($name::this)
                }
            }

            impl $name {
                /// This thread's, or its block's.
                #[inline(always)]
                pub(crate) fn this() -> $name {
                    $name {
                        $($part: $value as $type,)*
                        here: PhantomData,
                    }
                }

                $(
                    $(#[$part_attribute])*
                    #[inline(always)]
                    pub fn $part(&self) -> usize {
                        self.$part as usize
                    }
                )*
            }
        )*
    };
}

indices!(
    /// The thread's number in a launch of one dimension.
    Index1 {
        /// The number.
        get: usize = thread::global_id()
    } if true;

    /// The thread's place in a launch of two dimensions.
    Index2 {
        /// Along x, which is along a row.
        x: u32 = thread::global_id(),
        /// Along y: the number of the row.
        y: u32 = thread::global_id_y()
    } if true;

    /// The thread's place in a launch of three dimensions.
    Index3 {
        /// Along x, which is along a row.
        x: u32 = thread::global_id(),
        /// Along y: the number of the row in its plane.
        y: u32 = thread::global_id_y(),
        /// Along z: the number of the plane.
        z: u32 = thread::global_id_z()
    } if true;

    /// The number of a block, in the hands of its first thread alone.
    BlockIndex {
        /// The number: along x first, then y, then z.
        get: u32 = thread::block_number()
    } if thread::is_first_of_block();
);

impl Index1 {
    /// One that this thread has: its number, and on by the size of the grid.
    #[inline(always)]
    pub(crate) fn numbered(number: usize) -> Index1 {
        Index1 {
            get: number,
            here: PhantomData,
        }
    }
}
