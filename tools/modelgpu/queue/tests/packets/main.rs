//! Queues over a fake GPU: packets are written into memory word by word, a real processor thread
//! runs them, and memory, signals and events are looked at afterwards.

mod aql;
mod errors;
mod gpu;
mod loader_lock;
mod sdma;
