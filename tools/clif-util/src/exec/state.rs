//! A state as JSON.

use cranelift_thisgpu::unstable::isa::{PReg, RegisterClass};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Lanes of a warp.
pub const LANES: usize = 32;
/// Constant banks.
pub const BANKS: u8 = cranelift_thisgpu::unstable::sim::BANKS as u8;

/// Registers, constants and active lanes before a run.
#[derive(Debug, Default)]
pub struct State {
    /// General registers.
    pub general: Vec<(u8, [u32; LANES])>,
    /// Uniform registers, if there is a word of them.
    pub uniform: Option<Vec<(u8, u32)>>,
    /// Predicates as lane masks.
    pub predicates: Vec<(u8, u32)>,
    /// Bytes of constant banks.
    pub constants: Vec<(u8, Vec<u8>)>,
    /// Lanes that run; none: all.
    pub active: Option<u32>,
}

/// A number of 32 bits, −2^31 … 2^32−1.
struct Word(u32);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let value = i64::deserialize(deserializer)?;
        if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
            Ok(Word(value as u32))
        } else {
            Err(de::Error::custom(format!("{value} does not fit 32 bits")))
        }
    }
}

/// A number for all lanes, or one for each.
struct Lanes([u32; LANES]);

impl<'de> Deserialize<'de> for Lanes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lanes, D::Error> {
        struct LanesVisitor;
        impl<'de> Visitor<'de> for LanesVisitor {
            type Value = Lanes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or 32 numbers")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Lanes, E> {
                let value = u32::try_from(value)
                    .map_err(|_| E::custom(format!("{value} does not fit 32 bits")))?;
                Ok(Lanes([value; LANES]))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Lanes, E> {
                let value = i32::try_from(value)
                    .map_err(|_| E::custom(format!("{value} does not fit 32 bits")))?;
                Ok(Lanes([value as u32; LANES]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Lanes, A::Error> {
                let mut lanes = [0; LANES];
                for (i, lane) in lanes.iter_mut().enumerate() {
                    let word = seq.next_element::<Word>()?;
                    *lane = word.ok_or_else(|| de::Error::invalid_length(i, &self))?.0;
                }
                match seq.next_element::<de::IgnoredAny>()? {
                    None => Ok(Lanes(lanes)),
                    Some(_) => Err(de::Error::invalid_length(LANES + 1, &self)),
                }
            }
        }
        deserializer.deserialize_any(LanesVisitor)
    }
}

/// The number of a register that can be set.
fn register<E: de::Error>(class: RegisterClass, name: &str) -> Result<u8, E> {
    let number = name
        .strip_prefix(class.prefix())
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
        .filter(|digits| *digits == "0" || !digits.starts_with('0'));
    let number: Option<u8> = number.and_then(|digits| digits.parse().ok());
    number
        .filter(|n| *n < class.hardwired())
        .map(|n| PReg::new(class, n).number())
        .ok_or_else(|| {
            let (prefix, last) = (class.prefix(), class.hardwired() - 1);
            E::custom(format!(
                "there is no register `{name}`, expected {prefix}0 to {prefix}{last}"
            ))
        })
}

fn hexadecimal<E: de::Error>(text: &str) -> Result<Vec<u8>, E> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| {
        let digit = |d: u8| (d as char).to_digit(16);
        Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8)
    };
    digits
        .chunks(2)
        .map(byte)
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| E::custom("constants are pairs of hexadecimal digits"))
}

/// A JSON object whose keys are numbers or registers, as pairs.
struct Pairs<K, V>(Vec<(K, V)>);

/// Reads an object, each key by `key`.
fn pairs<'de, A, V, T>(
    map: &mut A,
    key: impl Fn(&str) -> Result<u8, A::Error> + Copy,
    value: impl Fn(V) -> Result<T, A::Error> + Copy,
) -> Result<Vec<(u8, T)>, A::Error>
where
    A: MapAccess<'de>,
    V: Deserialize<'de>,
{
    let Pairs(list) = map.next_value::<Pairs<String, V>>()?;
    let mut seen = [false; 256];
    list.into_iter()
        .map(|(k, v)| {
            let number = key(&k)?;
            if std::mem::replace(&mut seen[usize::from(number)], true) {
                return Err(de::Error::custom(format!("`{k}` is given twice")));
            }
            Ok((number, value(v)?))
        })
        .collect()
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<String, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<V>(std::marker::PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
            type Value = Pairs<String, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = map.next_entry::<String, V>()? {
                    list.push(entry);
                }
                Ok(Pairs(list))
            }
        }
        deserializer.deserialize_map(PairsVisitor(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<State, D::Error> {
        struct StateVisitor;
        impl<'de> Visitor<'de> for StateVisitor {
            type Value = State;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a state, an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<State, A::Error> {
                const KEYS: &[&str] = &["gpr", "ur", "pred", "const", "active"];
                let mut state = State::default();
                let mut seen = [false; KEYS.len()];
                while let Some(key) = map.next_key::<String>()? {
                    if let Some(index) = KEYS.iter().position(|k| *k == key)
                        && std::mem::replace(&mut seen[index], true)
                    {
                        return Err(de::Error::custom(format!("`{key}` is given twice")));
                    }
                    match key.as_str() {
                        "gpr" => {
                            let name = |n: &str| register(RegisterClass::Gpr, n);
                            state.general = pairs(&mut map, name, |v: Lanes| Ok(v.0))?;
                        }
                        "ur" => {
                            let name = |n: &str| register(RegisterClass::Uniform, n);
                            state.uniform = Some(pairs(&mut map, name, |v: Word| Ok(v.0))?);
                        }
                        "pred" => {
                            let name = |n: &str| register(RegisterClass::Predicate, n);
                            state.predicates = pairs(&mut map, name, |v: Word| Ok(v.0))?;
                        }
                        "const" => {
                            let bank = |n: &str| {
                                let number = n.parse().ok().filter(|b: &u8| *b < BANKS);
                                number.ok_or_else(|| {
                                    de::Error::custom(format!("there is no constant bank `{n}`"))
                                })
                            };
                            state.constants = pairs(&mut map, bank, |v: String| hexadecimal(&v))?;
                        }
                        "active" => state.active = Some(map.next_value::<Word>()?.0),
                        _ => return Err(de::Error::unknown_field(&key, KEYS)),
                    }
                }
                Ok(state)
            }
        }
        deserializer.deserialize_map(StateVisitor)
    }
}
