//! The seeds of a run, derived from one in pgbench's order.

use ground::random::Random;
use ground::shard::ClientShare;

/// The generators of an engine: those that its clients and threads would have in one whole run.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// The generators of each client's values.
    pub clients: Vec<Random>,
    /// The seed of hash functions that are given none.
    pub hashes: u64,
    /// The generators of the arrival times of each application's tasks. All engines draw the same arrivals from them.
    pub arrivals: Vec<Random>,
    pub threads: Vec<ThreadSeeds>,
}

/// The generators of a thread.
#[derive(Debug, Clone)]
pub struct ThreadSeeds {
    /// The generator that chooses the next script.
    pub choose: Random,
    /// The generator of the times between scheduled starts.
    pub throttle: Random,
    /// The generator that chooses which transactions are logged.
    pub sample: Random,
}

impl Seeds {
    /// Derives all generators of the whole run from one seed in pgbench's order, and keeps the engine's own: the
    /// clients, the default seed of hash functions, the applications' arrivals, then for each thread the choice of
    /// scripts, throttling and sampling. If a seed is given in `hashes`, none is drawn for the hash functions. The
    /// generators of threads are assigned to the engines round-robin, so that engines may have different numbers of
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
