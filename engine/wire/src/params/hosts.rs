//! Lists of hosts, addresses and ports: one endpoint for each.

use std::net::IpAddr;
use std::path::PathBuf;

use super::environment::Environment;
use super::files::Passwords;
use super::options::{Options, is_space, non_empty};
use super::settings::integer;
use super::types::{Address, Endpoint};
use ground::text;

/// The port where none is given.
const DEFAULT_PORT: &str = "5432";

/// The longest socket path, in bytes: the size of `sun_path` less the final zero.
const MAXIMUM_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// One host as the user wrote it. Its port and address are not checked yet.
pub struct Host {
    place: Place,
    /// The name for messages and verification.
    name: String,
    port: String,
}

enum Place {
    Directory,
    Name,
    Address(String),
}

/// Splits the lists of `host`, `hostaddr` and `port`; a single port is that of every host.
pub fn split(options: &Options, env: &dyn Environment) -> Result<Vec<Host>, String> {
    let list = |keyword| non_empty(options.get(keyword)).map(|text| text.split(',').collect::<Vec<_>>());
    let names = list("host");
    let addresses = list("hostaddr");
    let ports = list("port").unwrap_or_else(|| vec![DEFAULT_PORT]);
    let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);

    if let Some(names) = names.as_ref().filter(|names| names.len() != count) {
        return Err(format!("could not match {hosts} host names to {count} hostaddr values", hosts = names.len()));
    }
    if ports.len() != 1 && ports.len() != count {
        return Err(format!("could not match {ports} port numbers to {count} hosts", ports = ports.len()));
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
        Host { place, name, port }
    };
    Ok((0..count).map(host).collect())
}

/// The default socket directory that has a server's socket, or else the first that exists; `localhost` where the
/// platform has no such directories.
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
    /// Checks port, address and length of the path, and adds the password.
    pub fn into_endpoint(self, passwords: &Passwords, env: &dyn Environment) -> Result<Endpoint, String> {
        let number = integer(&self.port, "port")?;
        let port = u16::try_from(number)
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("invalid port number: \"{}\"", self.port))?;
        let password = passwords.find(self.name_in_passfile(env), &self.port);
        let address = match self.place {
            Place::Directory => Address::Unix(socket_file(&self.name, port)?),
            Place::Name => Address::Tcp(self.name.clone()),
            Place::Address(address) => Address::Tcp(numeric(address)?),
        };
        Ok(Endpoint { address, host_name: self.name, port, password })
    }

    fn name_in_passfile(&self, env: &dyn Environment) -> &str {
        let is_own = |directory: &PathBuf| *directory == text::path(&self.name);
        match self.place {
            Place::Directory if env.socket_directories().iter().any(is_own) => "localhost",
            _ => &self.name,
        }
    }
}

fn socket_file(directory: &str, port: u16) -> Result<PathBuf, String> {
    let path = format!("{directory}/.s.PGSQL.{port}");
    if text::bytes(&path).len() > MAXIMUM_SOCKET_PATH {
        return Err(format!("Unix-domain socket path \"{path}\" is too long (maximum {MAXIMUM_SOCKET_PATH} bytes)"));
    }
    Ok(text::path(&path))
}

/// A numeric address, whose zone (`fe80::1%eth0`) is left to the resolver.
fn numeric(address: String) -> Result<String, String> {
    let without_zone = address.split('%').next().unwrap_or("");
    match without_zone.parse::<IpAddr>() {
        Ok(_) => Ok(address),
        Err(_) => Err(format!("could not parse network address \"{address}\": Name or service not known")),
    }
}
