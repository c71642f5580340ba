//! Random numbers for scripts. A script's calls reach its client's generator through the thread: it is in place while the
//! client's coroutine runs.

use std::cell::RefCell;
use std::sync::Arc;

use crate::random::skewed::Distributions;
use ground::random::Random;

/// A client's generator.
pub struct Generator {
    pub random: Random,
    pub distributions: Arc<Distributions>,
}

thread_local! {
    static CURRENT: RefCell<Option<Generator>> = const { RefCell::new(None) };
}

/// Puts a generator in place, or takes it back: it and the thread's change places.
pub fn exchange(generator: &mut Option<Generator>) {
    CURRENT.with_borrow_mut(|current| std::mem::swap(current, generator));
}

/// Draws from the generator in place; without one there is only `otherwise`.
pub fn draw<T>(otherwise: T, from: impl FnOnce(&Distributions, &mut Random) -> T) -> T {
    CURRENT.with_borrow_mut(|current| match current {
        Some(Generator { random, distributions }) => from(distributions, random),
        None => otherwise,
    })
}

/// The functions of numbers that scripts call: their names and addresses. Their types are in `prelude/rand.lua`.
pub fn functions() -> [(&'static str, usize); 9] {
    [
        ("sb_rand_default", default as *const () as usize),
        ("sb_rand_uniform", uniform as *const () as usize),
        ("sb_rand_gaussian", gaussian as *const () as usize),
        ("sb_rand_special", special as *const () as usize),
        ("sb_rand_pareto", pareto as *const () as usize),
        ("sb_rand_zipfian", zipfian as *const () as usize),
        ("sb_rand_unique", unique as *const () as usize),
        ("sb_rand_uniform_uint64", uniform_uint64 as *const () as usize),
        ("sb_rand_uniform_double", uniform_double as *const () as usize),
    ]
}

extern "C" fn default(a: u32, b: u32) -> u32 {
    draw(a, |distributions, random| distributions.default(random, a.into(), b.into()) as u32)
}

extern "C" fn uniform(a: u32, b: u32) -> u32 {
    draw(a, |distributions, random| distributions.uniform(random, a.into(), b.into()) as u32)
}

extern "C" fn gaussian(a: u32, b: u32) -> u32 {
    draw(a, |distributions, random| distributions.gaussian(random, a.into(), b.into()) as u32)
}

extern "C" fn special(a: u32, b: u32) -> u32 {
    draw(a, |distributions, random| distributions.special(random, a.into(), b.into()) as u32)
}

extern "C" fn pareto(a: u32, b: u32) -> u32 {
    draw(a, |distributions, random| distributions.pareto(random, a.into(), b.into()) as u32)
}

extern "C" fn zipfian(a: u32, b: u32) -> u32 {
    draw(a, |distributions, random| distributions.zipfian(random, a.into(), b.into()) as u32)
}

extern "C" fn unique() -> u32 {
    draw(0, |distributions, _| distributions.unique())
}

extern "C" fn uniform_uint64() -> u64 {
    draw(0, |_, random| random.next_u64())
}

extern "C" fn uniform_double() -> f64 {
    draw(0.0, |_, random| random.unit())
}
