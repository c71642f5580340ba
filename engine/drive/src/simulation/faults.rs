//! The faults of a simulated run, and how often they happen.

use super::scenario::Draw;
use ground::clock::Nanos;

const MS: Nanos = 1_000_000;

/// The probability of each fault, and the time that things take, nanoseconds.
#[derive(Debug, Clone)]
pub struct Faults {
    /// The probability that a connection is refused, by the listener or the server.
    pub refusal: f64,
    /// The probability that a connection or a reply never comes.
    pub silence: f64,
    /// The probability that the listener's queue is full.
    pub crowd: f64,
    /// The probability that a system call is interrupted by a signal.
    pub interruption: f64,
    /// The probability that a read, a write or a reply is done in parts.
    pub fragment: f64,
    /// The probability that a statement fails with an error.
    pub error: f64,
    /// The probability that a statement cannot be parsed.
    pub rejection: f64,
    /// The probability that the connection breaks within a reply.
    pub fracture: f64,
    /// The probability that a reply comes seconds later.
    pub stall: f64,
    /// The probabilities that some time after a reply the server ends the session, and that it sends an unsolicited
    /// message.
    pub dismissal: f64,
    pub chatter: f64,
    /// True if the server ignores cancel requests.
    pub is_deaf: bool,
    /// The time at which waits for events begin to fail.
    pub fails_at: Option<Nanos>,
    /// The least and the longest service time.
    pub service: (Nanos, Nanos),
    /// The longest time by which a thread wakes too late. It is less than the time after which a thread is given up.
    pub lateness: Nanos,
    /// The time that a reading of the clock takes.
    pub clock_ns: Nanos,
}

impl Draw {
    /// Draws the probability of a rare fault, which only some scenarios have.
    fn fault(&mut self, most: f64) -> f64 {
        if self.happens(0.3) { self.magnitude(most / 100.0, most) } else { 0.0 }
    }

    /// Draws the faults of a scenario.
    pub fn faults(&mut self) -> Faults {
        let is_quiet = self.happens(0.25);
        let mut fault = |most: f64| if is_quiet { 0.0 } else { self.fault(most) };
        let (refusal, silence, crowd) = (fault(0.3), fault(0.01), fault(0.5));
        let (interruption, fragment) = (fault(0.1), fault(0.5));
        let (error, rejection, fracture, stall) = (fault(0.3), fault(0.05), fault(0.02), fault(0.01));
        let least = self.magnitude(10_000.0, 5e6) as Nanos;
        let most = (least as f64 * self.magnitude(1.0, 30.0)) as Nanos;
        let lateness = if is_quiet { MS } else { self.magnitude(1e6, 9e8) as Nanos };
        Faults {
            refusal,
            silence,
            crowd,
            interruption,
            fragment,
            error,
            rejection,
            fracture,
            stall,
            dismissal: 0.0,
            chatter: 0.0,
            is_deaf: false,
            fails_at: None,
            service: (least, most),
            lateness,
            clock_ns: 20,
        }
    }
}
