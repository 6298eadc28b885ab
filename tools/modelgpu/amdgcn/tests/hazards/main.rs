//! Planted hazards: each rule finds code that lacks a wait, and says nothing about the code with it. The numbers of wait
//! states are those of LLVM's `GCNHazardRecognizer`.

mod accumulation;
mod matrices;
mod memory;
mod rdna;
mod run;
mod states;
