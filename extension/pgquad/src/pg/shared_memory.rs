//! Pieces of the server's shared memory, for what all sessions count and remember together. Where the library is
//! not preloaded there are none.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

/// A piece of shared memory.
pub struct Piece {
    /// Its name among all pieces of the server.
    pub name: &'static CStr,
    /// Its size, 0 for none; asked when the number of backends is known.
    pub bytes: fn() -> usize,
    /// Takes the piece, which lasts as long as the server. Called by one process at a time; `is_new`: it is zeroed, and
    /// nobody else has it yet.
    pub start: unsafe fn(piece: *mut u8, is_new: bool),
}

/// All of them; set once, before the server starts.
static mut PIECES: &[Piece] = &[];
static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;

/// Asks for these pieces of shared memory; called once from `_PG_init`.
pub fn init(pieces: &'static [Piece]) {
    // SAFETY: `_PG_init` runs once, in the postmaster when the library is preloaded.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        PIECES = pieces;
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(start);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the postmaster, which knows the number of backends by then.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            previous();
        }
        for piece in PIECES {
            pg_sys::RequestAddinShmemSpace((piece.bytes)());
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn start() {
    // SAFETY: called by the postmaster when shared memory is there, alone; each piece is as large as was asked for.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            previous();
        }
        for piece in PIECES {
            let (bytes, mut found) = ((piece.bytes)(), false);
            if bytes == 0 {
                continue;
            }
            let memory = pg_sys::ShmemInitStruct(piece.name.as_ptr(), bytes, &mut found);
            if !found {
                memory.cast::<u8>().write_bytes(0, bytes);
            }
            (piece.start)(memory.cast(), !found);
        }
    }
}
