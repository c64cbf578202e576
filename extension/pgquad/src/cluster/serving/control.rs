//! How a connection of a client gets from one process of the server to another: over Unix-domain sockets that keep
//! packets apart, in a directory that only the server's own user of the operating system can enter.

use std::io;
use std::mem::{size_of, zeroed, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use socket2::{Domain, SockAddr, Socket, Type};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Room for one passed descriptor with its head.
const CONTROL_BYTES: usize = 64;

/// The name of a worker's socket: relative to the data directory, in the one that base backups leave out.
fn path(place: usize) -> PathBuf {
    PathBuf::from(format!("pg_stat_tmp/pgquad_serving.{place}"))
}

fn new_socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::from(libc::SOCK_SEQPACKET), None)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Listens as the worker with this place.
pub fn listen(place: usize) -> io::Result<Socket> {
    remove(place);
    let socket = new_socket()?;
    socket.bind(&SockAddr::unix(path(place))?)?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Removes the name of a worker's socket.
pub fn remove(place: usize) {
    // What is not there, or cannot be removed, fails when it is bound.
    let _ = std::fs::remove_file(path(place));
}

/// A connection to the worker with this place.
pub fn connect(place: usize) -> io::Result<Socket> {
    let socket = new_socket()?;
    socket.connect(&SockAddr::unix(path(place))?)?;
    Ok(socket)
}

/// The next connection; `None` where there is none.
pub fn accept(listening: &Socket) -> Option<Socket> {
    let (socket, _) = listening.accept().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

/// A message header for one descriptor.
fn header(
    data: &mut libc::iovec,
    control: &mut [MaybeUninit<u64>; CONTROL_BYTES / 8],
) -> libc::msghdr {
    // SAFETY: zeroes are a valid header.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = data;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES;
    header
}

/// Sends bytes together with a descriptor.
pub fn send(to: &Socket, bytes: &[u8], passed: RawFd) -> io::Result<()> {
    let mut data = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut control = [const { MaybeUninit::zeroed() }; CONTROL_BYTES / 8];
    let mut header = header(&mut data, &mut control);
    // SAFETY: the control buffer has room for one descriptor and its head, and is aligned; all of it outlives the call.
    let sent = unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
        let first = libc::CMSG_FIRSTHDR(&header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        libc::CMSG_DATA(first)
            .cast::<RawFd>()
            .write_unaligned(passed);
        libc::sendmsg(to.as_raw_fd(), &header, libc::MSG_NOSIGNAL)
    };
    if sent == bytes.len() as isize {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Takes what [`send`] has sent; `into` has room for all of it.
pub fn receive(from: &Socket, into: &mut [u8]) -> io::Result<(usize, OwnedFd)> {
    let mut data = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut control = [const { MaybeUninit::zeroed() }; CONTROL_BYTES / 8];
    let mut header = header(&mut data, &mut control);
    // SAFETY: both buffers are as long as the header says and outlive the call.
    let received = unsafe { libc::recvmsg(from.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has written whole control messages; a descriptor that was passed is this process's own.
    let passed = unsafe {
        let first = libc::CMSG_FIRSTHDR(&header);
        if first.is_null() || (*first).cmsg_type != libc::SCM_RIGHTS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        OwnedFd::from_raw_fd(libc::CMSG_DATA(first).cast::<RawFd>().read_unaligned())
    };
    Ok((received as usize, passed))
}
