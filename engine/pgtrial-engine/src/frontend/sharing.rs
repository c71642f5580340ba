//! `--shard`: the option of runs that several engines share. Each error is one sentence.

use ground::shard::Shard;

/// The error where each engine would have a seed of its own; `option` sets the seed.
pub fn needs_seed(option: &str) -> String {
    format!("--shard needs {option} with a number, the same for all shards of the run: they draw from one seed")
}

/// `I/N`, from 1.
pub fn shard(text: &str) -> Result<Shard, String> {
    let number = |digits: &str| digits.parse::<usize>().ok().filter(|number| *number > 0);
    let parts = text.trim().split_once('/').and_then(|(index, of)| Some((number(index)?, number(of)?)));
    match parts {
        Some((index, of)) if index <= of => Ok(Shard { index: index - 1, of }),
        _ => Err(format!(
            "invalid value \"{text}\" for option --shard: it takes I/N, the number of the shard and that of all, such as \
             2/4 for the second of four"
        )),
    }
}

/// Rejects a shard if some engine would have none of the `total` things that are shared out; `what` names them.
pub fn check_enough(shard: Shard, total: usize, what: &str) -> Result<(), String> {
    if total >= shard.of {
        return Ok(());
    }
    let of = shard.of;
    Err(format!("--shard={shard}: {total} {what} cannot be shared out among {of} shards, each needs one at least"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_several() {
        for (text, index, of) in [("1/1", 0, 1), ("1/3", 0, 3), (" 3/3", 2, 3)] {
            assert_eq!(shard(text), Ok(Shard { index, of }));
        }
        assert_eq!(shard("2/4").unwrap().to_string(), "2/4");
        for text in ["", "x", "1", "/", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "1.5/2", "2 of 4"] {
            assert!(shard(text).unwrap_err().contains("it takes I/N"), "{text}");
        }
    }

    #[test]
    fn nobody_is_to_be_without_work() {
        assert_eq!(check_enough(Shard { index: 0, of: 3 }, 3, "clients"), Ok(()));
        let refused = check_enough(Shard { index: 1, of: 3 }, 2, "clients").unwrap_err();
        assert_eq!(refused, "--shard=2/3: 2 clients cannot be shared out among 3 shards, each needs one at least");
    }
}
