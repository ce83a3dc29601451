//! Random kernels of events.

use super::features::{Feature, Features};
use super::nests::Scope;
use super::plan::{
    Array, Look, Order, Owner, Place, Plan, Release, Role, Sync, Through, Turning, Wait,
};
use super::reference;
use crate::random::Random;
use crate::simt::kernel::{Space, Update};

/// What `random` draws, of these features; its family is one of them other than [`Feature::Graph`]. `seed` is its name.
pub fn plan(seed: u64, random: &Random, family: Feature, features: Features) -> Plan {
    let mut attempt = 0;
    loop {
        let random = random.fork(0xe7e7 + attempt);
        let plan = attempt_of(seed, family, features, random);
        // What would do something that is not allowed is thrown away.
        if reference::execute(&plan).is_ok() {
            return plan;
        }
        attempt += 1;
    }
}

fn attempt_of(seed: u64, family: Feature, features: Features, mut random: Random) -> Plan {
    let mut writer = Writer {
        features,
        random: random.fork(1),
        plan: Plan {
            seed,
            family,
            grid: 1,
            threads: random.pick(&[2, 3, 8, 32, 33, 40, 64, 64, 96]),
            arrays: Vec::new(),
            sync: Sync::Nothing,
            space: Space::Global,
            generic: false,
            flag_bytes: 4,
            skipped: 0,
            start: 0,
            stride: 1,
            order: Order::Up,
            wait: Wait {
                look: Look::Load,
                through: Through::Nothing,
                turning: Turning::Plain,
                function: false,
            },
            release: Release::Store,
            release_read: false,
            rounds: 1,
            pressure: 0,
            before: Vec::new(),
            body: Vec::new(),
            after: Vec::new(),
        },
    };
    if writer.wants(Feature::Pressure) {
        writer.plan.pressure = writer.random.pick(&[15, 20, 28]);
    }
    match family {
        Feature::Nests => writer.nests(),
        _ => writer.events(),
    }
    writer.plan
}

/// A kernel that is being made.
struct Writer {
    features: Features,
    random: Random,
    plan: Plan,
}

impl Writer {
    fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// A feature, in half of the places where it may be.
    fn wants(&mut self, feature: Feature) -> bool {
        self.has(feature) && self.random.once_in(2)
    }

    fn nests(&mut self) {
        self.plan.threads = self.random.pick(&[1, 4, 32, 33, 64]);
        for _ in 0..self.random.between(2, 4) {
            let array = self.input();
            self.plan.arrays.push(array);
        }
        for _ in 0..self.random.between(1, 2) {
            let array = self.own(1);
            self.plan.arrays.push(array);
        }
        self.updated();
        let readable: Vec<usize> = (0..self.plan.arrays.len()).collect();
        let count = self.random.between(1, 3);
        let mut scope = self.scope(readable, 1);
        let mut stmts = Vec::new();
        for _ in 0..count {
            let depth = scope.random.between(1, 3);
            scope.nest(depth, &mut stmts);
            scope.simple(&mut stmts);
        }
        self.plan.before = stmts;
    }

    fn input(&mut self) -> Array {
        let count = self
            .random
            .pick(&[1, 2, 3, 5, 6, 7, 8, 12, 16, 17, 31, 33, 60]);
        Array {
            place: Place::Global,
            bytes: self.random.pick(&[1, 2, 4, 4, 8]),
            count,
            owner: Owner::All,
            role: Role::Input,
        }
    }

    fn own(&mut self, rounds: u32) -> Array {
        let place = match self.wants(Feature::Slots) {
            true => Place::Stack,
            false if self.plan.family == Feature::Nests && self.wants(Feature::Generic) => {
                self.random.pick(&[Place::Shared, Place::Generic])
            }
            false => Place::Global,
        };
        Array {
            place,
            bytes: self.random.pick(&[1, 2, 4, 8]),
            count: rounds * self.random.pick(&[1, 2, 3, 4, 5, 8]),
            owner: Owner::Thread,
            role: Role::Own,
        }
    }

    /// Perhaps an array that changes by atomic operations.
    fn updated(&mut self) {
        if !self.wants(Feature::NarrowUpdates) {
            return;
        }
        let bytes = self.random.pick(&[1, 1, 2, 2, 4, 8]);
        let mut count = self.random.between(1, 7) as u32;
        if !self.has(Feature::OddEnds) {
            count = count.next_multiple_of(4);
        }
        let role = Role::Atomic(self.random.pick(&Update::ALL));
        let place = Place::Global;
        self.plan.arrays.push(Array {
            place,
            bytes,
            count,
            owner: Owner::All,
            role,
        });
    }

    /// A scope in which some arrays may be used.
    fn scope(&mut self, arrays: Vec<usize>, depth: usize) -> Scope<'_> {
        let label = self.random.bits();
        let random = self.random.fork(label);
        Scope {
            features: self.features,
            random,
            plan: &self.plan,
            arrays,
            depth,
            previous: false,
        }
    }

    fn events(&mut self) {
        let blocks = self.has(Feature::Blocks);
        self.plan.grid = if blocks {
            self.random.pick(&[1, 2, 3])
        } else {
            1
        };
        if self.plan.grid > 1 {
            self.plan.threads = self.plan.threads.min(40);
        }
        // Who spins issues instructions: with so many turns it is some 100,000.
        let turns = self.plan.all_threads();
        let rounds = [1, 1, 2, 3, 4]
            .into_iter()
            .filter(|rounds| rounds * turns <= 128);
        self.plan.rounds = self.random.pick(&rounds.collect::<Vec<u32>>());
        let shared = self.wants(Feature::SharedFlags);
        self.plan.space = if shared { Space::Shared } else { Space::Global };
        self.plan.generic = shared && self.wants(Feature::Generic);
        self.plan.stride = self.random.pick(&[1, 1, 1, 2, 7, 32]);
        self.plan.sync = match self.plan.family {
            Feature::Turns => Sync::Turns,
            Feature::Links => Sync::Links {
                ring: self.random.once_in(2),
            },
            _ if self.random.once_in(3) => Sync::Tickets,
            _ => Sync::Lock,
        };
        let count = self.plan.participants();
        self.plan.order = match self.random.below(3) {
            0 => Order::Up,
            1 => Order::Down,
            _ if count.is_power_of_two() => {
                let (factor, plus) = (self.random.bits() as u32 | 1, self.random.below(64) as u32);
                Order::Mixed(factor, plus)
            }
            _ => Order::Up,
        };
        self.data();
        self.flags();
        self.waits();
        self.bodies();
    }

    /// A space for data.
    fn place(&mut self) -> Place {
        let flags = self.plan.space == Space::Shared;
        let shared = match self.has(Feature::MixedSpaces) {
            true if self.random.once_in(3) => flags,
            true => !flags,
            false => flags,
        };
        match shared {
            false => Place::Global,
            true if self.wants(Feature::Generic) => Place::Generic,
            true => Place::Shared,
        }
    }

    fn data(&mut self) {
        let rounds = self.plan.rounds;
        let in_order = matches!(self.plan.sync, Sync::Turns | Sync::Links { ring: true });
        let locked = matches!(self.plan.sync, Sync::Lock | Sync::Tickets);
        for _ in 0..self.random.between(1, 3) {
            let place = self.place();
            let role = match locked {
                true => Role::Locked(self.random.pick(&Update::ALL)),
                false => Role::Common,
            };
            let all = self.plan.is_grid_wide() && place == Place::Global;
            let array = Array {
                place,
                bytes: self.random.pick(&[1, 2, 4, 4, 8]),
                count: self.random.between(1, 6) as u32,
                owner: if all { Owner::All } else { Owner::Block },
                role,
            };
            // A lock in global memory does not keep blocks from each other's shared memory, which they have not.
            if in_order || locked {
                self.plan.arrays.push(array);
            }
        }
        if !locked {
            for _ in 0..self.random.between(1, 2) {
                let apart = self.plan.is_grid_wide() && self.plan.grid > 1;
                let place = if apart { Place::Global } else { self.place() };
                let array = Array {
                    place,
                    bytes: self.random.pick(&[1, 2, 4, 4, 8]),
                    count: rounds * self.random.between(1, 3) as u32,
                    owner: Owner::Thread,
                    role: Role::Message,
                };
                self.plan.arrays.push(array);
            }
        }
        if self.random.once_in(2) {
            let array = self.own(1);
            self.plan.arrays.push(array);
        }
        self.updated();
    }

    fn flags(&mut self) {
        let mut sizes = vec![4];
        if self.has(Feature::NarrowFlags) {
            sizes.extend([1, 2]);
        }
        if self.has(Feature::WideFlags) {
            sizes.push(8);
        }
        let plan = &mut self.plan;
        plan.flag_bytes = self.random.pick(&sizes);
        if plan.participants() > 200 {
            plan.flag_bytes = plan.flag_bytes.max(2);
        }
        plan.skipped = match self.features.has(Feature::OddEnds) {
            true => self.random.below(4) as u32,
            false => {
                let flags = plan.flags();
                flags.next_multiple_of(4) - flags
            }
        };
    }

    fn waits(&mut self) {
        let sync = self.plan.sync;
        let mut looks = match sync {
            Sync::Lock => vec![Look::Busy, Look::Exchange, Look::Bit],
            _ => vec![Look::Load],
        };
        if self.has(Feature::ReadByUpdate) && sync != Sync::Lock {
            looks.extend([Look::Update, Look::Swap]);
            let turns = self.plan.rounds * self.plan.participants();
            if sync == Sync::Turns && turns < 250 {
                looks.push(Look::Busy);
            }
        }
        let counted = matches!(sync, Sync::Turns | Sync::Links { .. });
        let few = self.plan.flag_bytes > 1 && self.plan.participants() < 200;
        if self.has(Feature::MaskedCount) && counted && few {
            looks.extend([Look::Count; 2]);
        }
        let look = self.random.pick(&looks);
        let mut turnings = vec![Turning::Plain];
        let choices = [
            (Feature::Exits, Turning::Twice),
            (Feature::Sleepers, Turning::Sleep),
            (Feature::Sleepers, Turning::Bounded),
            (Feature::NestedWaits, Turning::Nested),
            (Feature::Inside, Turning::Inside),
            (Feature::TailWaits, Turning::Tail),
        ];
        let possible = |turning| turning != Turning::Nested || look != Look::Count;
        let choices = choices.into_iter().filter(|choice| possible(choice.1));
        turnings.extend(
            choices
                .filter(|choice| self.has(choice.0))
                .map(|choice| choice.1),
        );
        let turning = self.random.pick(&turnings);
        let through = self.through();
        let function = turning != Turning::Inside && self.wants(Feature::WaitingFunctions);
        self.plan.wait = Wait {
            look,
            through,
            turning,
            function,
        };
        let mut releases = vec![Release::Store, Release::Exchange];
        let busy = look == Look::Busy && sync == Sync::Turns;
        if !busy {
            releases.push(Release::Add);
            if look != Look::Count {
                releases.push(Release::Swap);
            }
        }
        self.plan.release = self.random.pick(&releases);
        self.plan.release_read = !busy && look != Look::Count && self.random.once_in(2);
        if sync == Sync::Turns && !busy {
            let most = u64::MAX >> (64 - 8 * self.plan.flag_bytes);
            self.plan.start = self.random.pick(&[0, 0, 17, most, most - 3]);
        }
    }

    fn through(&mut self) -> Through {
        let choices = [
            (Feature::ThroughStack, Through::Stack),
            (Feature::ThroughStack, Through::Element),
            (Feature::OutParameter, Through::CalleeScratch(0)),
            (Feature::ThroughGlobal, Through::Scratch(0)),
            (Feature::ThroughShared, Through::Scratch(1)),
            (Feature::OutParameter, Through::Callee),
        ];
        let choices = choices.into_iter().filter(|choice| self.has(choice.0));
        let mut all = vec![Through::Nothing];
        all.extend(choices.map(|choice| choice.1));
        let through = self.random.pick(&all);
        let (Through::Scratch(space) | Through::CalleeScratch(space)) = through else {
            return through;
        };
        // A callee gets an address of 64 bits.
        let callee = matches!(through, Through::CalleeScratch(_));
        self.plan.arrays.push(Array {
            place: if space == 0 {
                Place::Global
            } else {
                Place::Shared
            },
            bytes: self.plan.flag_bytes,
            count: 1,
            owner: Owner::Thread,
            role: Role::Scratch,
        });
        let array = self.plan.arrays.len() - 1;
        match callee {
            true => Through::CalleeScratch(array),
            false => Through::Scratch(array),
        }
    }

    fn bodies(&mut self) {
        let of = |roles: fn(Role) -> bool, plan: &Plan| -> Vec<usize> {
            let arrays = plan.arrays.iter().enumerate();
            arrays
                .filter(|(_, array)| roles(array.role))
                .map(|(index, _)| index)
                .collect()
        };
        let private = |role| matches!(role, Role::Own | Role::Message | Role::Atomic(_));
        let inside = |role| role != Role::Scratch;
        let outside = of(private, &self.plan);
        let all = of(inside, &self.plan);
        let quiet = of(
            |role| matches!(role, Role::Own | Role::Atomic(_)),
            &self.plan,
        );
        let count = self.random.below(3);
        self.plan.before = self.scope(outside, 2).some(count);
        let count = self.random.between(2, 6);
        let mut scope = self.scope(all, 2);
        scope.previous = true;
        self.plan.body = scope.some(count);
        let count = self.random.below(3);
        self.plan.after = self.scope(quiet, 1).some(count);
    }
}
