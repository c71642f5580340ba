//! The null server's command line.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::delay::Delay;
use ground::getopt::{Getopt, LongOption};

/// What `--help` prints.
pub const HELP: &str = "\
pgtrial-engine null-server speaks PostgreSQL's protocol and answers any statement at once, with nothing behind it:
what a client reaches against it is the client's own ceiling.

Usage:
  pgtrial-engine null-server [OPTION]...

Options:
  --socket-dir DIR       listen on the Unix socket .s.PGSQL.PORT in this directory
  --port N               the port in that socket's name (default: 5432)
  --listen [HOST:]PORT   listen on this TCP address (default host: 127.0.0.1); port 0 takes a free one
  --threads N            threads that serve clients (default: 1)
  --delay DELAY          how long each statement takes (default: 0):
                           500us, uniform:1ms..2ms, exponential:MEAN, lognormal:MEDIAN..P99, mix:0.9*100us,0.1*10ms
  --seed N               seed of the delays (default: 0)
  --max-connections N    refuse further clients (default: as many as files can be open)
  --help                 show this help, then exit

At least one of --socket-dir and --listen has to be given. SIGINT or SIGTERM ends the server.
";

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    Help,
    Serve(Options),
}

/// All options.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub socket: Option<PathBuf>,
    pub address: Option<SocketAddr>,
    pub threads: usize,
    pub delay: Delay,
    pub seed: u64,
    pub max_connections: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    SocketDir,
    Port,
    Listen,
    Threads,
    Delay,
    Seed,
    MaxConnections,
    Help,
}

const LONGS: [LongOption<Id>; 8] = [
    LongOption { name: "socket-dir", value: true, id: Id::SocketDir, addition: false },
    LongOption { name: "port", value: true, id: Id::Port, addition: false },
    LongOption { name: "listen", value: true, id: Id::Listen, addition: false },
    LongOption { name: "threads", value: true, id: Id::Threads, addition: false },
    LongOption { name: "delay", value: true, id: Id::Delay, addition: false },
    LongOption { name: "seed", value: true, id: Id::Seed, addition: false },
    LongOption { name: "max-connections", value: true, id: Id::MaxConnections, addition: false },
    LongOption { name: "help", value: false, id: Id::Help, addition: false },
];

const MOST_THREADS: u64 = 1024;

/// Reads the arguments; the error is one sentence.
pub fn parse(args: Vec<String>) -> Result<Command, String> {
    let mut options =
        Options { socket: None, address: None, threads: 1, delay: Delay::Fixed(0), seed: 0, max_connections: None };
    let mut directory = None;
    let mut port = 5432;
    let mut getopt = Getopt::new("null-server", args, &[], &LONGS);
    for option in getopt.by_ref() {
        let (id, value) = option.map_err(|error| error.to_string().trim_start_matches("null-server: ").to_owned())?;
        let value = value.unwrap_or_default();
        match id {
            Id::Help => return Ok(Command::Help),
            Id::SocketDir => directory = Some(PathBuf::from(value)),
            Id::Port => port = number(&value, "--port", 1, 65_535)?,
            Id::Listen => options.address = Some(address(&value)?),
            Id::Threads => options.threads = number(&value, "--threads", 1, MOST_THREADS)? as usize,
            Id::Seed => options.seed = number(&value, "--seed", 0, u64::MAX)?,
            Id::MaxConnections => {
                options.max_connections = Some(number(&value, "--max-connections", 1, 1 << 24)? as usize);
            }
            Id::Delay => {
                options.delay = Delay::parse(&value).map_err(|reason| format!("--delay {value}: {reason}"))?;
            }
        }
    }
    if let Some(surplus) = getopt.into_positional().first() {
        return Err(format!("\"{surplus}\" is no option of the null server; see --help"));
    }
    options.socket = directory.map(|directory| directory.join(format!(".s.PGSQL.{port}")));
    if options.socket.is_none() && options.address.is_none() {
        return Err("nothing says where to listen; give --socket-dir DIR or --listen PORT".to_owned());
    }
    Ok(Command::Serve(options))
}

fn number(text: &str, option: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{option} has to be a whole number in {min}..{max}, not \"{text}\""))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text
            .to_socket_addrs()
            .map(|mut all| all.next())
            .map_err(|error| error.to_string())
            .and_then(|found| found.ok_or_else(|| "it has no address".to_owned())),
    };
    found.map_err(|reason| format!("--listen {text}: not an address [HOST:]PORT: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        match parse(line.split_whitespace().map(str::to_owned).collect()) {
            Ok(Command::Serve(options)) => Ok(options),
            Ok(Command::Help) => Err("help".to_owned()),
            Err(error) => Err(error),
        }
    }

    #[test]
    fn a_port_alone_is_of_the_loopback_address() {
        assert_eq!(options("--listen 5433").unwrap().address, Some("127.0.0.1:5433".parse().unwrap()));
        assert_eq!(options("--listen [::1]:0").unwrap().address, Some("[::1]:0".parse().unwrap()));
    }

    #[test]
    fn the_socket_is_named_by_its_port() {
        let socket = |line| options(line).unwrap().socket.unwrap();
        assert_eq!(socket("--socket-dir /a"), PathBuf::from("/a/.s.PGSQL.5432"));
        assert_eq!(socket("--port 7 --socket-dir /a"), PathBuf::from("/a/.s.PGSQL.7"));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence() {
        for (line, expected) in [
            ("", "nothing says where to listen; give --socket-dir DIR or --listen PORT"),
            ("--listen 1 --threads 0", "--threads has to be a whole number in 1..1024, not \"0\""),
            ("--listen 1 --delay 5", "--delay 5: \"5\" is not a time such as 0, 500us or 1.5ms"),
            ("--listen 1 more", "\"more\" is no option of the null server; see --help"),
            ("--listen 1 --rows", "unrecognized option '--rows'"),
            ("--listen", "option '--listen' requires an argument"),
        ] {
            assert_eq!(options(line).unwrap_err(), expected);
        }
        assert!(options("--listen nowhere").unwrap_err().starts_with("--listen nowhere: not an address"));
    }
}
