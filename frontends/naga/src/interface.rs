//! What a launch must give to a translated entry point.

/// What a shader may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `var<uniform>`.
    Uniform,
    /// `var<storage, read>`.
    Read,
    /// `var<storage, read_write>`.
    ReadWrite,
}

/// A buffer that the entry point uses. The kernel gets it as two parameters that follow each other: the address, an
/// i64 that is a multiple of [`BoundBuffer::ALIGNMENT`], and the length in bytes, an i32 without a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundBuffer {
    /// `@group`.
    pub group: u32,
    /// `@binding`.
    pub binding: u32,
    /// The variable's name, where it has one.
    pub name: Option<String>,
    /// What is done with it.
    pub access: Access,
    /// The least number of bytes that it must have: the size of its type, with one element of an array without a
    /// length.
    pub least_bytes: u64,
    /// Whether its type ends with an array whose length is that of the binding.
    pub has_runtime_length: bool,
    /// The index of the kernel's parameter for the address; that for the length is the next.
    pub parameter: usize,
}

impl BoundBuffer {
    /// What the address of a bound buffer must be a multiple of, in bytes: the largest access of a lane.
    pub const ALIGNMENT: u64 = 16;
}

/// The threads of a block; `u32::MAX` of more than a number of 32 bits can say.
pub(crate) fn threads(workgroup_size: [u32; 3]) -> u32 {
    let sizes = workgroup_size.into_iter();
    sizes.fold(1, |all: u32, size| all.saturating_mul(size))
}

/// What a launch of an entry point needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The entry point's name in the shader.
    pub entry: String,
    /// The name of the kernel's symbol.
    pub symbol: String,
    /// Invocations of a workgroup: the threads of a block, along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Workgroup memory in bytes, which the compiled kernel has as its static shared memory.
    pub shared_bytes: u32,
    /// The buffers that are used, by group and binding.
    pub buffers: Vec<BoundBuffer>,
    /// The bytes of `var<immediate>`; 0 where there is none. Otherwise the kernel's last parameter is the address of so
    /// many bytes, a multiple of [`BoundBuffer::ALIGNMENT`].
    pub immediate_bytes: u32,
}
