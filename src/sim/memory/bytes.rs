//! Bytes that cost nothing until they are written, with a mark for each that was.
//!
//! Zeros come from the operating system when they are touched, and pages of marks exist only where the marks differ
//! from the rest.

/// Words of a page of marks.
const MARK_WORDS: usize = 64;
/// Bytes that a page of marks stands for.
const MARK_PAGE: usize = MARK_WORDS * 64;

/// A mark for each of many bytes: pages of bits, made when a page's bytes are not all as the rest.
#[derive(Clone, Debug, Default, Hash)]
pub(in crate::sim) struct Marks {
    pages: Vec<Option<Box<[u64; MARK_WORDS]>>>,
    /// The mark of bytes whose page does not exist.
    rest: bool,
}

impl Marks {
    pub(in crate::sim) fn new(size: usize, rest: bool) -> Marks {
        Marks {
            pages: vec![None; size.div_ceil(MARK_PAGE)],
            rest,
        }
    }

    /// The words of bits of a range: page, word in it, and the bits that belong to the range.
    fn words(start: usize, bytes: usize) -> impl Iterator<Item = (usize, usize, u64)> {
        let end = start + bytes;
        let words = if bytes == 0 {
            0..0
        } else {
            start / 64..end.div_ceil(64)
        };
        words.map(move |word| {
            let (low, high) = (start.max(word * 64), end.min(word * 64 + 64));
            let bits = u64::MAX >> (64 - (high - low)) << (low % 64);
            (word / MARK_WORDS, word % MARK_WORDS, bits)
        })
    }

    /// Whether all of a range are marked.
    pub(in crate::sim) fn all(&self, start: usize, bytes: usize) -> bool {
        Self::words(start, bytes).all(|(page, word, bits)| match &self.pages[page] {
            Some(page) => page[word] & bits == bits,
            None => self.rest,
        })
    }

    /// Marks a range, or takes its marks away.
    pub(in crate::sim) fn set(&mut self, start: usize, bytes: usize, mark: bool) {
        for (page, word, bits) in Self::words(start, bytes) {
            let page = &mut self.pages[page];
            if page.is_none() && mark == self.rest {
                continue;
            }
            let rest = if self.rest { u64::MAX } else { 0 };
            let page = page.get_or_insert_with(|| Box::new([rest; MARK_WORDS]));
            if mark {
                page[word] |= bits;
            } else {
                page[word] &= !bits;
            }
        }
    }
}

/// Bytes with, in checking mode, a mark for each that was written.
#[derive(Clone, Debug, Default, Hash)]
pub struct Bytes {
    data: Vec<u8>,
    written: Option<Marks>,
    /// Whether anything has happened to the bytes or their marks since they were made.
    touched: bool,
}

impl Bytes {
    /// `size` zero bytes; `track` marks what is written.
    pub fn new(size: usize, track: bool) -> Bytes {
        Bytes {
            data: vec![0; size],
            written: track.then(|| Marks::new(size, false)),
            touched: false,
        }
    }

    /// The bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Whether all of a range were written; true when that is not tracked.
    pub fn is_written(&self, start: usize, bytes: usize) -> bool {
        self.written.as_ref().is_none_or(|w| w.all(start, bytes))
    }

    /// Whether stores are marked.
    #[inline]
    pub(in crate::sim) fn is_tracked(&self) -> bool {
        self.written.is_some()
    }

    /// The bytes to write, without marks.
    #[inline]
    pub(in crate::sim) fn data_mut(&mut self) -> &mut [u8] {
        self.touched = true;
        &mut self.data
    }

    /// Marks a range as written, where that is tracked.
    #[inline]
    pub(in crate::sim) fn mark(&mut self, start: usize, bytes: usize) {
        if let Some(written) = &mut self.written {
            written.set(start, bytes, true);
        }
    }

    /// Overwrites a range that must be inside.
    #[inline]
    pub fn store(&mut self, start: usize, source: &[u8]) {
        self.data[start..start + source.len()].copy_from_slice(source);
        self.touched = true;
        if let Some(written) = &mut self.written {
            written.set(start, source.len(), true);
        }
    }

    /// Overwrites a range that must be inside with zeros. The whole takes no time and no memory.
    pub fn clear(&mut self, start: usize, bytes: usize) {
        let size = self.data.len();
        if bytes < size {
            self.data[start..start + bytes].fill(0);
            self.touched = true;
            if let Some(written) = &mut self.written {
                written.set(start, bytes, true);
            }
            return;
        }
        self.data = vec![0; size];
        self.touched = true;
        if let Some(written) = &mut self.written {
            *written = Marks::new(size, true);
        }
    }

    /// Marks a range as not written.
    pub fn forget(&mut self, start: usize, bytes: usize) {
        self.touched = true;
        if let Some(written) = &mut self.written {
            written.set(start, bytes, false);
        }
    }

    /// Zeros everything and forgets what was written.
    pub fn reset(&mut self, size: usize) {
        if !self.touched && size == self.data.len() {
            return;
        }
        self.data.clear();
        self.data.resize(size, 0);
        self.touched = false;
        if let Some(written) = &mut self.written {
            *written = Marks::new(size, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks of ranges across words and pages, against a list of marks.
    #[test]
    fn marks_are_those_that_were_set() {
        let size = 3 * MARK_PAGE + 100;
        let mut random = crate::isa::random::Random::new(7);
        for rest in [false, true] {
            let (mut marks, mut model) = (Marks::new(size, rest), vec![rest; size]);
            for _ in 0..300 {
                let start = random.bits() as usize % size;
                let longest = [16, 200, size][random.bits() as usize % 3];
                let bytes = random.bits() as usize % longest.min(size - start + 1).max(1);
                let mark = random.one_in(2);
                assert_eq!(
                    marks.all(start, bytes),
                    model[start..start + bytes].iter().all(|m| *m)
                );
                marks.set(start, bytes, mark);
                model[start..start + bytes].fill(mark);
                assert!(!mark || marks.all(start, bytes));
            }
            let made = (0..size).map(|at| marks.all(at, 1));
            assert!(made.eq(model.iter().copied()));
        }
    }

    /// Zeros, and marks for all of them, take no memory until something differs.
    #[test]
    fn untouched_memory_has_no_pages() {
        let mut bytes = Bytes::new(1 << 30, true);
        let pages = |bytes: &Bytes| {
            let marks = bytes.written.as_ref().expect("it is tracked");
            marks.pages.iter().flatten().count()
        };
        assert!(!bytes.is_written(1 << 29, 16));
        bytes.clear(0, 1 << 30);
        assert!(bytes.is_written(0, 1 << 30));
        bytes.store(1 << 29, &[1; 16]);
        assert_eq!(pages(&bytes), 0, "written bytes among written ones");
        bytes.forget(5, 1);
        assert_eq!(pages(&bytes), 1);
        assert!(!bytes.is_written(0, 16) && bytes.is_written(6, 16));
        bytes.clear(0, 1 << 30);
        assert_eq!((pages(&bytes), bytes.data[1 << 29]), (0, 0));
    }
}
