//! What the places of the machine hold.

use super::super::check::StorageLocation;
use super::Tracked;
use smallvec::SmallVec;

/// What is known at a point of the code.
pub(super) struct State {
    /// By place, the virtual registers that it holds.
    held: Vec<SmallVec<[u32; 2]>>,
    /// By virtual register, the places that hold it, the oldest first.
    places: Vec<SmallVec<[StorageLocation; 2]>>,
    /// By holder, whether all its words are of one turn.
    pub complete: Bits,
}

/// The same, to be kept.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// In order.
    pairs: Vec<(StorageLocation, u32)>,
    complete: Bits,
}

impl State {
    /// Nothing is known, in a machine of so many places.
    pub fn new(places: usize, tracked: &Tracked, holders: usize) -> State {
        State {
            held: vec![SmallVec::new(); places],
            places: vec![SmallVec::new(); tracked.holders.len()],
            complete: Bits::new(holders),
        }
    }

    /// Where a virtual register is; registers before memory.
    pub fn find(&self, number: u32) -> Option<StorageLocation> {
        let places = &self.places[number as usize];
        let register = places.iter().find(|place| place.register().is_some());
        register.or(places.first()).copied()
    }

    /// What a place holds.
    pub fn content(&self, place: StorageLocation) -> SmallVec<[u32; 2]> {
        self.held[place.index()].clone()
    }

    /// A place holds nothing that is known; what it held goes to `lost`.
    pub fn clear(&mut self, place: StorageLocation, lost: &mut Vec<u32>) {
        for number in std::mem::take(&mut self.held[place.index()]) {
            self.places[number as usize].retain(|other| *other != place);
            lost.push(number);
        }
    }

    /// A place holds a virtual register too.
    pub fn put(&mut self, place: StorageLocation, number: u32) {
        let held = &mut self.held[place.index()];
        if !held.contains(&number) {
            held.push(number);
            self.places[number as usize].push(place);
        }
    }

    /// No place holds a virtual register any more.
    pub fn forget(&mut self, number: u32) {
        for place in std::mem::take(&mut self.places[number as usize]) {
            self.held[place.index()].retain(|other| *other != number);
        }
    }

    /// The places that hold anything.
    pub fn occupied(&self) -> impl Iterator<Item = StorageLocation> + '_ {
        let held = self.held.iter().enumerate();
        held.filter(|(_, held)| !held.is_empty())
            .map(|(index, _)| StorageLocation::at(index))
    }

    /// Goes to what a snapshot says.
    pub fn load(&mut self, snapshot: &Snapshot) {
        for place in self.occupied().collect::<Vec<_>>() {
            self.clear(place, &mut Vec::new());
        }
        for &(place, number) in &snapshot.pairs {
            self.put(place, number);
        }
        self.complete.clone_from(&snapshot.complete);
    }

    /// What is known at the end of an edge on which these arguments become these parameters.
    pub fn passed(&self, arguments: &[(u32, u32)]) -> Snapshot {
        let mut params: SmallVec<[u32; 8]> = arguments.iter().map(|(param, _)| *param).collect();
        params.sort_unstable();
        let mut by_argument: SmallVec<[(u32, u32); 8]> = arguments
            .iter()
            .map(|(param, arg)| (*arg, *param))
            .collect();
        by_argument.sort_unstable();
        let mut pairs = Vec::new();
        for place in self.occupied() {
            for &number in &self.held[place.index()] {
                if params.binary_search(&number).is_err() {
                    pairs.push((place, number));
                }
                let first = by_argument.partition_point(|(arg, _)| *arg < number);
                let passed = by_argument[first..]
                    .iter()
                    .take_while(|(arg, _)| *arg == number);
                pairs.extend(passed.map(|(_, param)| (place, *param)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
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
    fn new(len: usize) -> Bits {
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

    fn meet(&mut self, other: &Bits) -> bool {
        let mut changed = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            changed |= *word & other != *word;
            *word &= other;
        }
        changed
    }
}
