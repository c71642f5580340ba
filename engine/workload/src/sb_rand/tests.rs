use super::distributions::*;
use super::values::*;
use crate::settings::{OptionValue, Settings};
use ground::random::Random;
use ground::shard::Shard;
use proptest::prelude::*;

const DRAWS: usize = 200_000;

fn settings(options: &[(&str, OptionValue)]) -> Settings {
    let mut settings = Settings::default();
    settings.set("rand_seed", OptionValue::Int(7));
    options.iter().for_each(|(name, value)| settings.set(name, value.clone()));
    settings
}

fn distributions(options: &[(&str, OptionValue)]) -> Distributions {
    Distributions::new(&settings(options)).unwrap()
}

/// Returns the mean, the standard deviation, and the quantiles of 5, 25, 50, 75 and 95 per cent.
fn shape(distributions: &Distributions, rand_type: RandType, a: i64, b: i64) -> [f64; 7] {
    let (distribution, mut random) = (distributions.over_type(rand_type, a, b), Random::seeded(11));
    let mut drawn: Vec<i64> = (0..DRAWS).map(|_| distribution.draw(&mut random)).collect();
    drawn.sort_unstable();
    assert!(drawn[0] >= a && drawn[DRAWS - 1] <= b, "{rand_type:?}");
    let mean = drawn.iter().sum::<i64>() as f64 / DRAWS as f64;
    let variance = drawn.iter().map(|number| (*number as f64 - mean).powi(2)).sum::<f64>() / DRAWS as f64;
    let at = |percent: usize| drawn[DRAWS * percent / 100] as f64;
    [mean, variance.sqrt(), at(5), at(25), at(50), at(75), at(95)]
}

/// Checks that mean, deviation and quantiles are within 0.6% of the range's width of the expected values. In small
/// ranges the quantiles may differ by 1.
fn assert_shape(distributions: &Distributions, rand_type: RandType, a: i64, b: i64, expected: [f64; 7]) {
    let found = shape(distributions, rand_type, a, b);
    let tolerance = 0.006 * (b - a) as f64;
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let tolerance = if number < 2 { tolerance } else { tolerance.max(1.0) };
        assert!((found - expected).abs() <= tolerance, "{rand_type:?} {a} {b} {number}: {found} for {expected}");
    }
}

/// Checks the values against 1,000,000 draws that sysbench 1.0.20 made with these options.
#[test]
fn shapes_are_those_of_sysbench() {
    let usual = distributions(&[]);
    for (rand_type, a, b, expected) in [
        (RandType::Uniform, 1, 1000, [500.741, 288.643, 51.0, 251.0, 501.0, 751.0, 951.0]),
        (RandType::Uniform, 1, 10, [5.499, 2.875, 1.0, 3.0, 5.0, 8.0, 10.0]),
        (RandType::Gaussian, 1, 1000, [500.404, 83.234, 363.0, 444.0, 500.0, 557.0, 638.0]),
        (RandType::Gaussian, 1, 10, [5.5, 0.882, 4.0, 5.0, 5.0, 6.0, 7.0]),
        (RandType::Special, 1, 1000, [501.436, 41.711, 429.0, 499.0, 502.0, 505.0, 571.0]),
        (RandType::Special, 1, 10, [5.5, 0.641, 4.0, 5.0, 6.0, 6.0, 6.0]),
        (RandType::Special, 0, 1_000_000, [500_847.0, 41_702.0, 428_889.0, 498_758.0, 501_231.0, 503_701.0, 570_506.0]),
        (RandType::Pareto, 1, 1000, [122.458, 223.477, 1.0, 1.0, 7.0, 126.0, 691.0]),
        (RandType::Pareto, 1, 10, [2.001, 2.096, 1.0, 1.0, 1.0, 2.0, 7.0]),
    ] {
        assert_shape(&usual, rand_type, a, b, expected);
    }
    let other = distributions(&[
        ("rand_spec_pct", OptionValue::Int(20)),
        ("rand_spec_res", OptionValue::Int(40)),
        ("rand_spec_iter", OptionValue::Int(3)),
        ("rand_pareto_h", OptionValue::Double(0.4)),
    ]);
    assert_shape(&other, RandType::Special, 1, 1000, [524.137, 133.306, 264.0, 463.0, 548.0, 588.0, 735.0]);
    assert_shape(&other, RandType::Pareto, 1, 1000, [358.782, 299.753, 5.0, 84.0, 289.0, 598.0, 913.0]);
    let coarse = distributions(&[("rand_spec_iter", OptionValue::Int(2))]);
    assert_shape(&coarse, RandType::Gaussian, 1, 1000, [500.463, 203.987, 159.0, 354.0, 500.0, 647.0, 842.0]);
}

/// Checks that the probability of the n-th number is proportional to `1 / n^exponent`.
#[test]
fn zipfian_frequencies_are_the_laws() {
    for exponent in [0.0, 0.5, 0.8, 1.0, 1.3, 3.0] {
        let zipfian = distributions(&[("rand_zipfian_exp", OptionValue::Double(exponent))]);
        let (count, mut random, mut drawn) = (20usize, Random::seeded(5), [0u32; 20]);
        let distribution = zipfian.over_type(RandType::Zipfian, 101, 100 + count as i64);
        (0..DRAWS).for_each(|_| drawn[distribution.draw(&mut random) as usize - 101] += 1);
        let weights: Vec<f64> = (1..=count).map(|n| (n as f64).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        for (n, weight) in weights.iter().enumerate() {
            let (found, expected) = (f64::from(drawn[n]) / DRAWS as f64, weight / sum);
            let deviation = (expected / DRAWS as f64).sqrt();
            assert!((found - expected).abs() < 5.0 * deviation, "{exponent} {n}: {found} for {expected}");
        }
    }
}

#[test]
fn the_default_is_what_the_option_names() {
    for (name, rand_type) in [
        ("uniform", RandType::Uniform),
        ("gaussian", RandType::Gaussian),
        ("special", RandType::Special),
        ("pareto", RandType::Pareto),
        ("zipfian", RandType::Zipfian),
    ] {
        let distributions = distributions(&[("rand_type", OptionValue::Text(Some(name.to_owned())))]);
        let (mut one, mut other) = (Random::seeded(3), Random::seeded(3));
        let named = distributions.over_type(rand_type, 1, 100_000);
        assert!((0..50).all(|_| distributions.over(1, 100_000).draw(&mut one) == named.draw(&mut other)), "{name}");
    }
}

#[test]
fn bad_parameters_are_refused() {
    let refused = |name: &str, value: OptionValue| Distributions::new(&settings(&[(name, value)])).err().unwrap().lines;
    let text = OptionValue::Text(Some("foo".to_owned()));
    assert_eq!(refused("rand_type", text), ["Invalid random numbers distribution: foo."]);
    assert_eq!(refused("rand_zipfian_exp", OptionValue::Double(-0.1)), ["--rand-zipfian-exp must be >= 0"]);
    assert_eq!(refused("rand_spec_pct", OptionValue::Int(101)), ["--rand-spec-pct must be between 0 and 100"]);
    assert_eq!(refused("rand_spec_res", OptionValue::Int(-1)), ["--rand-spec-res must be between 0 and 100"]);
    assert_eq!(refused("rand_spec_iter", OptionValue::Int(0)), ["--rand-spec-iter must be >= 1"]);
    for h in [0.0, 1.0, f64::NAN] {
        assert_eq!(refused("rand_pareto_h", OptionValue::Double(h)), ["--rand-pareto-h must be > 0 and < 1"]);
    }
}

/// In sysbench 1.0.20, `uniform(5, 4)` is 5, and `uniform(-5, -1)` is 4294967291 to 4294967295.
#[test]
fn ends_wrap_as_in_sysbench() {
    let (distributions, mut random) = (distributions(&[]), Random::seeded(1));
    assert_eq!(distributions.over_type(RandType::Uniform, 5, 4).draw(&mut random), 5);
    for _ in 0..100 {
        assert!(
            (4_294_967_291..=4_294_967_295)
                .contains(&distributions.over_type(RandType::Uniform, -5, -1).draw(&mut random))
        );
    }
}

#[test]
fn unique_numbers_are_distinct_over_all_threads() {
    let distributions = distributions(&[]);
    let mut drawn: Vec<u32> = std::thread::scope(|scope| {
        let draw = || (0..50_000).map(|_| distributions.unique()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mean = drawn.iter().map(|number| f64::from(*number)).sum::<f64>() / drawn.len() as f64;
    assert!((mean / f64::from(u32::MAX) - 0.5).abs() < 0.01, "{mean}");
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 200_000);
}

#[test]
fn engines_that_take_turns_draw_the_unique_numbers_of_the_whole_run() {
    let draw = |distributions: &Distributions| (0..1000).map(|_| distributions.unique()).collect::<Vec<_>>();
    let whole = distributions(&[]);
    let mut expected: Vec<_> = (0..3).flat_map(|_| draw(&whole)).collect();
    let mut drawn: Vec<_> =
        (0..3).flat_map(|index| draw(&distributions(&[]).of_shard(Shard { index, of: 3 }))).collect();
    expected.sort_unstable();
    drawn.sort_unstable();
    assert_eq!(drawn, expected);
}

#[test]
fn templates_keep_what_is_no_sign() {
    let (mut random, mut seen) = (Random::seeded(2), [false; 256]);
    for _ in 0..2000 {
        let mut out = b">".to_vec();
        string(&mut random, b"#@-x", &mut out);
        assert!(out[0] == b'>' && out[1].is_ascii_digit() && out[2].is_ascii_lowercase() && out.ends_with(b"-x"));
        seen[out[1] as usize] = true;
        seen[out[2] as usize] = true;
    }
    assert_eq!(seen.iter().filter(|seen| **seen).count(), 36);
}

#[test]
fn groups_have_all_digits_at_all_places() {
    let (mut random, mut counts) = (Random::seeded(4), vec![[0u32; 10]; 59]);
    for _ in 0..20_000 {
        let mut pad = [0; 59];
        fill_groups(&mut random, &mut pad);
        for (place, byte) in pad.iter().enumerate() {
            match place % 12 {
                11 => assert_eq!(*byte, b'-'),
                _ => counts[place][usize::from(byte - b'0')] += 1,
            }
        }
    }
    for (_, counts) in counts.iter().enumerate().filter(|(place, _)| place % 12 != 11) {
        assert!(counts.iter().all(|count| (1750..2250).contains(count)), "{counts:?}");
    }
}

proptest! {
    #[test]
    fn varstrings_are_as_long_as_wanted(min in 0u32..20, max in 0u32..20, seed: u64) {
        let mut out = Vec::new();
        varstring(&mut Random::seeded(seed), min, max, &mut out);
        let least = if min > max { max.min(1) } else { min };
        prop_assert!((least as usize..=max as usize).contains(&out.len()));
        prop_assert!(out.iter().all(|byte| (b'0'..=b'z').contains(byte)));
    }

    #[test]
    fn draws_stay_in_their_range(a in 0i64..4_000_000_000, size in 0i64..1_000_000, seed: u64) {
        let (distributions, mut random) = (distributions(&[]), Random::seeded(seed));
        let b = (a + size).min(i64::from(u32::MAX));
        for rand_type in [RandType::Uniform, RandType::Gaussian, RandType::Special, RandType::Pareto, RandType::Zipfian] {
            let distribution = distributions.over_type(rand_type, a, b);
            for _ in 0..20 {
                let drawn = distribution.draw(&mut random);
                prop_assert!((a..=b).contains(&drawn), "{rand_type:?} {a} {b} {drawn}");
            }
        }
    }
}
