//! Prints a histogram of latencies as sysbench does: 1024 buckets on a logarithmic scale from 0.001 ms to 100 s.

use std::collections::BTreeMap;
use std::fmt::Write;

use latency::Latencies;

const BUCKETS: f64 = 1024.0;

/// The values of the first and the last bucket, in milliseconds.
const FIRST_MS: f64 = 1e-3;
const LAST_MS: f64 = 1e5;

/// The length of the longest bar, in stars.
const WIDTH: usize = 40;

/// Returns a heading and a line for each of sysbench's buckets that is not empty. Returns an empty text without
/// latencies. The buckets of `latencies` are narrower and are combined.
pub fn lines(latencies: &Latencies) -> String {
    let mut counts = BTreeMap::<usize, u64>::new();
    for (ns, count) in latencies.buckets() {
        *counts.entry(bucket(ns as f64 / 1e6)).or_default() += count;
    }
    let Some(most) = counts.values().max().copied() else { return String::new() };
    let mut lines = "       value  ------------- distribution ------------- count\n".to_owned();
    for (bucket, count) in counts {
        let stars = (count as f64 * WIDTH as f64 / most as f64).round() as usize;
        let bar = "*".repeat(stars);
        // Writing to a string cannot fail, so the result is ignored.
        let _ = writeln!(lines, "{:12.3} |{bar:<WIDTH$} {count}", value_ms(bucket));
    }
    lines
}

/// Returns how many buckets there are for an increase of the natural logarithm of the latency by 1.
fn scale() -> f64 {
    (BUCKETS - 1.0) / (LAST_MS.ln() - FIRST_MS.ln())
}

fn bucket(ms: f64) -> usize {
    // The logarithm of 0 is minus infinity, which is limited to the first bucket.
    ((ms.ln() - FIRST_MS.ln()) * scale()).round().clamp(0.0, BUCKETS - 1.0) as usize
}

fn value_ms(bucket: usize) -> f64 {
    (bucket as f64 / scale() + FIRST_MS.ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_sysbenchs() {
        // The values are those that sysbench 1.0.20 prints. Neighbouring buckets differ by 1.8%, and the first and the
        // last bucket also contain all latencies beyond them.
        for (us, printed) in
            [(464, "0.464"), (4_143, "4.176"), (3_003_600, "2985.887"), (0, "0.001"), (400_000_000, "100000.000")]
        {
            let mut latencies = Latencies::default();
            latencies.record(us * 1000);
            let lines = lines(&latencies);
            assert!(lines.contains(&format!("{printed:>12} |")), "{lines}");
        }
    }

    #[test]
    fn the_longest_bar_has_forty_stars() {
        let mut latencies = Latencies::default();
        [1000, 1000, 1000, 1000, 9000].into_iter().for_each(|us| latencies.record(us * 1000));
        let bars: Vec<_> = lines(&latencies).lines().skip(1).map(|line| line[14..].to_owned()).collect();
        assert_eq!(bars, [format!("{} 4", "*".repeat(40)), format!("{:<40} 1", "*".repeat(10))]);
    }

    #[test]
    fn nothing_measured_has_no_lines() {
        assert_eq!(lines(&Latencies::default()), "");
    }
}
