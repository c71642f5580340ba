//! The rows that are the same in the option tables of several front ends whatever the struct is in which they are stored:
//! those for the connection, `--version` and `--help`.

/// The heading of the options for the output in a help text.
pub const OUTPUT: &str = "Output:";

/// The heading of the options for the connection in a help text.
pub const CONNECTION: &str = "Connection:";

/// Makes the rows for the connection, of the front end's type `Row`. The first argument is their group. The second is the
/// field in which they are stored, a [`wire::params::Given`].
macro_rules! connection_rows {
    ($group:expr, $($server:ident).+) => {
        [
            Row::text("-d, --dbname=DBNAME", $group, "database name or connection string",
                |options| &mut options.$($server).+.dbname),
            Row::text("-h, --host=HOSTNAME", $group, "database server host or socket directory",
                |options| &mut options.$($server).+.host),
            Row::text("-p, --port=PORT", $group, "database server port number",
                |options| &mut options.$($server).+.port),
            Row::text("-U, --username=USERNAME", $group, "connect as specified database user",
                |options| &mut options.$($server).+.user),
        ]
    };
}

/// Makes the rows `--version` and `--help`, of the front end's type `Row`, for a front end with the constant `NAME` and
/// the function `manual`. The argument is their group.
macro_rules! about_rows {
    ($group:expr) => {
        [
            Row::action("-V, --version", $group, "output version information, then exit", |_| {
                Err(ground::options::Stop::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))))
            }),
            Row::action("-?, --help", $group, "show this help, then exit", |_| {
                Err(ground::options::Stop::Print(manual().help()))
            }),
        ]
    };
}

pub(crate) use {about_rows, connection_rows};
