//! Where scripts speak.

/// What scripts' messages and what they print go through: one for all threads, each text in one piece.
pub trait Voice: Send + Sync {
    /// A message of the driver's: of a fatal error, or an alert.
    fn say(&self, is_fatal: bool, text: &str);

    /// What a script prints, with the ends of lines.
    fn print(&self, text: &[u8]);
}
