//! Memory for small allocations when the system has none left.
//!
//! Rust ends a process that cannot allocate. A guest must not do that. Large allocations, whose size comes
//! from a device or a file, are therefore fallible, and small ones then come from here.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a reserve in bytes: enough to report losses and to drain code objects of ordinary size, one
/// after the other. Pages that are never used take no memory.
const RESERVE_BYTES: usize = 1 << 20;

/// The size in bytes of the largest block that a reserve gives: the decoder of names takes some 43 KiB at
/// once.
const LARGEST_BLOCK: usize = 64 << 10;

/// The alignment of a reserve in bytes, and the largest alignment of a block.
const ALIGNMENT: usize = 64;

#[repr(align(64))]
struct Room(UnsafeCell<[u8; RESERVE_BYTES]>);

/// The allocator `A`, with a reserve for small blocks that it cannot allocate.
///
/// Blocks lie one after the other. Their room is free again when the last block is freed, or when all are. A
/// drain frees all its blocks.
pub struct Reserve<A> {
    inner: A,
    /// The number of blocks in the upper half, and the offset of the next one in the lower: one word, because
    /// threads change both at once.
    taken: AtomicU64,
    room: Room,
}

// SAFETY: only blocks give access to the room, and each block belongs to one caller.
unsafe impl<A: Sync> Sync for Reserve<A> {}

/// The decoded value of [`Reserve::taken`].
#[derive(Clone, Copy)]
struct Taken {
    blocks: u32,
    /// The offset from the start of the room in bytes, at most [`RESERVE_BYTES`].
    next: u32,
}

impl Taken {
    fn from_word(word: u64) -> Self {
        Self {
            blocks: (word >> 32) as u32,
            next: word as u32,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.blocks) << 32 | u64::from(self.next)
    }

    /// The state with one more block, and the offset of the block. `None` if there is no room for it.
    fn with(self, layout: Layout) -> Option<(Self, usize)> {
        let start = (self.next as usize).next_multiple_of(layout.align());
        let next = start + layout.size();
        let fits =
            layout.align() <= ALIGNMENT && layout.size() <= LARGEST_BLOCK && next <= RESERVE_BYTES;
        let taken = Self {
            blocks: self.blocks + 1,
            next: next as u32,
        };
        fits.then_some((taken, start))
    }

    /// The state without the block of `size` bytes at `start`.
    fn without(self, start: usize, size: usize) -> Self {
        let blocks = self.blocks - 1;
        let next = match self.next as usize {
            _ if blocks == 0 => 0,
            next if next == start + size => start as u32,
            _ => self.next,
        };
        Self { blocks, next }
    }
}

impl<A> Reserve<A> {
    /// Wraps `inner` with a reserve.
    pub const fn new(inner: A) -> Self {
        Self {
            inner,
            taken: AtomicU64::new(0),
            room: Room(UnsafeCell::new([0; RESERVE_BYTES])),
        }
    }

    /// Allocates a block of the reserve. Null if there is no room.
    fn give(&self, layout: Layout) -> *mut u8 {
        let mut start = 0;
        let given = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let (taken, at) = Taken::from_word(word).with(layout)?;
                start = at;
                Some(taken.word())
            });
        match given {
            // SAFETY: the block ends within the room.
            Ok(_) => unsafe { self.room.0.get().cast::<u8>().add(start) },
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// The offset of `block` in the room. `None` if it is not from there.
    fn place(&self, block: *mut u8) -> Option<usize> {
        let start = block.addr().checked_sub(self.room.0.get().addr())?;
        (start < RESERVE_BYTES).then_some(start)
    }

    fn take_back(&self, start: usize, size: usize) {
        let changed = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                Some(Taken::from_word(word).without(start, size).word())
            });
        debug_assert!(changed.is_ok(), "it is always changed");
    }
}

// SAFETY: blocks come from the inner allocator, or are parts of the room that no other block has.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Reserve<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises it.
        let block = unsafe { self.inner.alloc(layout) };
        if block.is_null() {
            return self.give(layout);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises it.
        let mut block = unsafe { self.inner.alloc_zeroed(layout) };
        if block.is_null() {
            block = self.give(layout);
            if !block.is_null() {
                // SAFETY: the block has this size. It may hold old bytes.
                unsafe { block.write_bytes(0, layout.size()) };
            }
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.place(block).is_none() {
            // SAFETY: the caller promises it, and the block is not from the room.
            let grown = unsafe { self.inner.realloc(block, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the alignment and the valid size come from the caller.
        let grown = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !grown.is_null() {
            // SAFETY: both blocks have this many bytes, and the new block is not shared.
            unsafe { block.copy_to_nonoverlapping(grown, layout.size().min(size)) };
            // SAFETY: the caller promises it, and the old block is not used any more.
            unsafe { self.dealloc(block, layout) };
        }
        grown
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.place(block) {
            Some(start) => self.take_back(start, layout.size()),
            // SAFETY: the caller promises it, and the block is not from the room.
            None => unsafe { self.inner.dealloc(block, layout) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An allocator without memory.
    struct Nothing;

    // SAFETY: an allocator may always return null. Then nothing is freed.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            std::ptr::null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
            unreachable!("nothing was allocated");
        }
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_do_not_share_bytes_and_their_room_comes_back() {
        let reserve = Box::new(Reserve::new(Nothing));
        // SAFETY: layouts are not empty, and each block is freed once with its own layout.
        unsafe {
            let first = reserve.alloc(layout(3, 1));
            first.write_bytes(7, 3);
            let second = reserve.alloc_zeroed(layout(100, 32));
            assert_eq!(second.addr() % 32, 0);
            assert_eq!(second.addr() - first.addr(), 32);
            // The first block is freed first and leaves a gap. The last one's room is free again.
            let third = reserve.realloc(first, layout(3, 1), 5000);
            assert_eq!(std::slice::from_raw_parts(third, 3), [7; 3]);
            reserve.dealloc(third, layout(5000, 1));
            assert_eq!(reserve.alloc(layout(8, 1)), third);
            reserve.dealloc(third, layout(8, 1));
            reserve.dealloc(second, layout(100, 32));
            assert_eq!(reserve.alloc(layout(8, 1)), first, "all are freed");
        }
    }

    #[test]
    fn what_is_large_is_not_given() {
        let reserve = Box::new(Reserve::new(Nothing));
        // SAFETY: layouts are not empty.
        unsafe {
            assert!(reserve.alloc(layout(LARGEST_BLOCK + 1, 1)).is_null());
            assert!(reserve.alloc(layout(8, 2 * ALIGNMENT)).is_null());
            for _ in 0..RESERVE_BYTES / LARGEST_BLOCK {
                assert!(!reserve.alloc(layout(LARGEST_BLOCK, 1)).is_null());
            }
            assert!(reserve.alloc(layout(1, 1)).is_null());
        }
    }
}
