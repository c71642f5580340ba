//! The simulated operating system: the clock, the network and the connections of each simulated thread, and the runtime
//! of all of them. While the main thread waits for reports, the other threads go on, one step of one thread at a time,
//! in the order of their times.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use ground::poll::Token;

use super::extras::{Extras, Input, clocks};
use super::planted::Planted;
use super::world::{ThreadState, world};
use crate::mode::{ActionsOf, Mode};
use crate::report::{INTERRUPT_CHECK, PanicReporter, Report, Shared};
use crate::runtime::Runtime;
use crate::schedule::Schedule;
use crate::shell::Shell;
use crate::thread::{Share, Thread};
use crate::under_way::UnderWay;
use crate::worker::Worker;
use ground::clock::{Clocks, Nanos, nanos};
use wire::error::ConnectionError;
use wire::network::{Network, SocketAddress, Transport};
use wire::params::Params;
use wire::{Backend, OpenError};
use workload::Workload;

/// The number of steps of threads after which the test assumes that a run does not end.
const MOST_STEPS: u64 = 3_000_000;

/// The operating system as one simulated thread sees it: its clock, its network and its wait for events.
pub struct SimulatedShell<'run> {
    network: SimulatedNetwork,
    /// The time at which the main thread notices the interrupt. From then on all threads are told that the run has
    /// ended, even if they are computing.
    ends: Option<(Nanos, &'run Shared)>,
}

pub struct SimulatedNetwork {
    thread: usize,
}

/// A client's end of a simulated connection.
pub struct SimulatedSocket {
    thread: usize,
    id: usize,
}

impl Drop for SimulatedSocket {
    fn drop(&mut self) {
        world(|world| world.close(self.thread, self.id));
    }
}

impl Read for SimulatedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        world(|world| world.read(self.thread, self.id, buffer))
    }
}

impl Write for SimulatedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        world(|world| world.write(self.thread, self.id, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Transport for SimulatedSocket {
    fn is_connected(&mut self) -> io::Result<bool> {
        world(|world| world.is_connected(self.thread, self.id))
    }

    fn awaits_room(&self) -> bool {
        world(|world| world.is_crowded(self.thread, self.id))
    }

    fn peer_user(&self) -> Result<u32, ConnectionError> {
        Ok(0)
    }
}

impl Network for SimulatedNetwork {
    type Transport = SimulatedSocket;

    fn now(&self) -> Instant {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        *ORIGIN.get_or_init(Instant::now) + Duration::from_nanos(world(|world| world.threads[self.thread].now))
    }

    fn connect(&self, _address: &SocketAddress, _params: &Params) -> Result<SimulatedSocket, ConnectionError> {
        let id = world(|world| world.connect(self.thread)).map_err(ConnectionError::Connect)?;
        Ok(SimulatedSocket { thread: self.thread, id })
    }

    fn register(&self, socket: &SimulatedSocket, token: Token, writable: bool) -> io::Result<()> {
        world(|world| world.register(socket.thread, socket.id, token.0, writable));
        Ok(())
    }

    fn reregister(&self, socket: &SimulatedSocket, token: Token, writable: bool) -> io::Result<()> {
        self.register(socket, token, writable)
    }
}

impl SimulatedShell<'_> {
    fn thread(&self) -> usize {
        self.network.thread
    }
}

impl Shell for SimulatedShell<'_> {
    type Network = SimulatedNetwork;
    type Ready = Vec<usize>;

    const STEPS: bool = true;

    fn now(&self) -> Nanos {
        let now = world(|world| world.read_clock(self.thread()));
        if let Some((_, shared)) = self.ends.filter(|(at, _)| *at <= now) {
            shared.end_run();
        }
        now
    }

    fn sleep_until(&self, at: Nanos) {
        world(|world| world.sleep(self.thread(), at));
    }

    fn network(&self) -> &SimulatedNetwork {
        &self.network
    }

    fn wake_at(&mut self, at: Nanos) -> io::Result<()> {
        world(|world| world.set_alarm(self.thread(), 0, at));
        Ok(())
    }

    fn look_up_at(&mut self, at: Nanos) -> io::Result<()> {
        world(|world| world.set_alarm(self.thread(), 1, at));
        Ok(())
    }

    fn wait(&mut self, ready: &mut Vec<usize>, timeout: Option<Duration>) -> io::Result<usize> {
        ready.clear();
        if world(|world| world.faults.fails_at.is_some_and(|at| world.threads[self.thread()].now >= at)) {
            return Err(io::Error::other("waiting failed"));
        }
        world(|world| world.wait(self.thread(), ready, timeout.map(nanos)));
        Ok(ready.len())
    }

    fn tokens(ready: &Vec<usize>, count: usize) -> impl Iterator<Item = usize> {
        ready.iter().take(count).copied()
    }

    fn cancel_aside(&self, backends: Vec<Arc<Backend>>) -> UnderWay {
        let (under_way, held) = UnderWay::new();
        for process in backends.iter().filter_map(|backend| backend.process()) {
            world(|world| world.cancel_aside(self.thread(), process, Arc::clone(&held)));
        }
        under_way
    }

    fn cancel<'b>(&self, backends: impl Iterator<Item = &'b Arc<Backend>>, _until: Instant) -> Result<(), OpenError> {
        if world(|world| world.faults.is_deaf) {
            world(|world| world.threads[self.thread()].is_cancelled = true);
            return Err(OpenError::from(io::Error::other("nobody listens")));
        }
        for backend in backends {
            world(|world| backend.process().into_iter().for_each(|process| world.cancel(process)));
        }
        Ok(())
    }
}

/// The panic that stands for the end of the whole program with this exit status.
pub struct GivenUp(pub u8);

/// The runtime of simulated threads.
#[derive(Default)]
pub struct SimulatedRuntime<'run> {
    threads: RefCell<Vec<SimulatedThread<'run>>>,
    pub interrupt: AtomicBool,
    interrupt_at: Option<Nanos>,
    shared: Option<&'run Shared>,
    alarm: Option<&'run AtomicBool>,
    alarm_at: Option<Nanos>,
    steps: RefCell<u64>,
    /// The time at which somebody sets the wall clock, and the nanoseconds by which it changes.
    set: Option<(Nanos, i64)>,
    input: RefCell<VecDeque<(Nanos, Input)>>,
    hangs_at: Option<Nanos>,
    /// The number of the thread for which the simulated system cannot make an event loop.
    unmade: Option<usize>,
    /// The defect that a test has planted into the reports of the threads.
    pub planted: RefCell<Option<Planted>>,
}

/// A simulated thread. It goes on by one step each time that its closure is called.
struct SimulatedThread<'run> {
    /// The thread's number in the simulated world.
    number: usize,
    /// True if the thread has nothing to do until the main thread has acted.
    is_parked: bool,
    /// The closure that makes the thread go on by one step. It returns true when the thread ends. `None`: the thread
    /// has ended.
    go_on: Option<Box<dyn FnMut() -> bool + 'run>>,
}

/// Returns the time of the next event for a thread.
fn next_moment(state: &ThreadState) -> Nanos {
    state.idle_until.unwrap_or(state.now).max(state.now)
}

impl<'run> SimulatedRuntime<'run> {
    /// Makes a runtime that has no threads yet. `interrupt_at` and `alarm_at` are the times at which the user
    /// interrupts the run and at which the signal SIGALRM comes.
    pub fn new(
        shared: &'run Shared,
        interrupt_at: Option<Nanos>,
        alarm: Option<&'run AtomicBool>,
        alarm_at: Option<Nanos>,
        extras: &Extras,
    ) -> Self {
        let start = extras.start.as_ref();
        let input = start.and_then(|start| start.input.as_ref()).map(|input| input.parts.clone()).unwrap_or_default();
        Self {
            shared: Some(shared),
            interrupt_at,
            alarm,
            alarm_at,
            set: start.and_then(|start| start.set),
            input: RefCell::new(input.into()),
            hangs_at: extras.hangs_at,
            unmade: extras.unmade,
            ..Self::default()
        }
    }

    /// Returns true if all threads have ended.
    pub fn are_over(&self) -> bool {
        self.threads.borrow().iter().all(|thread| thread.go_on.is_none())
    }

    /// Advances the main thread's time to `now`. If the times of the simulated interrupt and of the signal SIGALRM have
    /// come, sets their flags.
    fn pass_to(&self, now: Nanos) {
        world(|world| world.main = world.main.max(now));
        let main = world(|world| world.main);
        if self.interrupt_at.is_some_and(|at| at <= main) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        if let Some(alarm) = self.alarm.filter(|_| self.alarm_at.is_some_and(|at| at <= main)) {
            alarm.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the thread that goes on next: its index, and the time at which it goes on. The third value is the time
    /// at which the next other thread goes on.
    fn next_thread(&self) -> Option<(usize, Nanos, Nanos)> {
        let threads = self.threads.borrow();
        let runnable = threads.iter().enumerate().filter(|(_, thread)| thread.go_on.is_some() && !thread.is_parked);
        let mut times: Vec<_> = world(|world| {
            runnable.map(|(place, thread)| (next_moment(&world.threads[thread.number]), place)).collect()
        });
        times.retain(|(time, place)| *place > 0 || self.hangs_at.is_none_or(|at| *time < at));
        times.sort_unstable();
        let (time, place) = *times.first()?;
        Some((place, time, times.get(1).map_or(Nanos::MAX, |(time, _)| *time)))
    }

    /// Makes one thread go on by one step. Its waits end at `horizon` at the latest.
    fn go_on(&self, place: usize, horizon: Nanos) {
        *self.steps.borrow_mut() += 1;
        assert!(*self.steps.borrow() < MOST_STEPS, "the run does not end");
        let (thread, mut go_on) = {
            let mut threads = self.threads.borrow_mut();
            (threads[place].number, threads[place].go_on.take())
        };
        world(|world| {
            let main = world.main;
            world.running = thread;
            let state = &mut world.threads[thread];
            state.horizon = horizon.max(next_moment(state));
            (state.has_waited, state.now) = (false, state.now.max(main.min(state.horizon)));
        });
        let has_ended = go_on.as_mut().is_some_and(|go_on| go_on());
        let has_waited = world(|world| world.threads[thread].has_waited);
        let thread = &mut self.threads.borrow_mut()[place];
        thread.is_parked = !has_waited;
        thread.go_on = go_on.filter(|_| !has_ended);
    }
}

impl<'run> Runtime<'run> for SimulatedRuntime<'run> {
    type Shell = SimulatedShell<'run>;

    fn shell(&self) -> io::Result<SimulatedShell<'run>> {
        if self.unmade == Some(self.threads.borrow().len()) {
            return Err(io::Error::other("no event loop"));
        }
        let thread = world(|world| {
            let now = world.main;
            world.threads.push(ThreadState::new(now));
            world.threads.len() - 1
        });
        let noticed_at = self.interrupt_at.map(|at| at + nanos(INTERRUPT_CHECK));
        Ok(SimulatedShell { network: SimulatedNetwork { thread }, ends: noticed_at.zip(self.shared) })
    }

    fn start<M: Mode<SimulatedShell<'run>> + 'run>(
        &self,
        thread: Thread<'run, M, SimulatedShell<'run>>,
        workload: &'run dyn Workload<ActionsOf<M, SimulatedShell<'run>>>,
        share: Share,
        start: Receiver<Schedule>,
        panics: PanicReporter,
    ) -> io::Result<()> {
        let number = thread.shell.thread();
        world(|world| world.truth.making = (number, 0));
        let mut worker = Some(Worker::new(thread, workload, share));
        let mut panics = Some(panics);
        let go_on = move || {
            let has_ended = worker.as_mut().is_none_or(|worker| {
                let has_ended = worker.run(&start);
                worker.check();
                world(|world| world.truth.taken += if has_ended { worker.taken() } else { 0 });
                has_ended
            });
            if has_ended {
                (worker, panics) = (None, None);
            }
            let _ = &panics;
            has_ended
        };
        let thread = SimulatedThread { number, is_parked: false, go_on: Some(Box::new(go_on)) };
        self.threads.borrow_mut().push(thread);
        Ok(())
    }

    fn now(&self) -> Nanos {
        world(|world| {
            world.main += 100;
            world.main
        })
    }

    fn clocks(&self) -> Clocks {
        clocks(self.now(), self.set)
    }

    fn pause(&self, time: Duration) {
        let late = world(|world| world.time(1_000, 300_000));
        self.pass_to(world(|world| world.main) + nanos(time) + late);
    }

    fn read_line(&self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        let now = world(|world| world.main);
        let mut input = self.input.borrow_mut();
        let next = input.front().map_or(Nanos::MAX, |(at, _)| *at);
        if next > now + nanos(patience) || world(|world| world.happens(world.faults.interruption)) {
            self.pass_to(now + nanos(patience));
            return Ok(None);
        }
        self.pass_to(next);
        match input.pop_front() {
            Some((_, Input::Bytes(text))) => Ok(Some(text.into_bytes())),
            Some((_, Input::Failure)) => Err(io::ErrorKind::IsADirectory.into()),
            Some((_, Input::End)) | None => Ok(Some(Vec::new())),
        }
    }

    fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError> {
        self.threads.borrow_mut().iter_mut().for_each(|thread| thread.is_parked = false);
        let deadline = world(|world| world.main) + nanos(patience);
        loop {
            match reports.try_recv() {
                Ok(mut report) => {
                    self.planted.borrow_mut().iter_mut().for_each(|planted| planted.falsify(&mut report));
                    return Ok(report);
                }
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            match self.next_thread() {
                Some((place, time, after)) if time <= deadline => {
                    self.pass_to(time);
                    self.go_on(place, after.min(deadline));
                }
                _ => {
                    self.pass_to(deadline);
                    return Err(RecvTimeoutError::Timeout);
                }
            }
        }
    }

    fn give_up(&self, status: u8) -> ! {
        resume_unwind(Box::new(GivenUp(status)))
    }
}
