//! `rocov run --per-test`: a label for each test of GoogleTest programs, without a change to them.
//!
//! GoogleTest connects to the address in `GTEST_STREAM_RESULT_TO`, and writes a line to it when a test begins and ends.
//! librocov sees these lines in the program, before they leave it, and opens and closes labels. Here something must only
//! accept the connections: GoogleTest ends a program that cannot connect.

use std::env;
use std::ffi::OsString;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result};
use rocov::settings::variables::GTEST;

use super::child_process;

/// The variable by which GoogleTest finds the address.
const ADDRESS: &str = "GTEST_STREAM_RESULT_TO";

/// The place that GoogleTest programs stream their results to.
pub(crate) struct GtestStream {
    /// `None` if the user has named a place.
    address: Option<SocketAddr>,
    has_begun: Arc<AtomicBool>,
}

impl GtestStream {
    /// Listens until this process ends.
    ///
    /// # Errors
    ///
    /// Fails if this machine has no loopback interface.
    pub(crate) fn new() -> Result<Self> {
        let has_begun = Arc::new(AtomicBool::new(false));
        if env::var_os(ADDRESS).is_some_and(|address| !address.is_empty()) {
            return Ok(Self {
                address: None,
                has_begun,
            });
        }
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.context(
            "cannot listen on 127.0.0.1, where GoogleTest programs report their tests: bring up the loopback \
             interface, or run each test under `rocov run --label NAME`",
        )?;
        let begun = has_begun.clone();
        let (ready, is_ready) = mpsc::channel();
        thread::spawn(move || {
            child_process::leave_signals_to_others();
            _ = ready.send(());
            for stream in listener.incoming().flatten() {
                let begun = begun.clone();
                thread::spawn(move || read(stream, &begun));
            }
        });
        _ = is_ready.recv();
        Ok(Self {
            address: Some(address),
            has_begun,
        })
    }

    /// The variables of the program.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let address = self
            .address
            .map(|address| (ADDRESS, address.to_string().into()));
        [(GTEST.name, "1".into())]
            .into_iter()
            .chain(address)
            .collect()
    }

    /// Returns whether a program has streamed to here, or may have streamed to the user's own place.
    pub(crate) fn has_begun(&self) -> bool {
        self.address.is_none() || self.has_begun.load(Ordering::Relaxed)
    }
}

/// Reads a stream to its end, so that no write of the program has to wait.
fn read(mut stream: TcpStream, has_begun: &AtomicBool) {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {
        has_begun.store(true, Ordering::Relaxed);
    }
}
