//! How many threads a launch has, and how they are numbered.

/// Shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
}

impl Shape {
    /// Threads of a CTA.
    pub fn threads(&self) -> u64 {
        // Three extents of 32 bits may be too much, and are too many threads then.
        (self.block.iter()).fold(1, |all, &extent| u64::saturating_mul(all, extent.into()))
    }

    /// CTAs.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// The number of what has these coordinates: what [`Shape::coordinates`] makes of it.
    pub fn number(extent: [u32; 3], coordinates: [u32; 3]) -> u64 {
        let [x, y, z] = coordinates.map(u64::from);
        x + u64::from(extent[0]) * (y + u64::from(extent[1]) * z)
    }

    /// Coordinates of a thread of a CTA, or of a CTA of the grid.
    pub fn coordinates(extent: [u32; 3], index: u64) -> [u32; 3] {
        let (x, y) = (u64::from(extent[0].max(1)), u64::from(extent[1].max(1)));
        [
            (index % x) as u32,
            (index / x % y) as u32,
            (index / x / y) as u32,
        ]
    }
}
