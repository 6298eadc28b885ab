//! Queues over a fake GPU. The tests write packets into memory word by word, a real processor
//! thread runs them, and the tests then check memory, signals and events.

mod aql;
mod errors;
mod gpu;
mod idle;
mod loader_lock;
mod pm4;
mod priority;
mod sdma;
