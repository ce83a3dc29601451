//! A device on which every launch is made twice: as ever, and in a session of the debugger that goes an instruction at
//! a time, back and forward. Both have to leave the same.
//!
//! Two simulators get the same of everything that is asked for. A launch is compared in its memory, counts, fault and
//! findings; then the session stands at random points, goes some instructions back and as many forward, and has to be
//! where it was ([`Session::fingerprint`]); and from the last of them it goes to the end again.

use cranelift_thisgpu::driver::{Driver, DriverError, ModuleId, Simulator};
use cranelift_thisgpu::launch::{Image, LaunchRequest, Report};
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::sim::debug::{Session, Stop};
use cranelift_thisgpu::unstable::isa::random::Random;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Instructions of a launch that are stepped one by one; what follows goes on until something stops it.
const STEPS: u64 = 100_000;
/// Instructions that it goes back from a point, at most: two to this power.
const BACK: usize = 13;

/// A register that no kernel uses which is small.
const UNUSED: u8 = 250;

/// Something that goes wrong in a launch on purpose, so that faults and findings are compared too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// The allocation of this number, modulo how many there are, is only read.
    ReadOnly(usize),
    /// What the host writes does not count as written.
    Unwritten,
}

/// A mistake in stepping, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// An instruction more is issued on the way forward.
    Further,
    /// A register that code has no use for is another one on the way back.
    Register,
}

/// What was compared, by all devices that count here.
#[derive(Debug, Default)]
pub struct Tally {
    launches: AtomicU64,
    faults: AtomicU64,
    findings: AtomicU64,
    instructions: AtomicU64,
    points: AtomicU64,
    back: AtomicU64,
}

impl Tally {
    /// Launches.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Those of them that ended in a fault.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Findings of checks.
    pub fn findings(&self) -> u64 {
        self.findings.load(Ordering::Relaxed)
    }

    /// Points from which a session went back and forward.
    pub fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        write!(
            f,
            "{} launches of {} warp instructions stepped and not, {} faults and {} findings among them; \
             {} points, {} instructions back and forward",
            count(&self.launches),
            count(&self.instructions),
            count(&self.faults),
            count(&self.findings),
            count(&self.points),
            count(&self.back)
        )
    }
}

/// The device. What is read from it is the memory of the session.
pub struct Stepping {
    launched: Simulator,
    stepped: Simulator,
    points: u32,
    trouble: Trouble,
    mistake: Option<Mistake>,
    random: Mutex<Random>,
    /// Allocations with their bytes.
    allocations: Mutex<BTreeMap<u64, u64>>,
    tally: Arc<Tally>,
}

impl Stepping {
    /// A device with these switches, without cycles, that goes back from so many random points of a launch.
    pub fn new(config: SimConfig, points: u32, seed: u64, tally: Arc<Tally>) -> Stepping {
        let config = SimConfig {
            timed: false,
            threads: 1,
            ..config
        };
        Stepping {
            launched: Simulator::new(config),
            stepped: Simulator::new(config),
            points,
            trouble: Trouble::None,
            mistake: None,
            random: Mutex::new(Random::new(seed)),
            allocations: Mutex::default(),
            tally,
        }
    }

    /// Lets something go wrong in its launches.
    pub fn with_trouble(mut self, trouble: Trouble) -> Stepping {
        self.trouble = trouble;
        self
    }

    /// Makes a mistake in its sessions.
    pub fn with_mistake(mut self, mistake: Mistake) -> Stepping {
        self.mistake = Some(mistake);
        self
    }

    /// Asks both devices, which have to answer the same.
    fn both<T: PartialEq + fmt::Debug>(
        &self,
        ask: impl Fn(&Simulator) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let (one, other) = (ask(&self.launched), ask(&self.stepped));
        if one != other {
            return Err(differs(format!("{one:?} and {other:?}")));
        }
        one
    }

    /// Whether both devices have the same memory.
    fn compare_memory(&self, when: &str) -> Result<(), DriverError> {
        let allocations = self.allocations.lock();
        let allocations = allocations.unwrap_or_else(PoisonError::into_inner);
        for (&address, &bytes) in allocations.iter() {
            let [launched, stepped] = [&self.launched, &self.stepped].map(|device| {
                let mut data = vec![0; bytes as usize];
                device.read(address, &mut data).map(|()| data)
            });
            let (launched, stepped) = (launched?, stepped?);
            let pairs = launched.iter().zip(&stepped);
            if let Some(at) = pairs.into_iter().position(|(a, b)| a != b) {
                return Err(differs(format!(
                    "{when}: byte {at} of the {bytes} at {address:#x} is {:#x}, not {:#x}",
                    stepped[at], launched[at]
                )));
            }
        }
        Ok(())
    }

    fn compare(&self, launched: &Report, stepped: &Report, when: &str) -> Result<(), DriverError> {
        let parts = |report: &Report| {
            (
                report.stats,
                report.resident,
                report.fault.clone(),
                report.findings.clone(),
            )
        };
        let (one, other) = (parts(launched), parts(stepped));
        if one != other {
            return Err(differs(format!("{when}: {other:#?}, not {one:#?}")));
        }
        self.compare_memory(when)
    }

    /// Goes from random points back and forward; whether it was where it had been.
    fn back_and_forth(&self, session: &mut Session, end: u64) -> Result<(), DriverError> {
        let random = self.random.lock();
        let mut random = random.unwrap_or_else(PoisonError::into_inner).fork(end);
        for _ in 0..self.points {
            let from = random.bits() % (end + 1);
            session.go_to(from);
            let before = session.fingerprint();
            let most = 1 << random.below(BACK + 1);
            let back = (1 + random.bits() % most).min(from);
            session.step_back(back);
            if session.position() != from - back {
                let position = session.position();
                return Err(differs(format!(
                    "{back} back from {from} is {position} of {end}"
                )));
            }
            self.make_mistake(session);
            let further = u64::from(self.mistake == Some(Mistake::Further));
            for _ in 0..back + further {
                session.step();
            }
            if session.fingerprint() != before {
                return Err(differs(format!(
                    "at instruction {from} of {end}, {back} back and forward is elsewhere"
                )));
            }
            add(&self.tally.points, 1);
            add(&self.tally.back, back);
        }
        Ok(())
    }

    fn make_mistake(&self, session: &mut Session) {
        if self.mistake == Some(Mistake::Register)
            && let Some(thread) = session.next_thread()
        {
            let lane = thread.lane();
            let value = session.register(thread, UNUSED);
            let value = value.map_or(0, |all| all.lanes[lane]);
            session.set_register(thread, UNUSED, !value as u32);
        }
    }
}

fn add(to: &AtomicU64, count: u64) {
    to.fetch_add(count, Ordering::Relaxed);
}

/// What differs.
fn differs(what: String) -> DriverError {
    DriverError::Device(format!("a launch that was stepped differs: {what}"))
}

/// Whether a session has come to its end.
fn is_over(stop: &Stop) -> bool {
    matches!(stop, Stop::End | Stop::Fault(_))
}

impl Driver for Stepping {
    fn name(&self) -> String {
        format!("stepped {}", self.stepped.name())
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        let address = self.both(|device| device.allocate(bytes))?;
        let allocations = self.allocations.lock();
        let mut allocations = allocations.unwrap_or_else(PoisonError::into_inner);
        allocations.insert(address, bytes);
        Ok(address)
    }

    fn protect(&self, address: u64) -> Result<(), DriverError> {
        self.both(|device| device.protect(address))
    }

    fn free(&self, address: u64) -> Result<(), DriverError> {
        let allocations = self.allocations.lock();
        let mut allocations = allocations.unwrap_or_else(PoisonError::into_inner);
        allocations.remove(&address);
        self.both(|device| device.free(address))
    }

    fn write(&self, address: u64, source: &[u8]) -> Result<(), DriverError> {
        if self.trouble == Trouble::Unwritten {
            return Ok(());
        }
        self.both(|device| device.write(address, source))
    }

    fn clear(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.both(|device| device.clear(address, bytes))
    }

    fn read(&self, address: u64, destination: &mut [u8]) -> Result<(), DriverError> {
        self.stepped.read(address, destination)
    }

    fn load(&self, image: Image) -> Result<ModuleId, DriverError> {
        self.both(|device| device.load(image.clone()))
    }

    fn unload(&self, module: ModuleId) -> Result<(), DriverError> {
        self.both(|device| device.unload(module))
    }

    fn launch(&self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError> {
        if let Trouble::ReadOnly(number) = self.trouble {
            let allocations = self.allocations.lock();
            let allocations = allocations.unwrap_or_else(PoisonError::into_inner);
            let chosen = number.checked_rem(allocations.len());
            if let Some((&address, _)) = chosen.and_then(|at| allocations.iter().nth(at)) {
                self.both(|device| device.protect(address))?;
            }
        }
        let launched = self.launched.launch(module, request)?;
        let mut session = self.stepped.debug(module, request, Box::new(()))?;
        while session.position() < STEPS && !is_over(&session.step()) {}
        while !is_over(&session.resume()) {}
        let end = session.position();
        let stepped = session.report();
        self.compare(&launched, &stepped, "stepped to the end")?;
        self.back_and_forth(&mut session, end)?;
        while !is_over(&session.resume()) {}
        let again = session.report();
        self.compare(&launched, &again, "at the end again")?;
        add(&self.tally.launches, 1);
        add(&self.tally.instructions, end);
        add(&self.tally.faults, launched.stats.faults);
        add(&self.tally.findings, launched.findings.len() as u64);
        Ok(stepped)
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        self.both(Driver::synchronize)
    }
}
