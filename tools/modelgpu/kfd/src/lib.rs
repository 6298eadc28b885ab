//! `librocov_modelgpu.so`: a stand-in for the amdgpu kernel driver.
//!
//! Preloaded into a program, it answers for `/dev/kfd`, the render nodes and the files that
//! describe GPUs, so that the unmodified thunk, ROCr and HIP run on GPUs modelled in host
//! memory. It does nothing at all unless `ROCOV_MODELGPU` names the GPUs (see `config.rs`).
//!
//! It must be preloaded (or linked first): loaded with `dlopen` after ROCr, or under a ROCr that
//! was loaded with `RTLD_DEEPBIND`, its functions are never called.
//!
//! Where to start reading: [`interpose`] is what the program calls; [`paths`] decides which files
//! are the driver's; [`topology`] and [`tree`] make the files, [`node`] the devices; [`ioctl`] and
//! [`drm`] answer requests from [`model`], which owns [`memory`], [`event`] and the queues;
//! [`device`] is a GPU as its queues see it. Unsafe code is in `interpose`, `sys`, `user`,
//! `node`, `memory` (the promise about mapped regions), `dmabuf`, `model` and `runtime`.

mod abi;
mod config;
mod device;
mod dmabuf;
mod drm;
mod event;
mod gpu;
mod interpose;
mod ioctl;
mod log;
mod memory;
mod model;
mod node;
mod paths;
mod runtime;
mod sys;
mod topology;
mod tree;
mod user;
