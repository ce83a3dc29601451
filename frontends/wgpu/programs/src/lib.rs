//! Programs of wgpu that nobody here wrote: what there is lies in `tests/` and in the script `lampshade`.
