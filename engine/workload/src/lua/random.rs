//! The random functions that scripts call through LuaJIT's `ffi`. They draw from a thread-local generator, which
//! belongs to the client whose coroutine is running.

use std::cell::RefCell;
use std::sync::Arc;

use crate::sb_rand::{Distributions, RandType};
use ground::random::Random;

/// The random generator of a client, with the distributions from which it draws.
pub struct Generator {
    pub random: Random,
    pub distributions: Arc<Distributions>,
}

thread_local! {
    static CURRENT: RefCell<Option<Generator>> = const { RefCell::new(None) };
}

/// Swaps a generator with the current generator of this thread. Before a script runs, this lends the client's generator
/// to the thread; afterwards it takes the generator back.
pub fn exchange(generator: &mut Option<Generator>) {
    CURRENT.with_borrow_mut(|current| std::mem::swap(current, generator));
}

/// Draws with the thread's current generator. Returns `otherwise` if the thread has none.
pub fn draw<T>(otherwise: T, from: impl FnOnce(&Distributions, &mut Random) -> T) -> T {
    CURRENT.with_borrow_mut(|current| match current {
        Some(Generator { random, distributions }) => from(distributions, random),
        None => otherwise,
    })
}

/// Expands to the address of a C function with this body.
macro_rules! c_function {
    (($($argument:ident: $type:ty),*) -> $result:ty { $($body:tt)* }) => {{
        extern "C" fn function($($argument: $type),*) -> $result { $($body)* }
        function as *const () as usize
    }};
}

/// Expands to the address of a C function that draws from `a..=b`, its two arguments, in one distribution.
macro_rules! draw_from {
    ($rand_type:expr) => {
        c_function!((a: u32, b: u32) -> u32 {
            draw(a, |distributions, random| distributions.over_type($rand_type, a.into(), b.into()).draw(random) as u32)
        })
    };
}

/// A C function of sysbench: its name in `ffi.C`, its C type and its address.
pub type CFunction = (&'static str, &'static str, usize);

/// Returns the C functions whose arguments and results are numbers.
pub fn c_functions() -> [CFunction; 9] {
    const DRAW: &str = "uint32_t (*)(uint32_t, uint32_t)";
    [
        (
            "sb_rand_default",
            DRAW,
            c_function!((a: u32, b: u32) -> u32 {
                draw(a, |distributions, random| distributions.over(a.into(), b.into()).draw(random) as u32)
            }),
        ),
        ("sb_rand_uniform", DRAW, draw_from!(RandType::Uniform)),
        ("sb_rand_gaussian", DRAW, draw_from!(RandType::Gaussian)),
        ("sb_rand_special", DRAW, draw_from!(RandType::Special)),
        ("sb_rand_pareto", DRAW, draw_from!(RandType::Pareto)),
        ("sb_rand_zipfian", DRAW, draw_from!(RandType::Zipfian)),
        ("sb_rand_unique", "uint32_t (*)(void)", c_function!(() -> u32 { draw(0, |all, _| all.unique()) })),
        (
            "sb_rand_uniform_uint64",
            "uint64_t (*)(void)",
            c_function!(() -> u64 { draw(0, |_, random| random.next_u64()) }),
        ),
        ("sb_rand_uniform_double", "double (*)(void)", c_function!(() -> f64 { draw(0.0, |_, random| random.unit()) })),
    ]
}
