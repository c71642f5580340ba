//! The connection parameter `target_session_attrs`: compares what the server reports (whether it accepts writes, and
//! whether it is a standby) with the kind of server for which the user asks.

use crate::params::TargetSessionAttrs;

/// The facts that are known so far about the kind of a server. Servers from version 14 on report them when the session
/// starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionKind {
    /// True if `default_transaction_read_only` is on. `None` if the server has not reported it.
    read_only: Option<bool>,
    in_hot_standby: Option<bool>,
    asked: bool,
}

impl SessionKind {
    /// Records a parameter that the server reports.
    pub fn note_parameter(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"default_transaction_read_only" => self.read_only = Some(value == b"on"),
            b"in_hot_standby" => self.in_hot_standby = Some(value == b"on"),
            _ => {}
        }
    }

    /// Records the server's answer to the query that [`SessionKind::question`] returned.
    pub fn note_answer(&mut self, value: &str) {
        self.in_hot_standby = Some(matches!(value, "on" | "t"));
        // After `SHOW transaction_read_only` it is not known whether the session is read-only because of a standby or
        // because of `default_transaction_read_only`. To a user who asks for a read-only or writable session both are
        // the same.
        self.read_only.get_or_insert(false);
    }

    /// Returns the query that must be sent to find out the kind of the server. Returns `None` if the server has
    /// reported it by itself, or if it is not needed.
    pub fn question(&mut self, wanted: TargetSessionAttrs) -> Option<&'static str> {
        use TargetSessionAttrs::*;
        let (is_open, sql) = match wanted {
            Any => return None,
            ReadWrite | ReadOnly => {
                (self.read_only.is_none() || self.in_hot_standby.is_none(), "SHOW transaction_read_only")
            }
            Primary | Standby | PreferStandby => {
                (self.in_hot_standby.is_none(), "SELECT pg_catalog.pg_is_in_recovery()")
            }
        };
        (is_open && !std::mem::replace(&mut self.asked, true)).then_some(sql)
    }

    /// Checks that the server is of the kind for which the user asks.
    ///
    /// # Errors
    /// Returns libpq's message if the server is of another kind.
    pub fn check(&self, wanted: TargetSessionAttrs) -> Result<(), &'static str> {
        use TargetSessionAttrs::*;
        let standby = self.in_hot_standby.unwrap_or(false);
        let read_only = standby || self.read_only.unwrap_or(false);
        match wanted {
            ReadWrite if read_only => Err("session is read-only"),
            ReadOnly if !read_only => Err("session is not read-only"),
            Primary if standby => Err("server is in hot standby mode"),
            Standby | PreferStandby if !standby => Err("server is not in hot standby mode"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TargetSessionAttrs::*;
    use super::*;

    fn kind(read_only: &[u8], standby: &[u8]) -> SessionKind {
        let mut kind = SessionKind::default();
        kind.note_parameter(b"default_transaction_read_only", read_only);
        kind.note_parameter(b"in_hot_standby", standby);
        kind
    }

    #[test]
    fn each_kind_of_server_is_taken_by_whoever_wants_it() {
        let (primary, locked, standby) = (kind(b"off", b"off"), kind(b"on", b"off"), kind(b"off", b"on"));
        let taken = |kind: SessionKind| {
            [ReadWrite, ReadOnly, Primary, Standby, PreferStandby, Any].map(|wanted| kind.check(wanted).is_ok())
        };
        assert_eq!(taken(primary), [true, false, true, false, false, true]);
        assert_eq!(taken(locked), [false, true, true, false, false, true]);
        assert_eq!(taken(standby), [false, true, false, true, true, true]);
        assert_eq!(standby.check(ReadWrite), Err("session is read-only"));
        assert_eq!(primary.check(ReadOnly), Err("session is not read-only"));
        assert_eq!(standby.check(Primary), Err("server is in hot standby mode"));
        assert_eq!(primary.check(Standby), Err("server is not in hot standby mode"));
    }

    #[test]
    fn a_server_that_keeps_silent_is_asked_once() {
        let mut silent = SessionKind::default();
        assert_eq!(silent.question(Any), None);
        assert_eq!(silent.question(ReadWrite), Some("SHOW transaction_read_only"));
        silent.note_answer("on");
        assert_eq!(silent.question(ReadWrite), None);
        assert_eq!(silent.check(ReadWrite), Err("session is read-only"));
        let mut silent = SessionKind::default();
        assert_eq!(silent.question(Standby), Some("SELECT pg_catalog.pg_is_in_recovery()"));
        silent.note_answer("t");
        assert_eq!((silent.question(Standby), silent.check(Standby)), (None, Ok(())));
        assert_eq!(kind(b"off", b"off").question(ReadWrite), None);
    }
}
