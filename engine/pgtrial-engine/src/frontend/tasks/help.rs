//! The text of `--help`.

/// What there is.
pub const TEXT: &str = "\
pgtrial-engine tasks runs an application's tasks on bounded pools of connections.

Usage:
  pgtrial-engine tasks [OPTION]... [DBNAME]

A few applications, each with a pool of connections of its own. Each task is one SELECT
and one UPDATE of a random record of table_a; it waits for a connection of its
application's pool, runs, and gives the connection back.

Table:
  -i, --initialize         make table_a and its index, then run the tasks
  -I, --initialize-only    make table_a and its index, and stop
  --init-steps=[tgv]+      with -I: make only these steps (default: tgv)
                           t: the table and its index; g: its rows; v: VACUUM ANALYZE
  --threads-in-table=NUM   values of thread_id (default: 10)
  --rows=NUM               rows of each thread_id (default: 100000)

Load; numbers are of each application:
  --apps=NUM               number of applications (default: 3)
  --arrival=at-once|RATE|poisson:RATE
                           when tasks arrive, rates in tasks per second
                           (default: at-once)
  -j, --jobs=NUM           number of threads, at most one for each application
                           (default: 1)
  -M, --protocol=simple|extended|prepared
                           protocol for submitting queries (default: simple)
  --pool=SIZE              most connections of the pool (default: 100)
  --pool-lifetime=SECONDS  replace connections that are older
  --pool-timeout=SECONDS   a task that got no connection in this time has failed
                           (default: 15)
  --random-seed=NUM        whole number (default: from the time)
  --shard=I/N              run part I of N (from 1) of the run that the other options say,
                           which N engines share; -j is each engine's own; with
                           -I --init-steps=g make part I of N of the rows
  --start-at=WHEN|-        begin at this time, Unix seconds with decimals, at most 60 s
                           ahead; with \"-\" at the one that is read as a line from
                           standard input when everything is ready
  --tasks=NUM              number of tasks (default: 5000)

Output:
  --csv=FILE               write a line for each task to FILE, with its time in the queue
                           and on the server apart
  --events=FILE|-          write what happens as JSON Lines to FILE; with \"-\" to standard
                           output, in place of the lines and the summary
  --log=FILE               write the lines \"ApplicationId | Running Tasks | Task Duration |
                           EndTime\" to FILE instead of standard output
  -q, --quiet              no such lines on standard output

Connection:
  -d, --dbname=DBNAME      database name or connection string
  -h, --host=HOSTNAME      database server host or socket directory
  -p, --port=PORT          database server port number
  -U, --username=USERNAME  connect as specified database user

  -V, --version            output version information, then exit
  -?, --help               show this help, then exit

The exit status is 0 when the run is complete, whatever became of the tasks; 1 for what is
refused or could not be written; 130 after an interrupt.
";
