//! The statements that make and unmake pgbench's tables, as pgbench sends them.

use super::{Load, Step};

/// Tellers of a branch, and accounts.
pub const TELLERS: u64 = 10;
pub const ACCOUNTS: u64 = 100_000;

/// Empties the tables, in one statement in case there are foreign keys.
pub const TRUNCATE: &str = "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

/// From this scale on, account numbers need 64 bits.
const SCALE_OF_BIGINT: u32 = 20_000;

/// The statements of a step that needs no data from us.
pub fn statements(step: Step, load: &Load) -> Vec<String> {
    match step {
        Step::DropTables => {
            vec!["drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers".to_owned()]
        }
        Step::CreateTables => create(load),
        Step::Generate => Vec::new(),
        Step::GenerateOnServer => generate_on_server(load),
        Step::Vacuum => ["branches", "tellers", "accounts", "history"]
            .map(|table| format!("vacuum analyze pgbench_{table}"))
            .to_vec(),
        Step::PrimaryKeys => [("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")]
            .map(|(table, key)| format!("alter table pgbench_{table} add primary key ({key})"))
            .to_vec(),
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
    vec![
        format!("create table pgbench_history(tid int,bid int,aid {aid:>6},delta int,mtime timestamp,filler char(22))"),
        format!("create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)){fill}"),
        format!("create table pgbench_accounts(aid {aid:>6} not null,bid int,abalance int,filler char(84)){fill}"),
        format!("create table pgbench_branches(bid int not null,bbalance int,filler char(88)){fill}"),
    ]
}
