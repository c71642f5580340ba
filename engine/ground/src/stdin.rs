//! Reads standard input without a buffer, and without waiting longer than the caller wants. Thus interrupts are
//! noticed, and no byte after the end of a line is consumed.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Reads one byte. Returns an empty vector at the end of the input, and `None` if no byte arrived within `patience` or
/// a signal interrupted the wait.
pub fn read(patience: Duration) -> io::Result<Option<Vec<u8>>> {
    let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    let stdin = io::stdin();
    match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&patience)) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut byte = [0];
    match rustix::io::read(&stdin, &mut byte) {
        Ok(read) => Ok(Some(byte[..read].to_vec())),
        Err(Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
