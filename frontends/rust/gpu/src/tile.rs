//! Groups of 2 to 32 lanes of a warp that work together, as a whole warp does.

use crate::element::Element;
use crate::warp;

/// A group of `N` lanes of a warp, 2, 4, 8, 16 or 32: those whose numbers divided by `N` are the same.
///
/// Groups of a warp may do different things. What a group does together all its lanes must come to, except for votes,
/// which work on the lanes of the group that are there. On the host a group is one lane.
///
/// ```
/// use thisgpu_gpu::*;
/// /// The sum of each eight elements.
/// #[kernel]
/// pub fn eights(x: &[u32], mut sums: DisjointMut<u32>) {
///     let tile = warp::Tile::<8>::this();
///     let own = x.get(thread::global_id()).copied().unwrap_or(0);
///     let sum = tile.reduce(own, |a, b| a + b);
///     if let Some(out) = sums.thread_mut() {
///         *out = sum;
///     }
/// }
/// # let mut sums = [0];
/// # eights(&[5], DisjointMut::from_slice(&mut sums));
/// # assert_eq!(sums, [5]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tile<const N: u32>(());

impl<const N: u32> Tile<N> {
    /// The group that this thread is in.
    #[inline(always)]
    pub fn this() -> Tile<N> {
        const {
            assert!(
                N.is_power_of_two() && N >= 2 && N <= warp::LANES,
                "a group has 2, 4, 8, 16 or 32 lanes"
            );
        }
        Tile(())
    }

    /// How many lanes.
    #[inline(always)]
    pub fn size(self) -> u32 {
        N
    }

    /// This thread's number in its group, 0 to `N` - 1.
    #[inline(always)]
    pub fn rank(self) -> u32 {
        warp::lane() % N
    }

    /// The group's number in its warp.
    #[inline(always)]
    pub fn index(self) -> u32 {
        warp::lane() / N
    }

    /// The group's lanes, a bit each.
    #[inline(always)]
    pub fn mask(self) -> u32 {
        u32::MAX >> (warp::LANES - N) << self.first()
    }

    /// A group of `M` lanes of this one.
    #[inline(always)]
    pub fn part<const M: u32>(self) -> Tile<M> {
        const {
            assert!(M <= N, "a part has no more lanes than the whole");
        }
        Tile::this()
    }

    /// The lane of its first thread.
    #[inline(always)]
    fn first(self) -> u32 {
        warp::lane() & !(N - 1)
    }

    /// The value of a lane, by its rank modulo `N`.
    #[inline(always)]
    pub fn shuffle<T: Element>(self, value: T, rank: u32) -> T {
        warp::shuffle(value, self.first() + rank % N)
    }

    /// The value of the lane so many below; the own one if there is none in the group.
    #[inline(always)]
    pub fn shuffle_up<T: Element>(self, value: T, distance: u32) -> T {
        let rank = self.rank();
        self.shuffle(
            value,
            if distance > rank {
                rank
            } else {
                rank - distance
            },
        )
    }

    /// The value of the lane so many above; the own one if there is none in the group.
    #[inline(always)]
    pub fn shuffle_down<T: Element>(self, value: T, distance: u32) -> T {
        let rank = self.rank();
        let above = distance.saturating_add(rank);
        self.shuffle(value, if above < N { above } else { rank })
    }

    /// The value of the lane whose rank is the own one xor `mask`, modulo `N`.
    #[inline(always)]
    pub fn shuffle_xor<T: Element>(self, value: T, mask: u32) -> T {
        warp::shuffle_xor(value, mask % N)
    }

    /// The ranks of the lanes here for which it holds, a bit each.
    #[inline(always)]
    pub fn ballot(self, holds: bool) -> u32 {
        (warp::ballot(holds) & self.mask()) >> self.first()
    }

    /// Whether it holds for all lanes of the group that are here.
    #[inline(always)]
    pub fn all(self, holds: bool) -> bool {
        self.ballot(!holds) == 0
    }

    /// Whether it holds for some lane of the group that is here.
    #[inline(always)]
    pub fn any(self, holds: bool) -> bool {
        self.ballot(holds) != 0
    }

    /// The ranks of the lanes here with the same value, bit for bit, a bit each.
    #[inline(always)]
    pub fn match_any<T: Element>(self, value: T) -> u32 {
        (warp::match_any(value) & self.mask()) >> self.first()
    }

    /// Waits for all lanes of the group, and orders their accesses to shared and global memory. Behind it they are
    /// together, and other groups may be elsewhere: what a larger group does next begins with a `sync` of that one.
    #[inline(always)]
    pub fn sync(self) {
        warp::sync(self.mask());
    }

    /// What all lanes of the group have together, by an operation that is commutative and associative; every lane gets
    /// it.
    #[inline(always)]
    pub fn reduce<T: Element>(self, value: T, operation: impl Fn(T, T) -> T) -> T {
        if !crate::ON_DEVICE {
            return value;
        }
        let step = |value: T, distance: u32| {
            if distance < N {
                operation(value, warp::shuffle_xor(value, distance))
            } else {
                value
            }
        };
        // Not a loop: the copies are where the source has them whatever is done to loops.
        step(step(step(step(step(value, 16), 8), 4), 2), 1)
    }

    /// What the lanes up to this one have together, this one included, by an operation that is associative.
    #[inline(always)]
    pub fn scan<T: Element>(self, value: T, operation: impl Fn(T, T) -> T) -> T {
        if !crate::ON_DEVICE {
            return value;
        }
        let rank = self.rank();
        let step = |value: T, distance: u32| {
            if distance >= N {
                return value;
            }
            // Another group may be elsewhere: its lanes are not read.
            let below = match N {
                warp::LANES => warp::shuffle_up(value, distance),
                _ => self.shuffle_up(value, distance),
            };
            if rank >= distance {
                operation(below, value)
            } else {
                value
            }
        };
        step(step(step(step(step(value, 1), 2), 4), 8), 16)
    }

    /// What the lanes below this one have together, by an operation that is associative; in the first lane `first`.
    #[inline(always)]
    pub fn scan_exclusive<T: Element>(
        self,
        value: T,
        first: T,
        operation: impl Fn(T, T) -> T,
    ) -> T {
        let up_to_this = self.scan(value, operation);
        let below = match N {
            warp::LANES => warp::shuffle_up(up_to_this, 1),
            _ => self.shuffle_up(up_to_this, 1),
        };
        if self.rank() == 0 { first } else { below }
    }
}
