//! Queues that start while the dynamic linker's lock is held, as when HIP unloads code within
//! `dlclose`. A GPU does not need that lock, so its queues must work.

use std::mem::ManuallyDrop;
use std::panic::catch_unwind;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::Library;
use modelgpu_queue::QueueKind;

use crate::aql::dispatch;
use crate::gpu::{DATA, FakeGpu, Queue, until};

static WORKED: AtomicBool = AtomicBool::new(false);

fn use_new_queues() {
    let gpu = FakeGpu::new();
    // The thread of a queue that waits for the lock would not end either.
    let queue = ManuallyDrop::new(Queue::start(&gpu, QueueKind::Sdma));
    const FENCE: u32 = 5;
    queue.put_sdma(&[FENCE, DATA as u32, (DATA >> 32) as u32, 7]);
    until("an SDMA packet", || gpu.read(DATA) == 7);
    drop(ManuallyDrop::into_inner(queue));

    let gpu = FakeGpu::new();
    let queue = ManuallyDrop::new(Queue::start(&gpu, QueueKind::Aql));
    queue.put(dispatch(7, 0));
    queue.ring_all();
    until("a dispatch", || gpu.happened().len() == 1);
    drop(ManuallyDrop::into_inner(queue));
}

extern "C" fn called_by_the_library() {
    WORKED.store(catch_unwind(use_new_queues).is_ok(), Ordering::Relaxed);
}

#[test]
fn queues_need_no_lock_of_the_dynamic_linker() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [source, library] = ["calls.c", "libcalls.so"].map(|name| directory.path().join(name));
    let function = called_by_the_library as *const () as usize;
    let text = format!(
        "__attribute__((constructor)) static void call(void) {{ ((void (*)(void)){function:#x})(); }}\n"
    );
    std::fs::write(&source, text).expect("a file can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
    let compiled = compiler.arg(&source).status().expect("a C compiler");
    assert!(compiled.success());
    // SAFETY: the constructor calls a function of this program.
    unsafe { Library::new(&library) }.expect("a library");
    assert!(WORKED.load(Ordering::Relaxed));
}
