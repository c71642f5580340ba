//! The null server's command line.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::delay::Delay;
use ground::getopt;
use ground::options::{Argument, OptionRow, Stop, set};

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

const MOST_THREADS: u64 = 1024;

/// Reads the arguments; the error is one sentence.
pub fn parse(args: Vec<String>) -> Result<Command, String> {
    let mut read = Given::default();
    let positional = match getopt::read(OPTIONS, args, &mut read) {
        Ok(positional) => positional,
        Err(Stop::Print(_) | Stop::List(_)) => return Ok(Command::Help),
        Err(Stop::Error(message)) => return Err(message),
    };
    if let Some(surplus) = positional.first() {
        return Err(format!("\"{surplus}\" is no option of the null server; see --help"));
    }
    let port = read.port.unwrap_or(5432);
    let options = Options {
        socket: read.directory.map(|directory| directory.join(format!(".s.PGSQL.{port}"))),
        address: read.address,
        threads: read.threads.unwrap_or(1) as usize,
        delay: read.delay.unwrap_or(Delay::Fixed(0)),
        seed: read.seed.unwrap_or(0),
        max_connections: read.max_connections.map(|most| most as usize),
    };
    if options.socket.is_none() && options.address.is_none() {
        return Err("nothing says where to listen; give --socket-dir DIR or --listen PORT".to_owned());
    }
    Ok(Command::Serve(options))
}

/// The options as far as they were given.
#[derive(Default)]
struct Given {
    directory: Option<PathBuf>,
    port: Option<u64>,
    address: Option<SocketAddr>,
    threads: Option<u64>,
    delay: Option<Delay>,
    seed: Option<u64>,
    max_connections: Option<u64>,
}

type Row = OptionRow<Given, String, ()>;

#[rustfmt::skip]
const OPTIONS: &[Row] = &[
    Row::value("--socket-dir DIR", (), "listen on the Unix socket .s.PGSQL.PORT in this directory",
        |given, value| set(&mut given.directory, Ok::<_, String>(PathBuf::from(value.text)))),
    Row::value("--port N", (), "the port in that socket's name (default: 5432)",
        |given, value| set(&mut given.port, number(value, 1, 65_535))),
    Row::value("--listen [HOST:]PORT", (), "listen on this TCP address (default host: 127.0.0.1); port 0 takes a free one",
        |given, value| set(&mut given.address, address(value.text))),
    Row::value("--threads N", (), "threads that serve clients (default: 1)",
        |given, value| set(&mut given.threads, number(value, 1, MOST_THREADS))),
    Row::value("--delay DELAY", (), "how long each statement takes (default: 0)",
        |given, value| set(&mut given.delay,
            Delay::parse(value.text).map_err(|reason| format!("--delay {}: {reason}", value.text)))),
    Row::value("--seed N", (), "seed of the delays (default: 0)",
        |given, value| set(&mut given.seed, number(value, 0, u64::MAX))),
    Row::value("--max-connections N", (), "refuse further clients (default: as many as files can be open)",
        |given, value| set(&mut given.max_connections, number(value, 1, 1 << 24))),
    Row::action("--help", (), "show this help, then exit", |_| Err(Stop::Print(HELP.to_owned()))),
];

fn number(value: &Argument<'_>, min: u64, max: u64) -> Result<u64, String> {
    let number = value.text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("{} has to be a whole number in {min}..{max}, not \"{}\"", value.option(), value.text))
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
