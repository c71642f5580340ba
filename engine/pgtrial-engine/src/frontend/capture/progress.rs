//! Prints on standard error how much of the logs has been read.

use capture::make::ReadProgress;
use ground::clock::{Clock, Nanos, SECOND, seconds};

use super::options::CAPTURE;

/// The time between two progress lines.
const INTERVAL: Nanos = 5 * SECOND;

const MEGABYTE: f64 = 1e6;

/// The progress display. It prints a line every five seconds.
pub struct Display {
    clock: Clock,
    next: Nanos,
    is_quiet: bool,
}

impl Display {
    pub fn start(is_quiet: bool) -> Self {
        Self { clock: Clock::start(), next: INTERVAL, is_quiet }
    }

    pub fn show(&mut self, progress: ReadProgress) {
        let now = self.clock.now();
        if self.is_quiet || now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        CAPTURE.info(line(progress, now));
    }
}

/// Returns the progress line. `time` is the time since the start, from which the remaining time is estimated.
fn line(ReadProgress { read, total }: ReadProgress, time: Nanos) -> String {
    let megabytes = read as f64 / MEGABYTE;
    // If a log grows while it is read, more bytes may have been read than there were at the start. The remaining time
    // is then unknown.
    match total.filter(|total| *total >= read && read > 0) {
        None => format!("{megabytes:.0} MB read"),
        Some(total) => {
            let left = seconds(time) * (total - read) as f64 / read as f64;
            let percent = 100.0 * read as f64 / total as f64;
            format!("{megabytes:.0} of {:.0} MB read ({percent:.0}%), about {left:.0} s left", total as f64 / MEGABYTE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_by_bytes() {
        let progress = ReadProgress { read: 250_000_000, total: Some(1_000_000_000) };
        assert_eq!(line(progress, 5 * SECOND), "250 of 1000 MB read (25%), about 15 s left");
        assert_eq!(line(ReadProgress { total: None, ..progress }, 5 * SECOND), "250 MB read");
    }
}
