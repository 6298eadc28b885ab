//! An interpreter for amdgcn code objects: gfx90a and gfx942, wave64.

pub mod memory;
