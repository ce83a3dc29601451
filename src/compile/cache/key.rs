//! What decides which code comes out, as a hash.

use crate::compile::{Compiler, FunctionInput, Summaries};
use crate::locations::Locations;
use cranelift_codegen::ir::{Function, GlobalValueData};
use sha2::{Digest, Sha256};
use std::fmt;

/// What this build of the compiler is made of, as a hash: another build may make other code.
const BUILD: &str = env!("THISGPU_BUILD_HASH");
/// Bytes of a checksum.
pub(super) const HASH_BYTES: usize = 32;

/// All that decides what a compilation gives, as a hash. Prints as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey(pub(super) [u8; HASH_BYTES]);

impl CacheKey {
    /// The key of something that a front end makes out of these parts, and this build of the compiler; `kind` tells it
    /// from what others make.
    pub fn of_parts(kind: &str, parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut hasher = Hasher(Sha256::new());
        hasher.part("front end");
        hasher.part(kind);
        hasher.part(BUILD);
        hasher.part(cranelift_codegen::VERSION);
        parts.into_iter().for_each(|part| hasher.part(part));
        CacheKey(hasher.0.finalize().into())
    }

    /// The hash.
    pub fn as_bytes(&self) -> &[u8; HASH_BYTES] {
        &self.0
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes parts so that no two lists of parts give the same bytes.
struct Hasher(Sha256);

impl Hasher {
    fn part(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

impl Compiler {
    /// The key of what compiling these functions together gives: their CLIF as text, the symbols of the functions and
    /// data objects that they refer to, kernel marks, linkage, the settings, and this build of the compiler. Lines of
    /// the source count where they come out again: in line tables, remarks and cycles. What data objects hold decides
    /// nothing unless the unit knows it ([`Unit::announce_table`](crate::compile::Unit::announce_table)).
    pub fn cache_key(&self, functions: &[FunctionInput<'_>]) -> CacheKey {
        let mut hasher = Hasher(Sha256::new());
        if self.shows_places() {
            let places = self.locations.as_deref();
            hasher.part(places.map_or_else(String::new, Locations::content));
        }
        self.hash(&mut hasher, functions);
        CacheKey(hasher.0.finalize().into())
    }

    /// The key of what compiling one function of a unit gives, before the numbers of its lines are places: beside the
    /// function, what is known of its callees, and the registers that launch bounds leave it.
    pub(super) fn function_key(
        &self,
        function: &FunctionInput<'_>,
        summaries: &Summaries,
    ) -> CacheKey {
        let mut hasher = Hasher(Sha256::new());
        hasher.part("function");
        self.hash(&mut hasher, std::slice::from_ref(function));
        hasher.part(format!("{:?}", summaries.of_callees(function)));
        hasher.part([summaries.register_limit(function.kernel)]);
        for table in summaries.tables_of(function) {
            hasher.part(format!("{} {}", table.align, table.in_bank));
            hasher.part(&table.content);
        }
        CacheKey(hasher.0.finalize().into())
    }

    /// Whether places in the source come out again.
    fn shows_places(&self) -> bool {
        self.options.lines || self.watch.remarks || self.watch.cycles
    }

    fn hash(&self, hasher: &mut Hasher, functions: &[FunctionInput<'_>]) {
        hasher.part(BUILD);
        hasher.part(cranelift_codegen::VERSION);
        hasher.part(format!("{:?}", self.options));
        let (remarks, cycles) = (self.watch.remarks, self.watch.cycles);
        hasher.part([u8::from(remarks), u8::from(cycles)]);
        hasher.part((functions.len() as u64).to_le_bytes());
        for function in functions {
            hasher.part(function.name);
            hasher.part(format!("{:?} {:?}", function.kernel, function.linkage));
            hasher.part(if self.shows_places() {
                function.func.display().to_string()
            } else {
                without_locations(function.func).display().to_string()
            });
            for callee in function.func.dfg.ext_funcs.values() {
                hasher.part(function.symbol(&callee.name));
            }
            for global in function.func.global_values.values() {
                if let GlobalValueData::Symbol { name, .. } = global {
                    hasher.part(function.symbol(name));
                }
            }
        }
    }
}

/// The function without lines of the source.
fn without_locations(func: &Function) -> Function {
    let mut func = func.clone();
    func.srclocs.clear();
    func
}
