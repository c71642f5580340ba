//! The statements that make and unmake pgbench's tables, as pgbench sends them.

use super::{Load, PartitionMethod, Step};

/// Tellers of a branch, and accounts.
pub const TELLERS: u64 = 10;
pub const ACCOUNTS: u64 = 100_000;

/// The one table that is large, and may have partitions.
pub const LARGE: &str = "pgbench_accounts";

/// The tables in the order in which they are vacuumed, and in which they get their keys, with the column.
pub const VACUUMED: [&str; 4] = ["pgbench_branches", "pgbench_tellers", LARGE, "pgbench_history"];
pub const KEYS: [(&str, &str); 3] = [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), (LARGE, "aid")];

/// Empties the tables, in one statement in case there are foreign keys.
pub const TRUNCATE: &str = "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// From this scale on, account numbers need 64 bits.
const SCALE_OF_BIGINT: u32 = 20_000;

/// The statements of a step that are sent one after the other; those of `t` make the tables without partitions.
pub fn statements(step: Step, load: &Load) -> Vec<String> {
    match step {
        Step::DropTables => {
            vec!["drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers".to_owned()]
        }
        Step::CreateTables => create(load),
        Step::Generate | Step::Vacuum | Step::PrimaryKeys => Vec::new(),
        Step::GenerateOnServer => generate_on_server(load),
        Step::ForeignKeys => [
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
        .to_vec(),
    }
}

/// Vacuums and analyses a table.
pub fn vacuum(table: &str) -> String {
    format!("vacuum analyze {table}")
}

/// Gives a table its primary key.
pub fn primary_key(table: &str, column: &str, load: &Load) -> String {
    let place = in_tablespace(" using index", load.index_tablespace.as_deref());
    format!("alter table {table} add primary key ({column}){place}")
}

/// The statements that make the partitions of accounts, none if there are to be none.
pub fn partitions(load: &Load) -> Vec<String> {
    let count = u64::from(load.partitions);
    let unlogged = if load.unlogged { " unlogged" } else { "" };
    let size = (ACCOUNTS * u64::from(load.scale)).div_ceil(count.max(1));
    let bounds = |number: u64| match load.partition_method {
        // Open at both ends: any account number has its place.
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
                load.fillfactor
            )
        })
        .collect()
}

fn generate_on_server(load: &Load) -> Vec<String> {
    let (scale, accounts) = (load.scale, ACCOUNTS * u64::from(load.scale));
    vec![
        "begin".to_owned(),
        TRUNCATE.to_owned(),
        format!("insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {scale}) as bid"),
        format!(
            "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS} + 1, 0 \
             from generate_series(1, {}) as tid",
            TELLERS * u64::from(scale)
        ),
        format!(
            "insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / {ACCOUNTS} + 1, 0, '' \
             from generate_series(1, {accounts}) as aid"
        ),
        "commit".to_owned(),
    ]
}

fn create(load: &Load) -> Vec<String> {
    let aid = if load.scale >= SCALE_OF_BIGINT { "bigint" } else { "int" };
    let fill = format!(" with (fillfactor={})", load.fillfactor);
    let place = in_tablespace("", load.tablespace.as_deref());
    // A partitioned table cannot be unlogged, nor have a fill factor; then pgbench logs the small tables too.
    let (kind, accounts) = match (load.partitions, load.unlogged) {
        (0, true) => (" unlogged", fill.clone()),
        (0, false) => ("", fill.clone()),
        _ => ("", format!(" partition by {} (aid)", load.partition_method.name())),
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

/// ` tablespace "NAME"` after `prefix`, if there is a name.
fn in_tablespace(prefix: &str, name: Option<&str>) -> String {
    name.map(|name| format!("{prefix} tablespace \"{}\"", name.replace('"', "\"\""))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_open_at_both_ends() {
        let load = Load { partitions: 3, unlogged: true, ..Load::default() };
        let made = partitions(&load);
        assert_eq!(made.len(), 3);
        assert!(made[0].starts_with("create unlogged table pgbench_accounts_1\n"));
        assert!(made[0].ends_with("for values from (minvalue) to (33335) with (fillfactor=100)"));
        assert!(made[1].contains("from (33335) to (66669)"));
        assert!(made[2].contains("from (66669) to (maxvalue)"));
    }

    #[test]
    fn a_name_of_a_tablespace_is_quoted() {
        let load = Load { tablespace: Some("a\"b".to_owned()), ..Load::default() };
        assert!(statements(Step::CreateTables, &load).iter().all(|sql| sql.ends_with(" tablespace \"a\"\"b\"")));
    }
}
