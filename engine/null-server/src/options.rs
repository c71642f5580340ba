//! The command line of the null server: a table of options.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ground::getopt;
use ground::options::{Argument, OptionRow, Stop, set};

use crate::delay::Delay;

/// The options.
#[derive(Debug, PartialEq)]
pub struct Options {
    socket_dir: Option<String>,
    port: u16,
    pub address: Option<SocketAddr>,
    pub threads: usize,
    pub delay: Delay,
    pub seed: u64,
    pub max_connections: Option<usize>,
}

impl Options {
    /// The path of the Unix socket, if the server listens on one.
    pub fn socket(&self) -> Option<PathBuf> {
        self.socket_dir.as_ref().map(|directory| ground::text::path(directory).join(format!(".s.PGSQL.{}", self.port)))
    }
}

type Row = OptionRow<Options, String, ()>;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    Row::text("--socket-dir DIR", (), "listen on the Unix socket .s.PGSQL.PORT in this directory",
        |o| &mut o.socket_dir),
    Row::value("--port N", (), "the port in that socket's name (default: 5432)",
        |o, v| set(&mut o.port, number(v, 1..=65_535).map(|port| port as u16))),
    Row::value("--listen [HOST:]PORT", (), "listen on this TCP address (default host: 127.0.0.1); port 0 takes a free one",
        |o, v| set(&mut o.address, address(v.text))),
    Row::value("--threads N", (), "threads that serve clients (default: 1)",
        |o, v| set(&mut o.threads, number(v, 1..=1024).map(|threads| threads as usize))),
    Row::value("--delay DELAY", (),
        "how long each statement takes (default: 0):\n\
         \x20                          500us, uniform:1ms..2ms, exponential:MEAN, lognormal:MEDIAN..P99, \
         mix:0.9*100us,0.1*10ms",
        |o, v| set(&mut o.delay, Delay::parse(v.text).map_err(|reason| format!("--delay {}: {reason}", v.text)))),
    Row::value("--seed N", (), "seed of the delays (default: 0)",
        |o, v| set(&mut o.seed, number(v, 0..=u64::MAX))),
    Row::value("--max-connections N", (), "reject further clients (default: as many as files can be open)",
        |o, v| set(&mut o.max_connections, number(v, 1..=1 << 24).map(|connections| connections as usize))),
    Row::action("--help", (), "show this help, then exit", |_| Err(Stop::Print(help()))),
];

/// The text of `--help`.
fn help() -> String {
    let options: String = TABLE.iter().map(|row| format!("  {:<23}{}\n", row.spec, row.help)).collect();
    format!(
        "\
pgtrial-engine null-server speaks PostgreSQL's protocol and answers any statement at once, with nothing behind it:
what a client reaches against it is the client's own limit.

Usage:
  pgtrial-engine null-server [OPTION]...

Options:
{options}
At least one of --socket-dir and --listen has to be given. SIGINT or SIGTERM ends the server.
"
    )
}

/// Reads the arguments. The error is one sentence.
pub fn parse(args: Vec<String>) -> Result<Options, Stop<String>> {
    let mut options = Options {
        socket_dir: None,
        port: 5432,
        address: None,
        threads: 1,
        delay: Delay::Fixed(0),
        seed: 0,
        max_connections: None,
    };
    if let Some(surplus) = getopt::read(TABLE, args, &mut options)?.first() {
        return Err(Stop::Error(format!("\"{surplus}\" is no option of the null server; see --help")));
    }
    if options.socket_dir.is_none() && options.address.is_none() {
        let message = "nothing says where to listen; give --socket-dir DIR or --listen PORT";
        return Err(Stop::Error(message.to_owned()));
    }
    Ok(options)
}

fn number(value: &Argument, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = value.text.parse().ok().filter(|number| range.contains(number));
    let (option, min, max) = (value.option(), range.start(), range.end());
    number.ok_or_else(|| format!("{option} has to be a whole number in {min}..{max}, not \"{}\"", value.text))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text
            .to_socket_addrs()
            .map_err(|error| error.to_string())
            .and_then(|mut found| found.next().ok_or_else(|| "it has no address".to_owned())),
    };
    found.map_err(|reason| format!("--listen {text}: not an address [HOST:]PORT: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
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

    #[test]
    fn the_help_lists_the_options() {
        let help = help();
        let lines: Vec<_> = help.lines().collect();
        assert_eq!(lines[7], "  --socket-dir DIR       listen on the Unix socket .s.PGSQL.PORT in this directory");
        assert!(lines[12].starts_with("                           500us, uniform:1ms..2ms, "));
    }
}
