//! Memory for small allocations where the system has none left.
//!
//! Rust ends a process that cannot allocate. That is not for a guest to do: what is large, as a device or
//! a file says, is asked for in a way that may fail, and what is small comes from here then.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a reserve: enough to say what is lost and to drain code objects of ordinary size, one after
/// the other. Pages that are never used take no memory.
pub const RESERVE_BYTES: usize = 1 << 20;

/// The largest block that a reserve gives, in bytes: what inflates names takes some 43 KiB at once.
pub const LARGEST_BLOCK: usize = 64 << 10;

/// Alignment of a reserve, in bytes, and the largest that a block may want.
const ALIGNMENT: usize = 64;

#[repr(align(64))]
struct Room(UnsafeCell<[u8; RESERVE_BYTES]>);

/// The allocator `A`, with a reserve for small blocks that it does not have.
///
/// Blocks are put one behind the other. Room comes back when the last of them is freed, or all are: a
/// drain gives back what it has taken.
pub struct Reserve<A> {
    inner: A,
    /// How many blocks there are, in the upper half, and where the next one goes: one word, as threads
    /// change both at once.
    taken: AtomicU64,
    room: Room,
}

// SAFETY: the room is reached through blocks alone, of which each is one caller's.
unsafe impl<A: Sync> Sync for Reserve<A> {}

/// What [`Reserve::taken`] says.
#[derive(Clone, Copy)]
struct Taken {
    blocks: u32,
    /// Bytes from the start of the room, at most [`RESERVE_BYTES`].
    next: u32,
}

impl Taken {
    fn of(word: u64) -> Taken {
        Taken {
            blocks: (word >> 32) as u32,
            next: word as u32,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.blocks) << 32 | u64::from(self.next)
    }

    /// With one more block, and where it starts; `None` where there is no room for it.
    fn with(self, layout: Layout) -> Option<(Taken, usize)> {
        let start = (self.next as usize).next_multiple_of(layout.align());
        let next = start + layout.size();
        let fits =
            layout.align() <= ALIGNMENT && layout.size() <= LARGEST_BLOCK && next <= RESERVE_BYTES;
        let taken = Taken {
            blocks: self.blocks + 1,
            next: next as u32,
        };
        fits.then_some((taken, start))
    }

    /// Without the block of `size` bytes at `start`.
    fn without(self, start: usize, size: usize) -> Taken {
        let blocks = self.blocks - 1;
        let next = match self.next as usize {
            _ if blocks == 0 => 0,
            next if next == start + size => start as u32,
            _ => self.next,
        };
        Taken { blocks, next }
    }
}

impl<A> Reserve<A> {
    /// `inner` with a reserve.
    pub const fn of(inner: A) -> Reserve<A> {
        Reserve {
            inner,
            taken: AtomicU64::new(0),
            room: Room(UnsafeCell::new([0; RESERVE_BYTES])),
        }
    }

    /// A block of the reserve, null where there is none.
    fn give(&self, layout: Layout) -> *mut u8 {
        let mut start = 0;
        let given = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let (taken, at) = Taken::of(word).with(layout)?;
                start = at;
                Some(taken.word())
            });
        match given {
            // SAFETY: the block ends within the room.
            Ok(_) => unsafe { self.room.0.get().cast::<u8>().add(start) },
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// Where in the room `block` starts, if it is from there.
    fn place(&self, block: *mut u8) -> Option<usize> {
        let start = block.addr().checked_sub(self.room.0.get().addr())?;
        (start < RESERVE_BYTES).then_some(start)
    }

    fn take_back(&self, start: usize, size: usize) {
        let changed = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                Some(Taken::of(word).without(start, size).word())
            });
        debug_assert!(changed.is_ok(), "it is always changed");
    }
}

// SAFETY: blocks are those of the inner allocator, or stretches of the room that no other block has.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Reserve<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises; likewise below.
        let block = unsafe { self.inner.alloc(layout) };
        if block.is_null() {
            return self.give(layout);
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let mut block = unsafe { self.inner.alloc_zeroed(layout) };
        if block.is_null() {
            block = self.give(layout);
            if !block.is_null() {
                // SAFETY: the block is of this size, and may have been another's before.
                unsafe { block.write_bytes(0, layout.size()) };
            }
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.place(block).is_none() {
            // SAFETY: as above.
            let grown = unsafe { self.inner.realloc(block, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller's alignment, and a size that is none too large with it.
        let grown = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !grown.is_null() {
            // SAFETY: both have as many bytes, and the new block is nobody else's.
            unsafe { block.copy_to_nonoverlapping(grown, layout.size().min(size)) };
            // SAFETY: as above: the old one is not used any more.
            unsafe { self.dealloc(block, layout) };
        }
        grown
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.place(block) {
            Some(start) => self.take_back(start, layout.size()),
            // SAFETY: as above.
            None => unsafe { self.inner.dealloc(block, layout) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An allocator that has nothing.
    struct Nothing;

    // SAFETY: an allocator may always return null, and so never has anything freed.
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
        let reserve = Box::new(Reserve::of(Nothing));
        // SAFETY: layouts are not empty, blocks are freed once with their own.
        unsafe {
            let first = reserve.alloc(layout(3, 1));
            first.write_bytes(7, 3);
            let second = reserve.alloc_zeroed(layout(100, 32));
            assert_eq!(second.addr() % 32, 0);
            assert_eq!(second.addr() - first.addr(), 32);
            // Freed first, it leaves a gap; the last one's room is there again.
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
        let reserve = Box::new(Reserve::of(Nothing));
        // SAFETY: as above.
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
