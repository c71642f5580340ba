//! The lists of hosts, addresses and ports in the connection parameters. Each host becomes one endpoint.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use super::environment::Environment;
use super::error::ParamsError;
use super::files::Passwords;
use super::options::{Options, is_space, non_empty};
use super::settings::integer;
use super::types::{Address, Endpoint};
use ground::text;

/// The port if the parameters name none.
const DEFAULT_PORT: &str = "5432";

/// The maximum length of a socket's path, in bytes: the size of `sun_path` less one for the final zero byte.
const MAXIMUM_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// A host as the user wrote it. Its port and address have not been checked yet.
pub struct Host {
    place: Place,
    /// The name that messages show and that is verified against the server's certificate.
    name: String,
    /// True if the user named the host. False if it is the default, or if only its address (`hostaddr`) was given.
    is_named: bool,
    port: String,
}

enum Place {
    Directory,
    Name,
    Address(String),
}

/// Splits the lists in `host`, `hostaddr` and `port` into hosts. A single port is used for every host.
pub fn split(options: &Options, env: &dyn Environment) -> Result<Vec<Host>, ParamsError> {
    let list = |keyword| non_empty(options.get(keyword)).map(|text| text.split(',').collect::<Vec<_>>());
    let names = list("host");
    let addresses = list("hostaddr");
    let ports = list("port").unwrap_or_else(|| vec![DEFAULT_PORT]);
    let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);

    if let Some(names) = names.as_ref().filter(|names| names.len() != count) {
        return Err(ParamsError::HostsAndAddresses { hosts: names.len(), addresses: count });
    }
    if ports.len() != 1 && ports.len() != count {
        return Err(ParamsError::PortsAndHosts { ports: ports.len(), hosts: count });
    }

    let item =
        |list: &Option<Vec<&str>>, index: usize| non_empty(list.as_ref().map(|list| list[index])).map(str::to_owned);
    let host = |index: usize| {
        let port = if ports.len() == 1 { ports[0] } else { ports[index] };
        let port = non_empty(Some(port)).unwrap_or(DEFAULT_PORT).to_owned();
        let (place, name) = match (item(&addresses, index), item(&names, index)) {
            (Some(address), name) => {
                let name = name.unwrap_or_else(|| address.clone());
                (Place::Address(address), name)
            }
            (None, Some(name)) if name.starts_with(['/', '@']) => (Place::Directory, name),
            (None, Some(name)) => (Place::Name, name),
            (None, None) => default_place(&port, env),
        };
        Host { place, name, is_named: item(&names, index).is_some(), port }
    };
    Ok((0..count).map(host).collect())
}

/// Returns the first default socket directory that contains a server's socket or, if none does, the first one that
/// exists, or else the last one. Returns `localhost` on platforms that have no such directories.
fn default_place(port: &str, env: &dyn Environment) -> (Place, String) {
    let directories = env.socket_directories();
    let file = format!(".s.PGSQL.{}", port.trim_matches(is_space));
    let chosen = directories
        .iter()
        .find(|directory| directory.join(&file).exists())
        .or_else(|| directories.iter().find(|directory| directory.is_dir()))
        .or_else(|| directories.last());
    match chosen {
        Some(directory) => (Place::Directory, text::of_path(directory)),
        None => (Place::Name, "localhost".to_owned()),
    }
}

impl Host {
    /// Checks the port, the address and the length of the socket's path, and adds the password. An error in a host is
    /// stored in the endpoint, and is reported when that host is tried, as libpq does.
    pub fn into_endpoint(self, passwords: &Passwords, env: &dyn Environment) -> Endpoint {
        let password = passwords.find(self.name_in_passfile(env), &self.port);
        let port = self.port_number();
        let address = port.clone().and_then(|port| match &self.place {
            Place::Directory => Ok(Address::Unix(socket_file(&self.name, port)?)),
            Place::Name => Ok(Address::Tcp(self.name.clone())),
            Place::Address(address) => Ok(Address::Tcp(numeric(address)?)),
        });
        Endpoint { address, host_name: self.name, is_named: self.is_named, port: port.unwrap_or_default(), password }
    }

    fn port_number(&self) -> Result<u16, ParamsError> {
        let number = integer(&self.port, "port")?;
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        port.ok_or_else(|| ParamsError::InvalidPort(self.port.clone()))
    }

    fn name_in_passfile(&self, env: &dyn Environment) -> &str {
        let is_own = |directory: &PathBuf| *directory == text::path(&self.name);
        match self.place {
            Place::Directory if env.socket_directories().iter().any(is_own) => "localhost",
            _ => &self.name,
        }
    }
}

fn socket_file(directory: &str, port: u16) -> Result<PathBuf, ParamsError> {
    let path = format!("{directory}/.s.PGSQL.{port}");
    if text::bytes(&path).len() > MAXIMUM_SOCKET_PATH {
        return Err(ParamsError::LongSocketPath { path, most: MAXIMUM_SOCKET_PATH });
    }
    Ok(text::path(&path))
}

/// Reads a numeric address in any notation that the system's resolver accepts. The zone of a link-local address, such
/// as `fe80::1%eth0`, is left to the resolver. Zones of other addresses are numbers.
fn numeric(address: &str) -> Result<String, ParamsError> {
    let unknown = || ParamsError::NoAddress(address.to_owned());
    if old_notation(address).is_some() {
        return Ok(address.to_owned());
    }
    let (ip, zone) = address.split_once('%').map_or((address, None), |(ip, zone)| (ip, Some(zone)));
    let ip: IpAddr = ip.parse().map_err(|_| unknown())?;
    let takes_zone = |zone: &str| match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local() || zone.parse::<u32>().is_ok(),
    };
    if zone.is_none_or(takes_zone) { Ok(address.to_owned()) } else { Err(unknown()) }
}

/// Reads an IPv4 address as `inet_aton` does: one to four numbers, which are decimal, octal (`0177`) or hexadecimal
/// (`0x7f`). The last number fills all bytes that are left.
pub fn old_notation(address: &str) -> Option<Ipv4Addr> {
    let numbers: Vec<u32> = address.split('.').map(c_number).collect::<Option<_>>()?;
    let (last, bytes) = numbers.split_last().filter(|(_, bytes)| bytes.len() < 4)?;
    let left = 32 - 8 * bytes.len() as u32;
    let fits = bytes.iter().all(|byte| *byte <= 0xff) && u64::from(*last) < 1 << left;
    let shifted = |(place, byte): (usize, &u32)| byte << (24 - 8 * place);
    fits.then(|| Ipv4Addr::from(bytes.iter().enumerate().map(shifted).fold(*last, |sum, part| sum | part)))
}

fn c_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_in_old_notations() {
        let old = ["127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0x7F000001", "10.1.258"];
        for (written, meant) in [("127.1", [127, 0, 0, 1]), ("0x7f000002", [127, 0, 0, 2]), ("10.1.258", [10, 1, 1, 2])]
        {
            assert_eq!(old_notation(written), Some(Ipv4Addr::from(meant)));
        }
        for written in old.into_iter().chain(["::1", "::1%1", "fe80::1%eth0"]) {
            assert_eq!(numeric(written).as_deref(), Ok(written));
        }
        let wrong = ["nope", "256.1.1.1", "127.0.0.256", "1.2.3.4.5", "08.1", "0x", "1..2", "", "::1%lo", "4294967296"];
        for written in wrong {
            assert!(numeric(written).is_err(), "{written}");
        }
    }
}
