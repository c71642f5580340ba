//! The client's side of PostgreSQL's protocol 3: connection parameters as libpq resolves them, TLS and authentication,
//! and connections that send statements and receive replies without ever blocking.

mod authentication;
mod backend;
pub mod cancel;
mod connection;
mod cursor;
pub mod error;
pub mod frame;
#[cfg(test)]
mod hostile_tests;
mod messages;
pub mod network;
mod opening;
pub mod order;
pub mod params;
pub mod reply;
mod request;
mod results;
pub mod session;
mod session_kind;
pub mod session_mark;
mod socket;
mod startup;
pub mod statement;
mod stream;
pub mod target;
mod tls;
pub mod usual;
pub mod value;

pub use backend::Backend;
pub use connection::{BUFFER_SIZE, Connection, ReceiveBuffer, Scratch};
pub use opening::OpenError;
pub use reply::{Reply, StatementError};
pub use results::{Answered, QueryKind, ResultSet, Rows};
pub use startup::ServerInfo;
pub use stream::Sent;
