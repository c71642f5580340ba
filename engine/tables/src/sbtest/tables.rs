//! The statements that make and unmake the tables, and sysbench's lines about them.

use workload::oltp::TestKind;
use workload::oltp::parameters::Parameters;

/// Statements and lines for one table.
pub struct Table<'a> {
    pub kind: TestKind,
    pub parameters: &'a Parameters,
    /// Counted from 1.
    pub number: u64,
}

impl Table<'_> {
    pub fn name(&self) -> String {
        format!("sbtest{}", self.number)
    }

    /// The statement that sysbench makes the table with.
    pub fn create(&self) -> String {
        self.create_with(&format!(",\n{}{} (id)", self.indent(), self.key()))
    }

    /// The same without the key, which is made when the rows are there.
    pub fn create_without_key(&self) -> String {
        self.create_with("")
    }

    fn create_with(&self, key: &str) -> String {
        let (name, id) = (self.name(), self.id());
        match self.kind {
            TestKind::Legacy => format!(
                "CREATE TABLE {name} (\nid {id} NOT NULL,\nk INTEGER DEFAULT '0' NOT NULL,\n\
                 c CHAR(120) DEFAULT '' NOT NULL,\npad CHAR(60) DEFAULT '' NOT NULL{key}\n) "
            ),
            _ => format!(
                "CREATE TABLE {name}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
                 c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL{key}\n)  "
            ),
        }
    }

    fn indent(&self) -> &'static str {
        if self.kind == TestKind::Legacy { "" } else { "  " }
    }

    fn id(&self) -> &'static str {
        match (self.kind, self.parameters.redshift, self.parameters.auto_inc) {
            (TestKind::Legacy, true, _) => "INTEGER IDENTITY(1,1)",
            (TestKind::Legacy, false, _) | (_, _, true) => "SERIAL",
            _ => "INTEGER NOT NULL",
        }
    }

    fn key(&self) -> &'static str {
        if self.parameters.secondary { "KEY xid" } else { "PRIMARY KEY" }
    }

    /// Whether only a key of PostgreSQL's is asked for: sysbench's secondary key is MySQL's, and the server says so.
    pub fn has_usual_key(&self) -> bool {
        !self.parameters.secondary && self.id() != "INTEGER IDENTITY(1,1)"
    }

    pub fn add_key(&self) -> String {
        format!("ALTER TABLE {} ADD PRIMARY KEY (id)", self.name())
    }

    /// The rows come with their ids, and the sequence is left as if it had given them.
    pub fn set_sequence(&self) -> Option<String> {
        let (name, rows) = (self.name(), self.rows());
        let is_used = self.id() == "SERIAL" && self.parameters.auto_inc && rows > 0;
        is_used.then(|| format!("SELECT pg_catalog.setval('{name}_id_seq', {rows})"))
    }

    pub fn create_index(&self) -> String {
        let number = self.number;
        match self.kind {
            TestKind::Legacy => format!("CREATE INDEX k_{number} on sbtest{number}(k)"),
            _ => format!("CREATE INDEX k_{number} ON sbtest{number}(k)"),
        }
    }

    pub fn drop(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name())
    }

    /// How many rows it has at first. Those of `oltp_insert` could be in the way of the ids that it draws.
    pub fn rows(&self) -> u32 {
        let is_left_empty = self.kind == TestKind::Insert && !self.parameters.auto_inc;
        if is_left_empty { 0 } else { u32::try_from(self.parameters.table_size).unwrap_or(0) }
    }

    pub fn creating(&self) -> String {
        format!("Creating table '{}'...", self.name())
    }

    /// Said before the rows are sent, if it is said.
    pub fn inserting(&self) -> Option<String> {
        let is_said = self.rows() > 0 || self.kind == TestKind::Legacy;
        is_said.then(|| format!("Inserting {} records into '{}'", self.rows(), self.name()))
    }

    pub fn creating_index(&self) -> String {
        let what = if self.kind == TestKind::Legacy { "secondary indexes" } else { "a secondary index" };
        format!("Creating {what} on '{}'...", self.name())
    }

    pub fn dropping(&self) -> String {
        format!("Dropping table '{}'...", self.name())
    }
}

/// The statement that makes a table of `bulk_insert`.
pub fn create_for_bulk(number: usize) -> String {
    format!(
        "        CREATE TABLE IF NOT EXISTS sbtest{number} (\n          id INTEGER NOT NULL,\n          \
         k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::settings::{OptionValue, Settings};

    fn created(kind: TestKind, options: &[(&str, OptionValue)]) -> [String; 2] {
        let mut settings = Settings::default();
        options.iter().for_each(|(name, value)| settings.set(name, value.clone()));
        let parameters = Parameters::read(kind, &settings).unwrap();
        let table = Table { kind, parameters: &parameters, number: 7 };
        [table.create(), table.create_without_key()]
    }

    /// The texts are sysbench 1.0.20's, as a server logged them.
    #[test]
    fn tables_are_made_with_sysbenchs_statement() {
        let columns = "  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  \
                       pad CHAR(60) DEFAULT '' NOT NULL";
        let [usual, keyless] = created(TestKind::ReadWrite, &[]);
        assert_eq!(usual, format!("CREATE TABLE sbtest7(\n  id SERIAL,\n{columns},\n  PRIMARY KEY (id)\n)  "));
        assert_eq!(keyless, format!("CREATE TABLE sbtest7(\n  id SERIAL,\n{columns}\n)  "));
        let off = OptionValue::Bool(false);
        let [numbered, _] = created(TestKind::ReadWrite, &[("auto_inc", off)]);
        assert_eq!(
            numbered,
            format!("CREATE TABLE sbtest7(\n  id INTEGER NOT NULL,\n{columns},\n  PRIMARY KEY (id)\n)  ")
        );
        let [secondary, _] = created(TestKind::ReadWrite, &[("secondary", OptionValue::Bool(true))]);
        assert!(secondary.ends_with(",\n  KEY xid (id)\n)  "), "{secondary}");
    }

    /// Rows, the line about them, and the statement about the sequence.
    fn filled(kind: TestKind, options: &[(&str, OptionValue)]) -> (u32, Option<String>, Option<String>) {
        let mut settings = Settings::default();
        options.iter().for_each(|(name, value)| settings.set(name, value.clone()));
        let parameters = Parameters::read(kind, &settings).unwrap();
        let table = Table { kind, parameters: &parameters, number: 7 };
        (table.rows(), table.inserting(), table.set_sequence())
    }

    #[test]
    fn tables_are_filled_and_their_sequences_used_as_by_sysbench() {
        let size = |rows| OptionValue::Int(rows);
        let off = OptionValue::Bool(false);
        let says = |rows| Some(format!("Inserting {rows} records into 'sbtest7'"));
        let sets = |rows| Some(format!("SELECT pg_catalog.setval('sbtest7_id_seq', {rows})"));
        assert_eq!(filled(TestKind::ReadOnly, &[]), (10_000, says(10_000), sets(10_000)));
        assert_eq!(filled(TestKind::ReadOnly, &[("auto_inc", off.clone())]), (10_000, says(10_000), None));
        assert_eq!(filled(TestKind::ReadOnly, &[("table_size", size(0))]), (0, None, None));
        assert_eq!(filled(TestKind::Insert, &[("table_size", size(5))]), (5, says(5), sets(5)));
        assert_eq!(filled(TestKind::Insert, &[("auto_inc", off.clone())]), (0, None, None));
        assert_eq!(filled(TestKind::Legacy, &[("oltp_table_size", size(0))]), (0, says(0), None));
        assert_eq!(filled(TestKind::Legacy, &[("oltp_auto_inc", off)]), (10_000, says(10_000), None));
    }

    #[test]
    fn the_table_of_0_5_is_made_with_its_statement() {
        let [legacy, _] = created(TestKind::Legacy, &[]);
        assert_eq!(
            legacy,
            "CREATE TABLE sbtest7 (\nid SERIAL NOT NULL,\nk INTEGER DEFAULT '0' NOT NULL,\n\
             c CHAR(120) DEFAULT '' NOT NULL,\npad CHAR(60) DEFAULT '' NOT NULL,\nPRIMARY KEY (id)\n) "
        );
    }
}
