//! Generates random logs of a server, one for each seed, makes a capture (the recorded sessions and statements) from
//! each log, and compares the capture with what was written: `cargo run --release --example hunt -- COUNT
//! [FIRST_SEED]`. Prints the first differences, each with the smallest log that shows the same kind of difference.

use log_oracle::judge;

/// The number of differences for each of which the smallest log is searched and printed.
const SHOWN_DIFFERENCES: usize = 12;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("numbers are given"));
    let count: u64 = arguments.next().expect("the number of logs is given");
    let first: u64 = arguments.next().unwrap_or(0);
    let mut differences = 0;
    for seed in first..first + count {
        let bytes = bytes_of(seed);
        let Err(difference) = judge(&bytes) else { continue };
        differences += 1;
        if differences <= SHOWN_DIFFERENCES {
            println!("seed {seed}: {}\n", smallest(bytes, difference.to_string()));
        }
    }
    println!("{differences} differences in {count} logs");
}

/// Draws between 40 and 440 bytes from the generator SplitMix64.
fn bytes_of(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let length = 40 + next() % 400;
    (0..length).map(|_| next() as u8).collect()
}

/// Makes the input as small as possible: removes bytes or replaces them by zeros, as long as a difference of the same
/// kind remains. Returns the difference that the smallest input has.
fn smallest(mut bytes: Vec<u8>, mut difference: String) -> String {
    let kind = kind_of(&difference);
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        let mut width = bytes.len() / 2;
        while width >= 1 {
            let mut at = 0;
            while at + width <= bytes.len() {
                let without = [&bytes[..at], &bytes[at + width..]].concat();
                let mut zeroed = bytes.clone();
                zeroed[at..at + width].fill(0);
                let candidates = [without, zeroed].into_iter().filter(|candidate| *candidate != bytes);
                let smaller =
                    candidates.filter_map(|candidate| Some((judge(&candidate).err()?.to_string(), candidate)));
                match smaller.into_iter().find(|(other, _)| kind_of(other) == kind) {
                    Some((other, candidate)) => (difference, bytes, has_changed) = (other, candidate, true),
                    None => at += width,
                }
            }
            width /= 2;
        }
    }
    difference
}

/// Returns the first two words of the description of a difference, which name its kind.
fn kind_of(difference: &str) -> String {
    difference.split([':', ' ']).take(2).collect()
}
