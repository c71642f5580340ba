//! The command-line options of the null server.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ground::getopt;
use ground::getopt::GetoptError;
use ground::manual::{Manual, entries};
use ground::options::{Argument, OptionRow, Stop, set};

use thiserror::Error;

use crate::delay::{Delay, DelayError};

/// The error in a command line. Each message is a sentence.
#[derive(Debug, Error)]
pub enum OptionError {
    #[error(transparent)]
    Usage(#[from] GetoptError),
    #[error("{option} has to be a whole number in {min}..{max}, not \"{text}\"")]
    Number { option: String, min: u64, max: u64, text: String },
    #[error("--listen {text}: not an address [HOST:]PORT: {error}")]
    Address { text: String, error: io::Error },
    #[error("--listen {0}: not an address [HOST:]PORT: it has no address")]
    NoAddress(String),
    #[error("--delay {text}: {error}")]
    Delay { text: String, error: DelayError },
    #[error("\"{0}\" is not an option of the null server; see --help")]
    Surplus(String),
    #[error("the null server has no address to listen on; give --socket-dir DIR or --listen PORT")]
    NoPlace,
}

/// The options of the null server.
#[derive(Debug, PartialEq)]
pub struct ServerOptions {
    socket_dir: Option<String>,
    port: u16,
    pub address: Option<SocketAddr>,
    pub threads: usize,
    pub delay: Delay,
    /// The number of statements whose delay runs at the same time. `None` if there is no limit.
    pub servers: Option<usize>,
    pub seed: u64,
    pub max_connections: Option<usize>,
}

impl ServerOptions {
    /// Returns the path of the Unix socket, if the server listens on one.
    pub fn socket(&self) -> Option<PathBuf> {
        self.socket_dir.as_ref().map(|directory| ground::text::path(directory).join(format!(".s.PGSQL.{}", self.port)))
    }
}

type Row = OptionRow<ServerOptions, OptionError, ()>;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    Row::text("--socket-dir DIR", (), "listen on the Unix socket .s.PGSQL.PORT in this directory",
        |o| &mut o.socket_dir),
    Row::value("--port N", (), "the port in the name of the Unix socket (default: 5432)",
        |o, v| set(&mut o.port, number(v, 1..=65_535).map(|port| port as u16))),
    Row::value("--listen [HOST:]PORT", (), "listen on this TCP address (default host: 127.0.0.1); port 0: any free port",
        |o, v| set(&mut o.address, address(v.text))),
    Row::value("--threads N", (), "threads that serve clients (default: 1)",
        |o, v| set(&mut o.threads, number(v, 1..=1024).map(|threads| threads as usize))),
    Row::value("--delay DELAY", (),
        "how long each statement takes (default: 0):\n\
         500us, uniform:1ms..2ms, exponential:MEAN, lognormal:MEDIAN..P99, mix:0.9*100us,0.1*10ms",
        |o, v| set(&mut o.delay, Delay::parse(v.text).map_err(|error| OptionError::Delay { text: v.text.to_owned(), error }))),
    Row::value("--servers N", (), "statements that are executed at the same time; others wait in\n\
         a queue, first come, first served (default: no limit)",
        |o, v| set(&mut o.servers, number(v, 1..=1 << 20).map(|servers| servers as usize))),
    Row::value("--seed N", (), "seed of the delays (default: 0)",
        |o, v| set(&mut o.seed, number(v, 0..=u64::MAX))),
    Row::value("--max-connections N", (), "reject clients when this many are connected (default: the limit of open files)",
        |o, v| set(&mut o.max_connections, number(v, 1..=1 << 24).map(|connections| connections as usize))),
    Row::action("--help", (), "show this help, then exit", |_| Err(Stop::Print(manual().help()))),
];

/// Returns the description of the null server and its options, from which its help is made.
pub fn manual() -> Manual {
    Manual {
        about: "\
pgtrial-engine null-server speaks PostgreSQL's protocol and answers any statement at once, with nothing behind it:
the throughput that a client reaches against it is the client's own limit.",
        usage: &["pgtrial-engine null-server [OPTION]..."],
        description: "",
        options: entries(&[TABLE], |()| "Options:"),
        notes: "At least one of --socket-dir and --listen has to be given. SIGINT or SIGTERM ends the server."
            .to_owned(),
    }
}

/// Reads the arguments of the command line.
pub fn parse(args: Vec<String>) -> Result<ServerOptions, Stop<OptionError>> {
    let mut options = ServerOptions {
        socket_dir: None,
        port: 5432,
        address: None,
        threads: 1,
        delay: Delay::Fixed(0),
        servers: None,
        seed: 0,
        max_connections: None,
    };
    if let Some(surplus) = getopt::read(&[TABLE], args, &mut options)?.first() {
        return Err(OptionError::Surplus(surplus.clone()).into());
    }
    if options.socket_dir.is_none() && options.address.is_none() {
        return Err(OptionError::NoPlace.into());
    }
    Ok(options)
}

fn number(value: &Argument, range: RangeInclusive<u64>) -> Result<u64, OptionError> {
    let number = value.text.parse().ok().filter(|number| range.contains(number));
    let (min, max) = range.into_inner();
    number.ok_or_else(|| OptionError::Number { option: value.option(), min, max, text: value.text.to_owned() })
}

fn address(text: &str) -> Result<SocketAddr, OptionError> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let found = text.to_socket_addrs().map_err(|error| OptionError::Address { text: text.to_owned(), error })?;
    found.into_iter().next().ok_or_else(|| OptionError::NoAddress(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<ServerOptions, OptionError> {
        parse(line.split_whitespace().map(str::to_owned).collect()).map_err(|stop| match stop {
            Stop::Error(error) => error,
            Stop::Print(text) | Stop::List(text) => panic!("{text}"),
        })
    }

    #[test]
    fn a_port_alone_is_of_the_loopback_address() {
        assert_eq!(options("--listen 5433").unwrap().address, Some("127.0.0.1:5433".parse().unwrap()));
        assert_eq!(options("--listen [::1]:0").unwrap().address, Some("[::1]:0".parse().unwrap()));
    }

    #[test]
    fn the_socket_is_named_by_its_port() {
        let socket = |line| options(line).unwrap().socket().unwrap();
        assert_eq!(socket("--socket-dir /a"), PathBuf::from("/a/.s.PGSQL.5432"));
        assert_eq!(socket("--port 7 --socket-dir /a"), PathBuf::from("/a/.s.PGSQL.7"));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence() {
        for (line, expected) in [
            ("", "the null server has no address to listen on; give --socket-dir DIR or --listen PORT"),
            ("--listen 1 --threads 0", "--threads has to be a whole number in 1..1024, not \"0\""),
            ("--listen 1 --delay 5", "--delay 5: \"5\" is not a time such as 0, 500us or 1.5ms"),
            ("--listen 1 more", "\"more\" is not an option of the null server; see --help"),
            ("--listen 1 --rows", "unrecognized option '--rows'"),
            ("--listen", "option '--listen' requires an argument"),
        ] {
            assert_eq!(options(line).unwrap_err().to_string(), expected);
        }
        assert!(options("--listen nowhere").unwrap_err().to_string().starts_with("--listen nowhere: not an address"));
    }

    #[test]
    fn the_help_lists_the_options() {
        let help = manual().help();
        let lines: Vec<_> = help.lines().collect();
        assert_eq!(lines[7], "  --socket-dir DIR         listen on the Unix socket .s.PGSQL.PORT in this directory");
        assert!(lines[12].starts_with("                           500us, uniform:1ms..2ms, "), "{help}");
    }
}
