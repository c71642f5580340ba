//! The statements that make and drop pgbench's tables, exactly as pgbench sends them.

use super::options::{ACCOUNTS_PER_BRANCH, InitOptions, PartitionMethod, TELLERS_PER_BRANCH};

/// The name of the accounts' table, which is the largest and the only one that may have partitions.
pub const ACCOUNTS: &str = "pgbench_accounts";

/// The names of the tables in the order in which pgbench vacuums them.
pub const TABLES: [&str; 4] = ["pgbench_branches", "pgbench_tellers", ACCOUNTS, "pgbench_history"];

/// The tables and the columns of their primary keys, in the order in which pgbench makes the keys.
pub const PRIMARY_KEYS: [(&str, &str); 3] =
    [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), (ACCOUNTS, "aid")];

pub const DROP: &str = "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// The statement that truncates all tables. PostgreSQL does not truncate a table alone if foreign keys of others refer
/// to it, so one statement has to name all tables.
pub const TRUNCATE: &str = "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// The statement that truncates all tables except pgbench_accounts.
pub const TRUNCATE_SMALL: &str = "truncate table pgbench_branches, pgbench_history, pgbench_tellers";

/// The lowest scale at which account numbers need 64 bits (`SCALE_32BIT_THRESHOLD` of pgbench).
const BIGINT_SCALE: u32 = 20_000;

/// Returns the statements that make the foreign keys.
pub fn foreign_keys() -> Vec<String> {
    [
        ("tellers", "bid", "branches"),
        ("accounts", "bid", "branches"),
        ("history", "bid", "branches"),
        ("history", "tid", "tellers"),
        ("history", "aid", "accounts"),
    ]
    .map(|(table, column, other)| {
        format!(
            "alter table pgbench_{table} add constraint pgbench_{table}_{column}_fkey \
             foreign key ({column}) references pgbench_{other}"
        )
    })
    .to_vec()
}

/// Returns the statement that vacuums and analyses a table.
pub fn vacuum(table: &str) -> String {
    format!("vacuum analyze {table}")
}

/// Returns the statement that makes the primary key of a table.
pub fn primary_key(table: &str, column: &str, options: &InitOptions) -> String {
    let place = tablespace(" using index", options.index_tablespace.as_deref());
    format!("alter table {table} add primary key ({column}){place}")
}

/// Returns the statements that make the partitions of pgbench_accounts; none if the table is not partitioned.
pub fn create_partitions(options: &InitOptions) -> Vec<String> {
    let count = u64::from(options.partitions);
    let unlogged = if options.unlogged { " unlogged" } else { "" };
    let size = options.all_accounts().div_ceil(count.max(1));
    let bounds = |number: u64| match options.partition_method {
        // The first and the last partition have an open end, so that every account number has a partition.
        PartitionMethod::Range => {
            let from = if number == 1 { "minvalue".to_owned() } else { ((number - 1) * size + 1).to_string() };
            let to = if number == count { "maxvalue".to_owned() } else { (number * size + 1).to_string() };
            format!("from ({from}) to ({to})")
        }
        PartitionMethod::Hash => format!("with (modulus {count}, remainder {})", number - 1),
    };
    (1..=count)
        .map(|number| {
            format!(
                "create{unlogged} table pgbench_accounts_{number}\n  partition of pgbench_accounts\n  \
                 for values {} with (fillfactor={})",
                bounds(number),
                options.fillfactor
            )
        })
        .collect()
}

/// Returns the statements with which the server generates the rows itself, in one transaction.
pub fn generate_on_server(options: &InitOptions) -> Vec<String> {
    let (scale, accounts) = (options.scale, options.all_accounts());
    vec![
        "begin".to_owned(),
        TRUNCATE.to_owned(),
        format!("insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {scale}) as bid"),
        format!(
            "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS_PER_BRANCH} + 1, 0 \
             from generate_series(1, {}) as tid",
            TELLERS_PER_BRANCH * u64::from(scale)
        ),
        format!(
            "insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / {ACCOUNTS_PER_BRANCH} + 1, 0, '' \
             from generate_series(1, {accounts}) as aid"
        ),
        "commit".to_owned(),
    ]
}

/// Returns the statements that make the tables, without partitions.
pub fn create(options: &InitOptions) -> Vec<String> {
    let aid = if options.scale >= BIGINT_SCALE { "bigint" } else { "int" };
    let fill = format!(" with (fillfactor={})", options.fillfactor);
    let place = tablespace("", options.tablespace.as_deref());
    // A partitioned table can be neither unlogged nor have a fillfactor. If there are partitions, pgbench makes the
    // small tables logged too.
    let (kind, accounts) = match (options.partitions, options.unlogged) {
        (0, true) => (" unlogged", fill.clone()),
        (0, false) => ("", fill.clone()),
        _ => ("", format!(" partition by {} (aid)", options.partition_method.name())),
    };
    [
        ("history", format!("tid int,bid int,aid {aid:>6},delta int,mtime timestamp,filler char(22)"), ""),
        ("tellers", "tid int not null,bid int,tbalance int,filler char(84)".to_owned(), &*fill),
        ("accounts", format!("aid {aid:>6} not null,bid int,abalance int,filler char(84)"), &*accounts),
        ("branches", "bid int not null,bbalance int,filler char(88)".to_owned(), &*fill),
    ]
    .map(|(table, columns, with)| format!("create{kind} table pgbench_{table}({columns}){with}{place}"))
    .to_vec()
}

/// Returns `prefix`, then ` tablespace "NAME"`; an empty text if there is no name.
fn tablespace(prefix: &str, name: Option<&str>) -> String {
    name.map(|name| format!("{prefix} tablespace \"{}\"", name.replace('"', "\"\""))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_open_at_both_ends() {
        let options = InitOptions { partitions: 3, unlogged: true, ..InitOptions::default() };
        let made = create_partitions(&options);
        assert_eq!(made.len(), 3);
        assert!(made[0].starts_with("create unlogged table pgbench_accounts_1\n"));
        assert!(made[0].ends_with("for values from (minvalue) to (33335) with (fillfactor=100)"));
        assert!(made[1].contains("from (33335) to (66669)"));
        assert!(made[2].contains("from (66669) to (maxvalue)"));
    }

    #[test]
    fn a_name_of_a_tablespace_is_quoted() {
        let options = InitOptions { tablespace: Some("a\"b".to_owned()), ..InitOptions::default() };
        assert!(create(&options).iter().all(|sql| sql.ends_with(" tablespace \"a\"\"b\"")));
    }
}
