//! Counters on request, from outside of a running program: dumps over the control socket, snapshots
//! at intervals and on a signal, and the handling of signals that end programs.

mod asked;
mod descriptors;
mod dumps;
mod server;
mod signals;
mod snapshots;
mod socket;
