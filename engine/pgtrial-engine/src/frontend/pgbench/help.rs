//! The text of `--help`.

/// pgbench's help, with what pgtrial adds kept apart.
pub fn text() -> String {
    TEXT.to_owned()
}

const TEXT: &str = "\
pgbench is a benchmarking tool for PostgreSQL.

Usage:
  pgbench [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         invokes initialization mode
  -I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")
                           run selected initialization steps, in the specified order
                           d: drop any existing pgbench tables
                           t: create the tables used by the standard pgbench scenario
                           g: generate data, client-side
                           G: generate data, server-side
                           v: invoke VACUUM on the standard tables
                           p: create primary key indexes on the standard tables
                           f: create foreign keys between the standard tables
  -F, --fillfactor=NUM     set fill factor
  -n, --no-vacuum          do not run VACUUM during initialization
  -q, --quiet              quiet logging (one message each 5 seconds)
  -s, --scale=NUM          scaling factor
  --foreign-keys           create foreign key constraints between tables
  --index-tablespace=TABLESPACE
                           create indexes in the specified tablespace
  --partition-method=(range|hash)
                           partition pgbench_accounts with this method (default: range)
  --partitions=NUM         partition pgbench_accounts into NUM parts (default: 0)
  --tablespace=TABLESPACE  create tables in the specified tablespace
  --unlogged-tables        create tables as unlogged tables

Options to select what to run:
  -b, --builtin=NAME[@W]   add builtin script NAME weighted at W (default: 1)
                           (use \"-b list\" to list available scripts)
  -f, --file=FILENAME[@W]  add script FILENAME weighted at W (default: 1)
  -N, --skip-some-updates  skip updates of pgbench_tellers and pgbench_branches
                           (same as \"-b simple-update\")
  -S, --select-only        perform SELECT-only transactions
                           (same as \"-b select-only\")

Benchmarking options:
  -c, --client=NUM         number of concurrent database clients (default: 1)
  -C, --connect            establish new connection for each transaction
  -D, --define=VARNAME=VALUE
                           define variable for use by custom script
  -j, --jobs=NUM           number of threads (default: 1)
  -l, --log                write transaction times to log file
  -L, --latency-limit=NUM  count transactions lasting more than NUM ms as late
  -M, --protocol=simple|extended|prepared
                           protocol for submitting queries (default: simple)
  -n, --no-vacuum          do not run VACUUM before tests
  -P, --progress=NUM       show thread progress report every NUM seconds
  -r, --report-per-command report latencies, failures, and retries per command
  -R, --rate=NUM           target rate in transactions per second
  -s, --scale=NUM          report this scale factor in output
  -t, --transactions=NUM   number of transactions each client runs (default: 10)
  -T, --time=NUM           duration of benchmark test in seconds
  -v, --vacuum-all         vacuum all four standard tables before tests
  --aggregate-interval=NUM aggregate data over NUM seconds
  --exit-on-abort          exit when any client is aborted
  --failures-detailed      report the failures grouped by basic types
  --log-prefix=PREFIX      prefix for transaction time log file
                           (default: \"pgbench_log\")
  --max-tries=NUM          max number of tries to run transaction (default: 1)
  --progress-timestamp     use Unix epoch timestamps for progress
  --random-seed=SEED       set random seed (\"time\", \"rand\", integer)
  --sampling-rate=NUM      fraction of transactions to log (e.g., 0.01 for 1%)
  --show-script=NAME       show builtin script code, then exit
  --verbose-errors         print messages of all errors

Options that pgtrial adds:
  --apps=NUM               run tasks of NUM applications, each with a pool of connections
                           of its own, in place of clients (default: 1)
  --arrival=at-once|RATE|poisson:RATE
                           when each application's tasks arrive, rates in tasks per
                           second (default: at-once)
  --continue-on-error      go on after any SQL error, counting the transaction as failed
                           (as pgbench 19 has it)
  --events=FILE|-          write what happens as JSON Lines to FILE; with \"-\" to
                           standard output, in place of the report
  --histogram=FILE         write the latencies of the measured part to FILE as a line
                           \"latency BASE64\": an HdrHistogram in microseconds in V2
                           encoding, deflated; with a rate also \"service BASE64\" (times
                           from the actual start) and \"lag BASE64\" (schedule lags),
                           with pools \"service BASE64\" and \"queue BASE64\"
  --load-jobs=NUM          number of connections that load data in initialization mode,
                           1 to 1000
  --percentiles            report latency percentiles
  --pool=SIZE              most connections of an application's pool; with --tasks
  --pool-lifetime=SECONDS  replace connections that are older
  --pool-timeout=SECONDS   a task that got no connection in this time has failed
                           (default: 15)
  --shard=I/N              run part I of N (from 1) of the run that the other options say,
                           which N engines share; -j is each engine's own; with -i -I g
                           load part I of N of the rows into tables that are there
  --start-at=WHEN|-        begin at this time, Unix seconds with decimals, at most 60 s
                           ahead; with \"-\" at the one that is read as a line from
                           standard input when all clients are connected
  --tasks=NUM              tasks of each application, each one transaction
  --wait-for-server=SECONDS
                           clients that lose their connection make another one, and try
                           to for so long; the transaction under way has failed
  --warmup=SECONDS         run so long before the measured part; report it apart

Common options:
  --debug                  print debugging output
  -d, --dbname=DBNAME      database name to connect to
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port number
  -U, --username=USERNAME  connect as specified database user
  -V, --version            output version information, then exit
  -?, --help               show this help, then exit

This is pgbench as pgtrial has it.
";
