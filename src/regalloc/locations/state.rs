//! What the places of the machine hold.
//!
//! That a place holds a virtual register is a [`Pair`], which stands in two lists: of the place, and of the virtual
//! register. So what an instruction overwrites costs as much as it was known to hold.

use super::super::check::StorageLocation;

/// No pair.
const NONE: u32 = u32::MAX;

/// A place holds a virtual register.
#[derive(Clone, Copy)]
struct Pair {
    place: u32,
    number: u32,
    /// The next pair of the place.
    next_in: u32,
    prev_in: u32,
    /// The next pair of the virtual register.
    next_of: u32,
    prev_of: u32,
}

/// The ends of a list.
#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends {
    first: NONE,
    last: NONE,
};

/// What is known at a point of the code.
pub(super) struct State {
    /// In no order; those that are nowhere are in a list by `next_in`.
    pairs: Vec<Pair>,
    unused: u32,
    /// By place, its first pair.
    held: Vec<u32>,
    /// By virtual register, its pairs, the oldest first.
    places: Vec<Ends>,
    /// Places that hold anything.
    occupied: Bits,
    /// By holder, whether all its words are of one turn.
    pub complete: Bits,
    /// By virtual register, whether it is a parameter or an argument of the edge at hand.
    is_param: Bits,
    is_argument: Bits,
}

/// The same, to be kept.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Places and what they hold, in order.
    pairs: Vec<(u32, u32)>,
    complete: Bits,
}

impl State {
    /// Nothing is known, in a machine of so many places, with so many virtual registers and holders.
    pub fn new(places: usize, numbers: usize, holders: usize) -> State {
        State {
            pairs: Vec::new(),
            unused: NONE,
            held: vec![NONE; places],
            places: vec![EMPTY; numbers],
            occupied: Bits::new(places),
            complete: Bits::new(holders),
            is_param: Bits::new(numbers),
            is_argument: Bits::new(numbers),
        }
    }

    /// Where a virtual register is; registers before memory.
    pub fn find(&self, number: u32) -> Option<StorageLocation> {
        let first = self
            .pairs
            .get(self.places[number as usize].first as usize)?;
        let mut pair = first;
        loop {
            let place = StorageLocation::at(pair.place as usize);
            if place.is_register() {
                return Some(place);
            }
            match self.pairs.get(pair.next_of as usize) {
                Some(next) => pair = next,
                None => return Some(StorageLocation::at(first.place as usize)),
            }
        }
    }

    /// What a place holds.
    pub fn content(&self, place: StorageLocation) -> impl Iterator<Item = u32> + '_ {
        let pair = |index: u32| self.pairs.get(index as usize);
        let first = pair(self.held[place.index()]);
        std::iter::successors(first, move |found| pair(found.next_in)).map(|found| found.number)
    }

    /// A place holds nothing that is known; what it held goes to `lost`.
    pub fn clear(&mut self, place: StorageLocation, lost: &mut Vec<u32>) {
        let mut next = std::mem::replace(&mut self.held[place.index()], NONE);
        if next == NONE {
            return;
        }
        self.occupied.set(place.index() as u32, false);
        while next != NONE {
            let pair = self.pairs[next as usize];
            self.leave_number(pair);
            lost.push(pair.number);
            self.give_back(next);
            next = pair.next_in;
        }
    }

    /// A place holds a virtual register too.
    pub fn put(&mut self, place: StorageLocation, number: u32) {
        let mut other = self.places[number as usize].first;
        while let Some(pair) = self.pairs.get(other as usize) {
            if pair.place as usize == place.index() {
                return;
            }
            other = pair.next_of;
        }
        self.add(place.index() as u32, number);
    }

    /// No place holds a virtual register any more.
    pub fn forget(&mut self, number: u32) {
        let mut next = std::mem::replace(&mut self.places[number as usize], EMPTY).first;
        while next != NONE {
            let pair = self.pairs[next as usize];
            match pair.prev_in {
                NONE => self.held[pair.place as usize] = pair.next_in,
                before => self.pairs[before as usize].next_in = pair.next_in,
            }
            if pair.next_in != NONE {
                self.pairs[pair.next_in as usize].prev_in = pair.prev_in;
            }
            if self.held[pair.place as usize] == NONE {
                self.occupied.set(pair.place, false);
            }
            self.give_back(next);
            next = pair.next_of;
        }
    }

    /// A pair that is not there yet.
    fn add(&mut self, place: u32, number: u32) {
        let first = self.held[place as usize];
        let Ends {
            first: oldest,
            last,
        } = self.places[number as usize];
        let pair = Pair {
            place,
            number,
            next_in: first,
            prev_in: NONE,
            next_of: NONE,
            prev_of: last,
        };
        let index = self.unused;
        let index = match self.pairs.get_mut(index as usize) {
            Some(unused) => {
                self.unused = unused.next_in;
                *unused = pair;
                index
            }
            None => {
                self.pairs.push(pair);
                self.pairs.len() as u32 - 1
            }
        };
        match first {
            NONE => self.occupied.set(place, true),
            first => self.pairs[first as usize].prev_in = index,
        }
        self.held[place as usize] = index;
        match last {
            NONE => {}
            last => self.pairs[last as usize].next_of = index,
        }
        self.places[number as usize] = Ends {
            first: if oldest == NONE { index } else { oldest },
            last: index,
        };
    }

    /// Takes a pair out of the list of its virtual register.
    fn leave_number(&mut self, pair: Pair) {
        let ends = &mut self.places[pair.number as usize];
        match pair.prev_of {
            NONE => ends.first = pair.next_of,
            before => self.pairs[before as usize].next_of = pair.next_of,
        }
        match pair.next_of {
            NONE => ends.last = pair.prev_of,
            behind => self.pairs[behind as usize].prev_of = pair.prev_of,
        }
    }

    fn give_back(&mut self, index: u32) {
        self.pairs[index as usize].next_in = std::mem::replace(&mut self.unused, index);
    }

    /// The places that hold anything.
    pub fn occupied(&self) -> impl Iterator<Item = StorageLocation> + '_ {
        let places = self.occupied.iter();
        places.map(|place| StorageLocation::at(place as usize))
    }

    /// Goes to what a snapshot says.
    pub fn load(&mut self, snapshot: &Snapshot) {
        for pair in &self.pairs {
            // Those that are nowhere were of places that are to be cleared, or are so already.
            self.held[pair.place as usize] = NONE;
            self.places[pair.number as usize] = EMPTY;
        }
        self.pairs.clear();
        self.unused = NONE;
        self.occupied.clear();
        for &(place, number) in &snapshot.pairs {
            self.add(place, number);
        }
        self.complete.clone_from(&snapshot.complete);
    }

    /// What is known at the end of an edge on which these parameters get these arguments; in the order of arguments.
    pub fn passed(&mut self, arguments: &[(u32, u32)]) -> Snapshot {
        for &(param, arg) in arguments {
            self.is_param.set(param, true);
            self.is_argument.set(arg, true);
        }
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(self.pairs.len());
        for place in self.occupied.iter() {
            let first = pairs.len();
            for number in self.content(StorageLocation::at(place as usize)) {
                if !self.is_param.has(number) {
                    pairs.push((place, number));
                }
                if self.is_argument.has(number) {
                    let first = arguments.partition_point(|(_, arg)| *arg < number);
                    let passed = arguments[first..].iter();
                    let passed = passed.take_while(|(_, arg)| *arg == number);
                    pairs.extend(passed.map(|(param, _)| (place, *param)));
                }
            }
            let of_place = &mut pairs[first..];
            if of_place.len() > 1 {
                of_place.sort_unstable();
            }
        }
        for &(param, arg) in arguments {
            self.is_param.set(param, false);
            self.is_argument.set(arg, false);
        }
        Snapshot {
            pairs,
            complete: self.complete.clone(),
        }
    }
}

impl Snapshot {
    /// Keeps what another one says as well; whether that is less than before.
    pub fn meet(&mut self, other: &Snapshot) -> bool {
        let before = self.pairs.len();
        let mut others = other.pairs.iter().peekable();
        self.pairs.retain(|pair| {
            while others.next_if(|other| *other < pair).is_some() {}
            others.peek() == Some(&pair)
        });
        let mut changed = self.pairs.len() != before;
        changed |= self.complete.meet(&other.complete);
        changed
    }
}

/// A set of numbers.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub fn new(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    pub fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 != 0
    }

    pub fn set(&mut self, number: u32, on: bool) {
        let bit = 1 << (number % 64);
        let word = &mut self.0[number as usize / 64];
        *word = if on { *word | bit } else { *word & !bit };
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The numbers, in order.
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).zip(&self.0);
        words.flat_map(|(index, &word)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
            let words = std::iter::successors(Some(word).filter(|word| *word != 0), rest);
            words.map(move |word| 64 * index + word.trailing_zeros())
        })
    }

    fn meet(&mut self, other: &Bits) -> bool {
        let mut changed = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            changed |= *word & other != *word;
            *word &= other;
        }
        changed
    }
}
