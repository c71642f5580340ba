//! Connection parameters, resolved as libpq 18 resolves them for pgbench.
//!
//! The command line, a connection string or URI, a service file, the `PG*` environment variables, the password file and
//! the built-in defaults become one [`Params`]. Everything that depends on the machine is read through [`Environment`].
//!
//! Source: PostgreSQL 18 documentation, 32.1.2 "Parameter Key Words", 32.15 to 32.18.

mod auth;
mod conninfo;
mod environment;
mod error;
mod files;
mod hosts;
mod options;
mod settings;
mod types;

pub use auth::{AuthMethod, RequireAuth};
pub use environment::{Environment, ProcessEnvironment};
pub use error::ParamsError;
pub use hosts::old_notation;
pub use types::*;

use options::{Options, non_empty};

/// Resolves the parameters of the command line and all other sources to a complete set of parameters.
///
/// An error in one host of a list is stored in the endpoint of that host, since a connection to another host may
/// succeed.
///
/// # Errors
/// Returns an error with the message of libpq if a parameter is malformed or unknown, or contradicts another one.
pub fn resolve(given: &Given, env: &dyn Environment) -> Result<Params, ParamsError> {
    let mut options = from_command_line(given, env)?;
    files::fill_from_service(&mut options, env)?;
    options.fill_from_environment(env);

    let user = non_empty(options.get("user")).map(str::to_owned).map_or_else(|| system_user(env), Ok)?;
    let dbname = non_empty(options.get("dbname")).unwrap_or(&user).to_owned();
    let hosts = hosts::split(&options, env)?;
    let mut warnings = Vec::new();
    let passwords = files::Passwords::for_session(&options, &user, &dbname, env, &mut warnings);
    let require_auth = options.get("require_auth").map_or_else(|| Ok(RequireAuth::any()), RequireAuth::parse)?;
    let channel_binding = settings::channel_binding(&options)?;
    let tls = settings::tls(&options, env)?;
    settings::refuse_unsupported(&options)?;
    let target_session_attrs = settings::target_session_attrs(&options)?;
    let load_balance_random = settings::load_balance_random(&options)?;
    let endpoints = hosts.into_iter().map(|host| host.into_endpoint(&passwords, env)).collect();

    Ok(Params {
        endpoints,
        user,
        dbname,
        tls,
        application_name: settings::application_name(&options),
        options: non_empty(options.get("options")).map(str::to_owned),
        connect_timeout: settings::connect_timeout(&options),
        target_session_attrs,
        load_balance_random,
        client_encoding: settings::client_encoding(&options, env),
        channel_binding,
        require_auth,
        required_peer: non_empty(options.get("requirepeer")).map(str::to_owned),
        tcp: settings::tcp(&options),
        protocol: settings::protocol_versions(&options)?,
        settings: settings::startup(&options, env),
        warnings,
    })
}

/// Returns the parameters that the command line gives, either by options or by a connection string in `dbname`. If both
/// give the same parameter, the connection string wins for pgbench, as in libpq, and the option wins for sysbench.
fn from_command_line(given: &Given, env: &dyn Environment) -> Result<Options, ParamsError> {
    let mut options = Options::default();
    let dbname = match &given.dbname {
        Some(name) => name.clone(),
        None => default_database(env)?,
    };
    if given.options_win {
        conninfo::parse(&dbname, &mut options)?;
        store_given(given, &mut options)?;
    } else {
        store_given(given, &mut options)?;
        conninfo::parse(&dbname, &mut options)?;
    }
    if !given.fallback_application_name.is_empty() {
        options.store("fallback_application_name", &given.fallback_application_name)?;
    }
    Ok(options)
}

/// Stores the parameters that the command line gives by options other than the database name or connection string.
fn store_given(given: &Given, options: &mut Options) -> Result<(), ParamsError> {
    let password = given.password.as_ref().map(Password::reveal);
    for (keyword, value) in [
        ("host", given.host.as_deref()),
        ("port", given.port.as_deref()),
        ("user", given.user.as_deref()),
        ("password", password),
        ("sslmode", given.sslmode.as_deref()),
    ] {
        if let Some(value) = non_empty(value) {
            options.store(keyword, value)?;
        }
    }
    Ok(())
}

/// Returns pgbench's own default for the database name, which does not depend on `-U` (tried with pgbench 18).
fn default_database(env: &dyn Environment) -> Result<String, ParamsError> {
    let mut variables = ["PGDATABASE", "PGUSER"].into_iter().filter_map(|name| env.var(name));
    variables.find(|value| !value.is_empty()).map_or_else(|| system_user(env), Ok)
}

fn system_user(env: &dyn Environment) -> Result<String, ParamsError> {
    env.user_name().ok_or(ParamsError::NoUser)
}

#[cfg(test)]
mod tests;
