//! The local memory of a warp's threads.
//!
//! In pages that come to be when they are written. The words of all lanes at one offset lie beside each other, as a
//! register's do: lanes that use the same offset, as nearly all accesses do, use a column.

use crate::sim::memory::bytes::Marks;
use crate::sim::warp::registers::{Column, LANES};

/// Bytes of a thread in a page (assigned).
const PAGE: usize = 256;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// A part of the local memory of all lanes.
#[derive(Clone, Debug, Hash)]
struct Page {
    words: [Column; PAGE / WORD],
    /// What was written, lane by lane, where that is tracked.
    written: Option<Box<[Marks; LANES]>>,
    /// Words that may not be zero.
    used: std::ops::Range<usize>,
}

impl Page {
    fn new(track: bool) -> Page {
        Page {
            words: [[0; LANES]; PAGE / WORD],
            written: track.then(|| Box::new(std::array::from_fn(|_| Marks::new(PAGE, false)))),
            used: 0..0,
        }
    }

    /// These words will be written.
    fn touch(&mut self, word: usize, count: usize) {
        self.used = match self.used.is_empty() {
            true => word..word + count,
            false => self.used.start.min(word)..self.used.end.max(word + count),
        };
    }
}

/// The local memory of a warp's threads.
#[derive(Clone, Debug, Default, Hash)]
pub struct Local {
    size: u32,
    track: bool,
    pages: Vec<Option<Box<Page>>>,
    /// Whether any of them may have been used since the last [`Local::reset`].
    used: bool,
}

impl Local {
    /// `size` bytes a thread; `track` marks what is written.
    pub fn new(size: u32, track: bool) -> Local {
        Local {
            size,
            track,
            pages: vec![None; (size as usize).div_ceil(PAGE)],
            used: false,
        }
    }

    /// Whether it is what [`Local::new`] makes of these.
    pub fn fits(&self, size: u32, track: bool) -> bool {
        (self.size, self.track) == (size, track)
    }

    /// Bytes that its pages take, about.
    pub fn bytes(&self) -> usize {
        self.pages.iter().flatten().count() * PAGE * LANES
    }

    /// Bytes of a thread.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether stores are marked.
    pub fn is_tracked(&self) -> bool {
        self.track
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        if !std::mem::take(&mut self.used) {
            return;
        }
        let track = self.track;
        for page in self.pages.iter_mut().flatten() {
            let used = std::mem::take(&mut page.used);
            page.words[used].fill([0; LANES]);
            if track {
                **page = Page::new(track);
            }
        }
    }

    fn page_mut(&mut self, offset: usize) -> &mut Page {
        let track = self.track;
        self.used = true;
        self.pages[offset / PAGE].get_or_insert_with(|| Box::new(Page::new(track)))
    }

    /// `N` columns from an offset that is a multiple of their bytes.
    #[inline(always)]
    pub(in crate::sim) fn columns<const N: usize>(&self, offset: usize) -> [Column; N] {
        match &self.pages[offset / PAGE] {
            Some(page) => {
                let words = &page.words[offset % PAGE / WORD..][..N];
                std::array::from_fn(|word| words[word])
            }
            None => [[0; LANES]; N],
        }
    }

    /// Columns to write, without marks, from an offset that is a multiple of their bytes.
    #[inline(always)]
    pub(in crate::sim) fn columns_mut(&mut self, offset: usize, count: usize) -> &mut [Column] {
        let page = self.page_mut(offset);
        let first = offset % PAGE / WORD;
        page.touch(first, count);
        &mut page.words[first..first + count]
    }

    /// The value of a lane at an offset that is a multiple of its 1, 2, 4, 8 or 16 bytes, zero-extended.
    pub(in crate::sim) fn load(&self, lane: usize, offset: usize, bytes: u32) -> u128 {
        let Some(page) = &self.pages[offset / PAGE] else {
            return 0;
        };
        let first = offset % PAGE / WORD;
        if (bytes as usize) < WORD {
            let value = page.words[first][lane] >> (8 * (offset % WORD));
            return u128::from(value & (u32::MAX >> (32 - 8 * bytes)));
        }
        let words = &page.words[first..first + bytes as usize / WORD];
        let words = words.iter().rev();
        words.fold(0, |value, column| value << 32 | u128::from(column[lane]))
    }

    /// Writes the low `bytes` of a value of a lane, at an offset that is a multiple of them.
    pub(in crate::sim) fn store(&mut self, lane: usize, offset: usize, bytes: u32, value: u128) {
        let page = self.page_mut(offset);
        let first = offset % PAGE / WORD;
        let count = (bytes as usize).div_ceil(WORD);
        page.touch(first, count);
        if let Some(written) = &mut page.written {
            written[lane].set(offset % PAGE, bytes as usize, true);
        }
        if (bytes as usize) < WORD {
            let shift = 8 * (offset % WORD) as u32;
            let mask = u32::MAX >> (32 - 8 * bytes) << shift;
            let word = &mut page.words[first][lane];
            *word = *word & !mask | (value as u32) << shift & mask;
            return;
        }
        for (index, column) in page.words[first..first + count].iter_mut().enumerate() {
            column[lane] = (value >> (32 * index)) as u32;
        }
    }

    /// Whether all of a lane's bytes there were written; true when that is not tracked.
    pub(in crate::sim) fn is_written(&self, lane: usize, offset: usize, bytes: usize) -> bool {
        match &self.pages[offset / PAGE] {
            Some(page) => {
                let written = page.written.as_ref();
                written.is_none_or(|marks| marks[lane].all(offset % PAGE, bytes))
            }
            None => !self.track,
        }
    }

    /// Marks a lane's bytes as not written.
    pub(in crate::sim) fn forget(&mut self, lane: usize, offset: usize, bytes: usize) {
        if let Some(written) = &mut self.page_mut(offset).written {
            written[lane].set(offset % PAGE, bytes, false);
        }
    }
}
