//! Which registers are spoken for: by values to come whose webs or runs have theirs already, and by the calling
//! convention.

use super::liveness::Liveness;
use super::webs::Webs;
use crate::isa::{RegisterClass, VReg};

/// What is known of each register, by class and number; kept between functions.
#[derive(Debug)]
pub(super) struct Tables {
    /// Values to come that have the register already because of their webs or runs, in order.
    pub reserved: [Vec<Vec<Reservation>>; 3],
    /// Values that the calling convention wants in the register, in order.
    pub hinted: [Vec<Vec<Reservation>>; 3],
    /// Registers of which a list is not empty.
    touched: Vec<(usize, u8)>,
    /// Where the life of the register's present value ends; means nothing for a register that holds none.
    pub occupant_end: [Vec<u32>; 3],
}

/// The life of a value that wants a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    start: u32,
    end: u32,
    web: u32,
}

impl Default for Tables {
    fn default() -> Self {
        let size = |class: RegisterClass| usize::from(class.hardwired());
        Tables {
            reserved: RegisterClass::ALL.map(|class| vec![Vec::new(); size(class)]),
            hinted: RegisterClass::ALL.map(|class| vec![Vec::new(); size(class)]),
            touched: Vec::new(),
            occupant_end: RegisterClass::ALL.map(|class| vec![0; size(class)]),
        }
    }
}

impl Tables {
    /// Forgets all of the function before.
    pub fn clear(&mut self) {
        for (class, c) in self.touched.drain(..) {
            self.reserved[class][usize::from(c)].clear();
            self.hinted[class][usize::from(c)].clear();
        }
    }

    /// Notes that a web or run has a register for a value.
    pub fn reserve(&mut self, class: RegisterClass, c: u8, life: Reservation) {
        note(&mut self.reserved, &mut self.touched, (class, c), life);
    }

    /// Notes that the calling convention wants a register for a value.
    pub fn hint(&mut self, class: RegisterClass, c: u8, life: Reservation) {
        note(&mut self.hinted, &mut self.touched, (class, c), life);
    }
}

/// Adds a life to the list of a register.
fn note(
    lists: &mut [Vec<Vec<Reservation>>; 3],
    touched: &mut Vec<(usize, u8)>,
    (class, c): (RegisterClass, u8),
    life: Reservation,
) {
    if let Some(list) = lists[class as usize].get_mut(usize::from(c)) {
        if list.is_empty() {
            touched.push((class as usize, c));
        }
        let place = match list.last() {
            Some(last) if last.start >= life.start => {
                list.partition_point(|r| r.start < life.start)
            }
            _ => list.len(),
        };
        list.insert(place, life);
    }
}

/// When a value is alive, in the linear order.
pub(super) fn life(live: &Liveness, webs: &Webs, v: VReg) -> Reservation {
    Reservation {
        start: live.def_position(v),
        end: live.end(v),
        web: webs.web(v),
    }
}

/// Whether one of `list` begins during a life, or ends in it after it has begun behind the position `now`: what begins
/// before that has its register, be it this one or not. Two that begin at once are in each other's way.
pub(super) fn disturbs(list: &[Reservation], life: Reservation, now: u32) -> bool {
    if list.is_empty() {
        return false;
    }
    let first = list.partition_point(|r| r.start < life.start);
    let before = list[..first].last();
    let before = before.filter(|r| r.end > life.start && r.start >= now);
    let during = list[first..].iter();
    before
        .into_iter()
        .chain(during.take_while(|r| r.start < life.end || r.start == life.start))
        .any(|r| r.web != life.web)
}
