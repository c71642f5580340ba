//! The client of one of sysbench's tests of the machine: a program that does the work of one of sysbench's threads.

use crate::program::{AbortReason, Action, Fatal, Program, StagedActions};
use ground::random::Random;

/// The work that a test of the machine does in one thread.
pub trait Work: 'static {
    /// Prepares the work once, before the first event.
    fn prepare(&mut self) -> Result<(), Fatal> {
        Ok(())
    }

    /// Begins another event.
    fn begin(&mut self);

    /// Does the next part of the event, which usually takes at most a few hundredths of a second. Returns true if the
    /// event is complete.
    fn go_on(&mut self) -> bool;
}

/// A client that does the work of one thread.
pub struct HostClient<W> {
    work: W,
    stage: Stage,
    /// The reason for which the event loop has to abort this client; `None` as long as there is none.
    aborted: Option<AbortReason>,
}

/// The states of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The load has not begun.
    Start,
    Event,
    /// No event is in progress: the client is between two events, or after the last one.
    Idle,
}

impl<W: Work> HostClient<W> {
    /// Makes a client that has not prepared its work yet.
    pub fn new(work: W) -> Self {
        Self { work, stage: Stage::Start, aborted: None }
    }
}

impl<W: Work> Program<StagedActions> for HostClient<W> {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        self.work.begin();
        self.stage = Stage::Event;
        0
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        match self.stage {
            Stage::Event if !self.work.go_on() => return Action::Pause,
            Stage::Event | Stage::Idle => {}
            Stage::Start => {
                if let Err(fatal) = self.work.prepare() {
                    return Action::Abort(self.aborted.insert(AbortReason::Fatal(fatal.lines)));
                }
            }
        }
        self.stage = Stage::Idle;
        Action::End
    }

    /// Drops an event that the client has begun although its scheduled start lies after the end of the load.
    fn stop(&mut self) {
        self.stage = Stage::Idle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work whose events have three parts each.
    struct Counted {
        left: u32,
        is_broken: bool,
    }

    impl Work for Counted {
        fn prepare(&mut self) -> Result<(), Fatal> {
            if self.is_broken { Err(Fatal::new("broken")) } else { Ok(()) }
        }

        fn begin(&mut self) {
            self.left = 3;
        }

        fn go_on(&mut self) -> bool {
            self.left -= 1;
            self.left == 0
        }
    }

    fn client(is_broken: bool) -> HostClient<Counted> {
        HostClient::new(Counted { left: 0, is_broken })
    }

    fn actions(client: &mut HostClient<Counted>, count: usize) -> Vec<String> {
        (0..count).map(|_| format!("{:?}", client.next_action())).collect()
    }

    #[test]
    fn a_client_pauses_between_the_parts_of_an_event() {
        let mut client = client(false);
        assert_eq!(actions(&mut client, 1), ["End"]);
        for _ in 0..2 {
            client.begin(&mut Random::seeded(1));
            assert_eq!(actions(&mut client, 3), ["Pause", "Pause", "End"]);
        }
        client.stop();
        assert_eq!(actions(&mut client, 1), ["End"]);
    }

    #[test]
    fn an_event_that_never_started_is_left_out() {
        let mut client = client(false);
        actions(&mut client, 1);
        client.begin(&mut Random::seeded(1));
        client.stop();
        assert_eq!((actions(&mut client, 1), client.work.left), (vec!["End".to_owned()], 3));
    }

    #[test]
    fn a_client_that_cannot_get_ready_aborts() {
        assert_eq!(actions(&mut client(true), 1), ["Abort(Fatal([\"broken\"]))"]);
    }
}
