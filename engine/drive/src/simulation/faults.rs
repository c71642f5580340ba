//! The faults of a simulated run, and how often they happen.

use super::scenario::Draw;
use ground::clock::{MS, Nanos};

/// The probability of each fault, and the durations of actions in nanoseconds.
#[derive(Debug, Clone)]
pub struct Faults {
    /// The probability that a connection is refused, by the listening socket or by the server.
    pub refusal: f64,
    /// The probability that a connection is never made or a reply never arrives.
    pub silence: f64,
    /// The probability that the queue of the listening socket is full.
    pub crowd: f64,
    /// The probability that a system call is interrupted by a signal.
    pub interruption: f64,
    /// The probability that a read, a write or a reply is split into several pieces.
    pub fragment: f64,
    /// The probability that a statement fails when it is executed.
    pub error: f64,
    /// The probability that a statement fails when it is parsed.
    pub rejection: f64,
    /// The probability that the connection breaks in the middle of a reply.
    pub fracture: f64,
    /// The probability that a reply arrives seconds late.
    pub stall: f64,
    /// The probability that, some time after a reply, the server ends the session.
    pub dismissal: f64,
    /// The probability that, some time after a reply, the server sends an unsolicited message.
    pub chatter: f64,
    /// True if the server ignores cancel requests.
    pub is_deaf: bool,
    /// The time at which all waits for events begin to fail.
    pub fails_at: Option<Nanos>,
    /// The shortest and the longest time that a server takes for a statement.
    pub service: (Nanos, Nanos),
    /// The longest time by which a thread wakes too late. It is shorter than the time after which the main thread stops
    /// waiting for a thread.
    pub lateness: Nanos,
    /// The shortest time that it takes to read the clock.
    pub clock_ns: Nanos,
}

impl Faults {
    /// Servers without faults, which take 0.1 ms to 1 ms for a statement.
    pub const NONE: Self = Self {
        refusal: 0.0,
        silence: 0.0,
        crowd: 0.0,
        interruption: 0.0,
        fragment: 0.0,
        error: 0.0,
        rejection: 0.0,
        fracture: 0.0,
        stall: 0.0,
        dismissal: 0.0,
        chatter: 0.0,
        is_deaf: false,
        fails_at: None,
        service: (100_000, 1_000_000),
        lateness: MS,
        clock_ns: 20,
    };
}

impl Draw {
    /// Draws the probability of a rare fault, which is at most `most`. Only three scenarios in ten have the fault; in
    /// the others the probability is 0.
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
            service: (least, most),
            lateness,
            ..Faults::NONE
        }
    }
}
