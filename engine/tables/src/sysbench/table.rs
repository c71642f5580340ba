//! A table of sysbench, which is called sbtest and a number: its statements, the lines that sysbench prints about it,
//! and its rows in COPY's binary format.

use std::ops::Range;

use ground::random::Random;
use workload::oltp::parameters::TestParameters;
use workload::oltp::{C_LENGTH, PAD_LENGTH, TestKind};
use workload::sb_rand::{Distribution, fill_groups};

use crate::copy::encode_row;

/// Makes the statements for one table, and the lines that sysbench prints about it.
pub struct SysbenchTable<'a> {
    pub kind: TestKind,
    pub parameters: &'a TestParameters,
    /// The number of the table, counted from 1.
    pub number: u64,
}

impl SysbenchTable<'_> {
    pub fn name(&self) -> String {
        format!("sbtest{}", self.number)
    }

    fn is_legacy(&self) -> bool {
        self.kind == TestKind::Legacy
    }

    /// Returns the statement with which sysbench makes the table.
    pub fn create(&self) -> String {
        let indent = if self.is_legacy() { "" } else { "  " };
        let key = if self.parameters.secondary { "KEY xid" } else { "PRIMARY KEY" };
        self.create_with(&format!(",\n{indent}{key} (id)"))
    }

    /// Returns the statement that makes the table without its key. The key is made after the rows.
    pub fn create_without_key(&self) -> String {
        self.create_with("")
    }

    fn create_with(&self, key: &str) -> String {
        let (name, id) = (self.name(), self.id());
        if self.is_legacy() {
            format!(
                "CREATE TABLE {name} (\nid {id} NOT NULL,\nk INTEGER DEFAULT '0' NOT NULL,\n\
                 c CHAR(120) DEFAULT '' NOT NULL,\npad CHAR(60) DEFAULT '' NOT NULL{key}\n) "
            )
        } else {
            format!(
                "CREATE TABLE {name}(\n  id {id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  \
                 c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL{key}\n)  "
            )
        }
    }

    fn id(&self) -> &'static str {
        match (self.is_legacy(), self.parameters.redshift, self.parameters.auto_inc) {
            (true, true, _) => "INTEGER IDENTITY(1,1)",
            (true, false, _) | (false, _, true) => "SERIAL",
            (false, _, false) => "INTEGER NOT NULL",
        }
    }

    /// True if PostgreSQL accepts sysbench's statement. It rejects the secondary key of MySQL and the identity column
    /// of Redshift.
    pub fn is_for_postgresql(&self) -> bool {
        !self.parameters.secondary && self.id() != "INTEGER IDENTITY(1,1)"
    }

    pub fn add_key(&self) -> String {
        format!("ALTER TABLE {} ADD PRIMARY KEY (id)", self.name())
    }

    /// Returns the statement that sets the sequence to the value that it would have if it had numbered the rows. COPY
    /// sends the rows with their ids, so the sequence does not advance by itself. Returns `None` if the table has no
    /// rows, or if the sequence does not number them.
    pub fn set_sequence(&self) -> Option<String> {
        let (name, rows) = (self.name(), self.rows());
        let is_used = self.id() == "SERIAL" && self.parameters.auto_inc && rows > 0;
        is_used.then(|| format!("SELECT pg_catalog.setval('{name}_id_seq', {rows})"))
    }

    pub fn create_index(&self) -> String {
        let (number, on) = (self.number, if self.is_legacy() { "on" } else { "ON" });
        format!("CREATE INDEX k_{number} {on} sbtest{number}(k)")
    }

    pub fn drop(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name())
    }

    /// Returns the number of rows with which the table is filled. It is 0 for `oltp_insert` without `auto_inc`, because
    /// the load then draws the ids itself, and a drawn id could collide with an existing row.
    pub fn rows(&self) -> u32 {
        let is_left_empty = self.kind == TestKind::Insert && !self.parameters.auto_inc;
        if is_left_empty { 0 } else { u32::try_from(self.parameters.table_size).unwrap_or(0) }
    }

    /// Returns the line that sysbench prints before it sends the rows, or `None` if it prints none.
    pub fn inserting(&self) -> Option<String> {
        let is_printed = self.rows() > 0 || self.is_legacy();
        is_printed.then(|| format!("Inserting {} records into '{}'", self.rows(), self.name()))
    }

    /// Returns the line that sysbench prints before it makes the index.
    pub fn creating_index(&self) -> String {
        let what = if self.is_legacy() { "secondary indexes" } else { "a secondary index" };
        format!("Creating {what} on '{}'...", self.name())
    }
}

/// Returns the statement that makes a table of `bulk_insert`.
pub fn create_for_bulk(number: usize) -> String {
    format!(
        "        CREATE TABLE IF NOT EXISTS sbtest{number} (\n          id INTEGER NOT NULL,\n          \
         k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
    )
}

/// The offsets in bytes at which the fields of an encoded row begin. A row begins with the number of its fields in two
/// bytes; before each field is its length in four bytes.
const ID: usize = 6;
const K: usize = ID + 4 + 4;
const C: usize = K + 4 + 4;
const PAD: usize = C + C_LENGTH + 4;

/// The generator of the rows of one table.
pub struct RowGenerator {
    /// The ids of the rows that are not generated yet.
    ids: Range<u32>,
    ks: Distribution,
    random: Random,
    /// The bytes of the row that was generated last. From row to row only the values change.
    row: Vec<u8>,
}

impl RowGenerator {
    /// Makes a generator of rows with the ids from 1 to `count`. The values of column `k` are drawn from the
    /// distribution `ks`.
    pub fn new(count: u32, ks: Distribution, random: Random) -> Self {
        let row = encode_row(&[&[0; 4], &[0; 4], &[0; C_LENGTH], &[0; PAD_LENGTH]]);
        Self { ids: 1..count.saturating_add(1), ks, random, row }
    }

    /// Appends the next row. Returns false if all rows were generated.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(id) = self.ids.next() else { return false };
        let (row, random) = (&mut self.row, &mut self.random);
        let k = self.ks.draw(random) as u32;
        row[ID..ID + 4].copy_from_slice(&id.to_be_bytes());
        row[K..K + 4].copy_from_slice(&k.to_be_bytes());
        fill_groups(random, &mut row[C..C + C_LENGTH]);
        fill_groups(random, &mut row[PAD..PAD + PAD_LENGTH]);
        out.extend_from_slice(row);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::read_back;
    use workload::sb_rand::Distributions;
    use workload::settings::{OptionValue, Settings};

    fn created(kind: TestKind, options: &[(&str, OptionValue)]) -> [String; 2] {
        let mut settings = Settings::default();
        options.iter().for_each(|(name, value)| settings.set(name, value.clone()));
        let parameters = TestParameters::read(kind, &settings).unwrap();
        let table = SysbenchTable { kind, parameters: &parameters, number: 7 };
        [table.create(), table.create_without_key()]
    }

    /// Checks the statements against the statements of sysbench 1.0.20, as a server logged them.
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

    /// Returns the number of rows, the line that is printed about them, and the statement that sets the sequence.
    fn filled(kind: TestKind, options: &[(&str, OptionValue)]) -> (u32, Option<String>, Option<String>) {
        let mut settings = Settings::default();
        options.iter().for_each(|(name, value)| settings.set(name, value.clone()));
        let parameters = TestParameters::read(kind, &settings).unwrap();
        let table = SysbenchTable { kind, parameters: &parameters, number: 7 };
        (table.rows(), table.inserting(), table.set_sequence())
    }

    #[test]
    fn tables_are_filled_and_their_sequences_used_as_by_sysbench() {
        let size = |rows| OptionValue::Int(rows);
        let off = OptionValue::Bool(false);
        let prints = |rows| Some(format!("Inserting {rows} records into 'sbtest7'"));
        let sets = |rows| Some(format!("SELECT pg_catalog.setval('sbtest7_id_seq', {rows})"));
        assert_eq!(filled(TestKind::ReadOnly, &[]), (10_000, prints(10_000), sets(10_000)));
        assert_eq!(filled(TestKind::ReadOnly, &[("auto_inc", off.clone())]), (10_000, prints(10_000), None));
        assert_eq!(filled(TestKind::ReadOnly, &[("table_size", size(0))]), (0, None, None));
        assert_eq!(filled(TestKind::Insert, &[("table_size", size(5))]), (5, prints(5), sets(5)));
        assert_eq!(filled(TestKind::Insert, &[("auto_inc", off.clone())]), (0, None, None));
        assert_eq!(filled(TestKind::Legacy, &[("oltp_table_size", size(0))]), (0, prints(0), None));
        assert_eq!(filled(TestKind::Legacy, &[("oltp_auto_inc", off)]), (10_000, prints(10_000), None));
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

    /// True if a text consists of groups of eleven digits with dashes between them.
    fn is_grouped(text: &[u8], groups: usize) -> bool {
        let text = std::str::from_utf8(text).unwrap();
        let parts: Vec<_> = text.split('-').collect();
        parts.len() == groups && parts.iter().all(|part| part.len() == 11 && part.bytes().all(|c| c.is_ascii_digit()))
    }

    #[test]
    fn rows_are_numbered_and_of_sysbenchs_shape() {
        let ks = Distributions::new(&Settings::default()).unwrap().over(1, 1000);
        let mut source = RowGenerator::new(1000, ks, Random::seeded(9));
        let (sent, rows) = read_back(|out| source.write_next(out));
        assert_eq!((sent, rows.len()), (1000, 1000));
        let integer = |bytes: &[u8]| i64::from(i32::from_be_bytes(bytes.try_into().unwrap()));
        let (mut sum, mut texts) = (0, std::collections::HashSet::new());
        for (id, fields) in (1..=1000).zip(&rows) {
            let [found, k, c, pad] = &fields[..] else { panic!("{fields:?}") };
            assert_eq!(integer(found), id);
            assert!((1..=1000).contains(&integer(k)));
            sum += integer(k);
            assert!(is_grouped(c, 10) && is_grouped(pad, 5));
            texts.insert(c);
        }
        assert_eq!(texts.len(), 1000);
        // The distribution "special", which is sysbench's default, draws mostly values near the middle.
        assert!((480..=520).contains(&(sum / 1000)), "{sum}");
    }

    #[test]
    fn a_table_without_rows_has_none() {
        let ks = Distributions::new(&Settings::default()).unwrap().over(1, 0);
        assert!(!RowGenerator::new(0, ks, Random::seeded(9)).write_next(&mut Vec::new()));
    }
}
