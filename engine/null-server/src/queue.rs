//! The queue in which statements wait for one of a limited number of simulated servers. Each server executes one
//! statement at a time, in the order in which the statements came.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ground::clock::Nanos;

/// For each of the simulated servers, the time at which the server is free again. The memory that the queue takes does
/// not depend on the number of statements that wait.
#[derive(Debug)]
pub struct ServiceQueue {
    free_at: BinaryHeap<Reverse<Nanos>>,
}

impl ServiceQueue {
    pub fn new(servers: usize) -> Self {
        Self { free_at: (0..servers).map(|_| Reverse(0)).collect() }
    }

    /// Adds a statement that arrives at `arrival` and takes `service` time. The server that is free first executes it.
    /// Returns the time at which the statement ends.
    pub fn serve(&mut self, arrival: Nanos, service: Nanos) -> Nanos {
        let Some(mut first) = self.free_at.peek_mut() else { return arrival + service };
        let end = arrival.max(first.0) + service;
        *first = Reverse(end);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_wait_for_the_server_that_is_free_first() {
        let mut queue = ServiceQueue::new(2);
        assert_eq!(queue.serve(10, 100), 110);
        assert_eq!(queue.serve(20, 30), 50);
        assert_eq!(queue.serve(30, 5), 55);
        assert_eq!(queue.serve(60, 1), 61);
        assert_eq!(queue.serve(61, 60), 121);
        assert_eq!(queue.serve(62, 60), 170);
    }
}
