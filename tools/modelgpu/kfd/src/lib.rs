//! `librocov_modelgpu.so`: a stand-in for the amdgpu kernel driver.
//!
//! Preload it into a program. It then answers for `/dev/kfd`, the render nodes and the files that
//! describe GPUs. The unmodified thunk, ROCr and HIP run on GPUs modelled in host memory. It does
//! nothing unless `ROCOV_MODELGPU` names the GPUs (see `config.rs`).
//!
//! Preload it or link it first. If it is loaded with `dlopen` after ROCr, or if ROCr was loaded
//! with `RTLD_DEEPBIND`, the program never calls its functions.
//!
//! Start reading here: [`interpose`] holds the functions that the program calls. [`paths`] decides
//! which files are the driver's. [`topology`] and [`tree`] make the files, [`node`] the devices.
//! [`ioctl`] and [`drm`] answer requests from [`model`], which owns [`memory`], [`event`] and the
//! queues. [`device`] is a queue's view of a GPU, [`instructions`] and [`fidelity`] count for it. Unsafe code is in `interpose`, `sys`, `user`,
//! `node`, `memory` (the promise about mapped regions), `dmabuf`, `drain`, `model` and `runtime`.

mod abi;
mod code;
mod config;
mod device;
mod dmabuf;
mod drain;
mod drm;
mod event;
mod fidelity;
mod foreign;
mod gpu;
mod instructions;
mod interpose;
mod ioctl;
mod journal;
mod log;
mod memory;
mod model;
mod node;
mod paths;
mod placed;
mod runtime;
mod svm;
mod sys;
mod topology;
mod tree;
mod user;
