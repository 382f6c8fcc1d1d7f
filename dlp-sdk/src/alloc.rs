//! The allocator of plugins: blocks of powers of two, freed ones kept by size.
//!
//! A plugin lives for one message or runs for days on small ones; either way its memory should not
//! be grown, because growing is a system call for the host. So it begins with what the linker left
//! free of the initial memory, and asks for more only when that is used up.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;

const PAGE: usize = 65_536;
/// Blocks of 2^4 to 2^31 bytes.
const SMALLEST: u32 = 4;
const CLASSES: usize = 28;

#[global_allocator]
static ALLOCATOR: Blocks = Blocks(UnsafeCell::new(State {
    free: [ptr::null_mut(); CLASSES],
    next: 0,
    end: 0,
}));

struct Blocks(UnsafeCell<State>);

struct State {
    /// Heads of the lists of free blocks; each block begins with the address of the next.
    free: [*mut u8; CLASSES],
    next: usize,
    end: usize,
}

// SAFETY: a plugin has one thread; the target has no other.
unsafe impl Sync for Blocks {}

unsafe extern "C" {
    /// Where the linker's data ends. Only its address means something.
    static __heap_base: u8;
}

fn class(layout: &Layout) -> usize {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST);
    (size.next_power_of_two().trailing_zeros() - SMALLEST) as usize
}

// SAFETY: every block is a power of two at least as large as size and alignment, and begins at a
// multiple of the smaller of its size and 64 KiB; a block is in a free list or in use, never both.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: no other reference is alive: one thread, and nothing in here calls back.
        let state = unsafe { &mut *self.0.get() };
        let class = class(&layout);
        if class >= CLASSES {
            return ptr::null_mut();
        }
        let head = state.free[class];
        if !head.is_null() {
            // SAFETY: a free block holds the address of the next one.
            state.free[class] = unsafe { *head.cast::<*mut u8>() };
            return head;
        }
        state.fresh(1 << (class as u32 + SMALLEST))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block is ours again and has room for an address.
        unsafe {
            let state = &mut *self.0.get();
            let class = class(&layout);
            *block.cast::<*mut u8>() = state.free[class];
            state.free[class] = block;
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else {
            return ptr::null_mut();
        };
        if class(&wanted) == class(&layout) {
            return block;
        }
        // SAFETY: both blocks are ours and do not overlap.
        unsafe {
            let other = self.alloc(wanted);
            if !other.is_null() {
                ptr::copy_nonoverlapping(block, other, layout.size().min(size));
                self.dealloc(block, layout);
            }
            other
        }
    }
}

impl State {
    /// A block from memory that was never used.
    fn fresh(&mut self, size: usize) -> *mut u8 {
        if self.end == 0 {
            self.next = &raw const __heap_base as usize;
            self.end = core::arch::wasm32::memory_size(0) * PAGE;
        }
        let start = self.next.next_multiple_of(size.min(PAGE));
        let Some(stop) = start.checked_add(size) else {
            return ptr::null_mut();
        };
        if stop > self.end {
            let pages = (stop - self.end).div_ceil(PAGE);
            if core::arch::wasm32::memory_grow(0, pages) == usize::MAX {
                return ptr::null_mut();
            }
            self.end += pages * PAGE;
        }
        self.next = stop;
        start as *mut u8
    }
}
