//! Tests of reports that are made from invented counts. The reports are compared line by line.

use super::super::options::ReportOptions;
use super::super::statistics::statistics;
use super::super::texts::{ReportedPeriod, cumulative, intermediate};
use super::{logged, measured, usual};

fn report(options: &ReportOptions, verbosity: i64, unfinished: usize) -> String {
    let measured = measured();
    let statistics = statistics(&measured, f64::from(options.percentile), 2, 2.0, 5.0);
    let part = ReportedPeriod {
        statistics: &statistics,
        measured: &measured,
        clients: 2,
        first_client: 0,
        has_queries: true,
        unfinished,
    };
    logged(verbosity, |log| cumulative(log, &part, options))
}

#[test]
fn the_report_is_sysbenchs() {
    let expected = "\
SQL statistics:
    queries performed:
        read:                            12
        write:                           4
        other:                           8
        total:                           24
    transactions:                        4      (2.00 per sec.)
    queries:                             24     (12.00 per sec.)
    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          2      (1.00 per sec.)

General statistics:
    total time:                          5.0000s
    total number of events:              4

Latency (ms):
         min:                                    1.00
         avg:                                    4.00
         max:                                   10.00
         95th percentile:                       10.00
         sum:                                   16.00

Threads fairness:
    events (avg/stddev):           2.0000/1.00
    execution time (avg/stddev):   0.0080/0.00

";
    assert_eq!(report(&usual(), 3, 0), expected);
}

#[test]
fn a_percentile_of_zero_is_none() {
    let text = report(&ReportOptions::default(), 3, 0);
    assert!(text.contains("   10.00\n         percentile stats:               disabled\n         sum:"), "{text}");
}

#[test]
fn further_percentiles_have_lines_of_the_same_form() {
    let options = ReportOptions { percentiles: ["50", "99.9"].map(str::to_owned).to_vec(), ..usual() };
    let expected = "
         95th percentile:                       10.00
         50th percentile:                        2.00
       99.9th percentile:                       10.00
         sum:";
    let text = report(&options, 3, 0);
    assert!(text.contains(expected), "{text}");
}

#[test]
fn debugging_shows_each_thread() {
    let expected = "0.0080/0.00

DEBUG: Verbose per-thread statistics:

DEBUG:     thread #  0: min: 0.0010s  avg: 0.0020s  max: 0.0030s  events: 3
DEBUG:                  total time taken by event execution: 0.0060s
DEBUG:     thread #  1: min: 0.0100s  avg: 0.0100s  max: 0.0100s  events: 1
DEBUG:                  total time taken by event execution: 0.0100s

";
    let text = report(&ReportOptions { debug: true, ..usual() }, 5, 0);
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn what_was_cut_off_is_told_before_the_general_statistics() {
    let expected = "per sec.)

Number of unfinished transactions on forced shutdown: 2

General statistics:";
    let text = report(&usual(), 3, 2);
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_test_without_queries_is_reported_on_without_them() {
    let measured = measured();
    let mut statistics = statistics(&measured, 95.0, 2, 2.0, 4.0);
    let part = ReportedPeriod {
        statistics: &statistics,
        measured: &measured,
        clients: 2,
        first_client: 0,
        has_queries: false,
        unfinished: 0,
    };
    let text = logged(3, |log| cumulative(log, &part, &usual()));
    assert!(text.starts_with("\nGeneral statistics:\n"), "{text}");
    (statistics.queue_length, statistics.concurrency) = (7, 2);
    let text = logged(3, |log| intermediate(log, &statistics, &ReportOptions { has_rate: true, ..usual() }, false));
    let expected = "\
[ 4s ] thds: 2 eps: 2.00 lat (ms,95%): 10.00
[ 4s ] queue length: 7 concurrency: 2
";
    assert_eq!(text, expected);
}

#[test]
fn lines_on_intervals_have_rates_and_with_a_rate_the_queue() {
    let mut statistics = statistics(&measured(), 95.0, 2, 2.0, 4.0);
    (statistics.queue_length, statistics.concurrency) = (7, 2);
    let text = logged(3, |log| intermediate(log, &statistics, &ReportOptions { has_rate: true, ..usual() }, true));
    let expected = "\
[ 4s ] thds: 2 tps: 2.00 qps: 12.00 (r/w/o: 6.00/2.00/4.00) lat (ms,95%): 10.00 err/s: 0.50 reconn/s: 1.00
[ 4s ] queue length: 7, concurrency: 2
";
    assert_eq!(text, expected);
}
