//! Derives the random generators of a run from one seed, in the same order as pgbench.

use ground::random::Random;
use ground::shard::ClientShare;

/// The generators of one engine. Its clients and threads have the same generators as they would have if one engine made
/// the whole run.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// The generators from which the clients draw values.
    pub clients: Vec<Random>,
    /// The seed of hash functions that are called without a seed.
    pub hashes: u64,
    /// The generators for the arrival times of tasks, one for each application. They are the same in all engines, so
    /// that all engines draw the same arrivals.
    pub arrivals: Vec<Random>,
    pub threads: Vec<ThreadSeeds>,
}

/// The random generators of one thread.
#[derive(Debug, Clone)]
pub struct ThreadSeeds {
    /// The generator that chooses the script of each transaction.
    pub choose: Random,
    /// The generator of the times between scheduled starts, for a load with a rate limit.
    pub throttle: Random,
    /// The generator that chooses the transactions for the transaction log.
    pub sample: Random,
}

impl Seeds {
    /// Derives all generators of the whole run from one seed, and returns the generators of this engine. The order is
    /// that of pgbench: the clients, the seed of hash functions, the arrivals of the applications' tasks, and then for
    /// each thread the choice of scripts, throttling and sampling. If `hashes` is given, no seed of hash functions is
    /// drawn.
    ///
    /// The generators of threads are assigned to the engines in turn, so that engines may have different numbers of
    /// threads.
    pub fn derive(seed: u64, part: &ClientShare, apps: usize, jobs: usize, hashes: Option<u64>) -> Self {
        let mut base = Random::seeded(seed);
        let all: Vec<_> = (0..part.whole).map(|_| base.derive()).collect();
        let clients = (0..part.clients()).map(|index| all[part.number(index)].clone()).collect();
        let hashes = hashes.unwrap_or_else(|| base.next_u64());
        let arrivals = (0..apps).map(|_| base.derive()).collect();
        let threads: Vec<_> = (0..jobs * part.shard.of)
            .map(|_| ThreadSeeds { choose: base.derive(), throttle: base.derive(), sample: base.derive() })
            .collect();
        let threads = threads.into_iter().skip(part.shard.index).step_by(part.shard.of).collect();
        Self { clients, hashes, arrivals, threads }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ground::shard::Shard;

    fn words(randoms: &[Random]) -> Vec<u64> {
        randoms.iter().map(|random| random.clone().next_u64()).collect()
    }

    fn of_threads(seeds: &Seeds) -> Vec<u64> {
        seeds.threads.iter().flat_map(|thread| words(&[thread.choose.clone(), thread.throttle.clone()])).collect()
    }

    proptest! {
        #[test]
        fn the_seeds_of_the_parts_are_those_of_the_whole(
            seed in any::<u64>(),
            of in 1usize..6,
            more in 0usize..20,
            jobs in 1usize..5,
        ) {
            let clients = of + more;
            let whole = Seeds::derive(seed, &ClientShare::whole(clients), 0, jobs * of, None);
            let parts: Vec<_> = (0..of)
                .map(|index| Seeds::derive(seed, &ClientShare::of_clients(Shard { index, of }, clients), 0, jobs, None))
                .collect();
            let joined: Vec<_> = parts.iter().flat_map(|part| words(&part.clients)).collect();
            prop_assert_eq!(joined, words(&whole.clients));
            prop_assert!(parts.iter().all(|part| part.hashes == whole.hashes));
            let mut threads: Vec<_> = parts.iter().flat_map(of_threads).collect();
            let mut expected = of_threads(&whole);
            threads.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(threads, expected);
        }

        #[test]
        fn engines_with_other_numbers_of_threads_share_no_seed(of in 2usize..6, jobs in prop::collection::vec(1usize..9, 6)) {
            let parts = (0..of).flat_map(|index| {
                of_threads(&Seeds::derive(1, &ClientShare::of_clients(Shard { index, of }, 60), 0, jobs[index], None))
            });
            let mut all: Vec<_> = parts.collect();
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count);
        }

        #[test]
        fn all_engines_draw_the_same_arrivals(of in 1usize..6, apps in 1usize..4, jobs in 1usize..5) {
            let whole = Seeds::derive(7, &ClientShare::of_pools(Shard::WHOLE, apps, 9), apps, jobs, None);
            for index in 0..of {
                let part = ClientShare::of_pools(Shard { index, of }, apps, 9);
                prop_assert_eq!(words(&Seeds::derive(7, &part, apps, 1, None).arrivals), words(&whole.arrivals));
            }
        }
    }
}
