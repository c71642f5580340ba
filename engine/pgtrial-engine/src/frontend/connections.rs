//! How many connections a server allows.

use wire::session::Session;

/// The most connections that the server allows this user, and what limits them; `None` if it does not report a limit.
pub fn connection_limit(session: &mut Session) -> Option<(usize, String)> {
    // the limits of roles and databases are not for superusers
    const SQL: &str = "select most, what from pg_catalog.pg_roles, pg_catalog.pg_database, lateral (values \
        (current_setting('max_connections')::int - case when rolsuper then 0 \
        else current_setting('superuser_reserved_connections')::int end, 'max_connections'), \
        (case when not rolsuper then rolconnlimit end, 'the role''s CONNECTION LIMIT'), \
        (case when not rolsuper then datconnlimit end, 'the database''s CONNECTION LIMIT')) as limits (most, what) \
        where rolname = current_user and datname = current_database() and most >= 0 order by most limit 1";
    let rows = session.query(SQL).unwrap_or_default();
    match rows.first()?.as_slice() {
        [Some(most), Some(what)] => Some((most.parse().ok()?, what.clone())),
        _ => None,
    }
}
