//! Whole programs, from source to report, on the real HIP and ROCr over the modelled GPU. Each file
//! tests one promise. `tools/test` builds the workspace and installs the needed packages.

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod archs_differ;
mod builds;
mod copies;
mod corpus;
mod cuda;
mod early_exits;
mod endings;
mod faults;
mod guest;
mod instructions;
mod kernels_known;
mod kernels_match_host;
mod kernels_on_threads;
mod labels;
mod lines_of_traces;
mod matrix;
mod messages;
mod never_launched;
mod never_unloaded;
mod no_gpu_use;
mod non_atomic;
mod not_ended;
mod on_request;
mod openmp;
mod optimized;
mod passing_faults;
mod per_test;
mod process_numbers;
mod profiles_accepted;
mod referee;
mod released;
mod report_figures;
mod requests;
mod run_time;
mod sample_report;
mod sampled;
mod settings;
mod traced;
mod two_gpus;
mod uniformity;
mod uninstrumented;
mod upstream;
mod ways_in;
