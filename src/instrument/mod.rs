//! Counters for code that was compiled without them: from code and back to code that counts.

pub mod amdgcn;
