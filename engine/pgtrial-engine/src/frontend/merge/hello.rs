//! Merges the first events (`hello`) of all machines. Checks that the machines ran shards of one load, and adds up the
//! numbers of clients, threads and transactions in their plans.

use std::collections::BTreeSet;

use super::error::MergeError;
use events::{Hello, PROTOCOL, ShardRecord};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The keys of the plan whose values are added up over the machines. All keys that are neither here nor in
/// `SUMMED_OF_POOLS` must have the same value on all machines.
const SUMMED: [&str; 3] = ["clients", "jobs", "transactions"];

/// The keys of the object `pools` in the plan whose values are added up over the machines.
const SUMMED_OF_POOLS: [&str; 2] = ["tasks", "size"];

/// The key of the plan that says which shard the machine ran. Its value is a [`ShardRecord`].
const SHARD: &str = "shard";

/// The number of characters after which a value is cut off in error messages.
const SHOWN_CHARACTERS: usize = 60;

/// Merges the first events of the machines. `parts` has the name and the event of each machine that has sent one.
/// `fleet` is the number of all machines, including lost machines that never sent an event. Returns `None` if `parts`
/// is empty, and an error if the machines did not run shards of one load.
pub fn merged(parts: &[(&str, &Hello)], fleet: usize) -> Result<Option<Hello>, MergeError> {
    let Some(((first, whole), others)) = parts.split_first() else { return Ok(None) };
    let mut plan = whole.plan.clone();
    for (name, part) in others {
        for (key, theirs, mine) in [
            ("engine", json!(whole.engine), json!(part.engine)),
            ("frontend", json!(whole.frontend), json!(part.frontend)),
            ("server_version", json!(whole.server_version), json!(part.server_version)),
        ] {
            if theirs != mine {
                return Err(differ(first, name, key, &theirs, &mine));
            }
        }
        add_plan(&mut plan, &part.plan, &SUMMED, &|key, theirs, mine| differ(first, name, key, theirs, mine))?;
    }
    check_shards(parts, fleet)?;
    plan.shift_remove(SHARD);
    let started = parts.iter().map(|(_, part)| &part.started).min().cloned().unwrap_or_default();
    let machines = Some(parts.iter().map(|(name, _)| (*name).to_owned()).collect());
    let whole = (*whole).clone();
    Ok(Some(Hello { protocol: PROTOCOL, pid: std::process::id(), started, plan, machines, ..whole }))
}

fn differ(first: &str, second: &str, key: &str, theirs: &Value, mine: &Value) -> MergeError {
    let [first, second, key] = [first, second, key].map(str::to_owned);
    MergeError::OtherRun { first, second, key, theirs: shown(theirs), mine: shown(mine) }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Adds another machine's plan to `plan`. The values of the keys in `summed` are added up. `differ` makes the error for
/// any other key whose values differ.
fn add_plan(
    plan: &mut Map<String, Value>,
    other: &Map<String, Value>,
    summed: &[&str],
    differ: &dyn Fn(&str, &Value, &Value) -> MergeError,
) -> Result<(), MergeError> {
    let keys: BTreeSet<_> = plan.keys().chain(other.keys()).filter(|key| *key != SHARD).cloned().collect();
    for key in keys {
        let theirs = other.get(&key).unwrap_or(&Value::Null);
        let mine = plan.entry(&key).or_insert(Value::Null);
        match (&mut *mine, theirs) {
            (Value::Object(pools), Value::Object(others)) if key == "pools" => {
                let of_pools = |key: &str, mine: &_, theirs: &_| differ(&format!("pools.{key}"), mine, theirs);
                add_plan(pools, others, &SUMMED_OF_POOLS, &of_pools)?;
            }
            (Value::Number(sum), Value::Number(number)) if summed.contains(&key.as_str()) => {
                let (sum, number) = (sum.as_u64().unwrap_or_default(), number.as_u64().unwrap_or_default());
                *mine = json!(sum.saturating_add(number));
            }
            (mine, theirs) if mine == theirs => {}
            (mine, theirs) => return Err(differ(&key, mine, theirs)),
        }
    }
    Ok(())
}

/// Checks that the machines ran different shards of one run of `fleet` shards. A run in which no machine had a shard is
/// accepted, too.
fn check_shards(parts: &[(&str, &Hello)], fleet: usize) -> Result<(), MergeError> {
    let shards = parts.iter().map(|(name, part)| Ok((*name, shard_of(name, &part.plan)?)));
    let shards = shards.collect::<Result<Vec<_>, MergeError>>()?;
    let unsharded = shards.iter().find(|(_, shard)| shard.is_none());
    let mut seen: Vec<(&str, ShardRecord)> = Vec::new();
    for (name, shard) in shards.iter().filter_map(|(name, shard)| Some((*name, (*shard)?))) {
        let ShardRecord { number, of, clients } = shard;
        if let Some((other, _)) = unsharded {
            return Err(MergeError::OwnLoad { whole: (*other).to_owned(), part: name.to_owned(), number, of });
        }
        if of != fleet as u64 {
            return Err(MergeError::OtherFleet { machine: name.to_owned(), number, of, fleet });
        }
        if let Some((other, _)) = seen.iter().find(|(_, seen)| seen.number == number) {
            return Err(MergeError::SameShard { first: (*other).to_owned(), second: name.to_owned(), number, of });
        }
        if let Some((other, theirs)) = seen.iter().find(|(_, seen)| seen.clients != clients) {
            return Err(differ(other, name, "shard.clients", &json!(theirs.clients), &json!(clients)));
        }
        seen.push((name, shard));
    }
    Ok(())
}

fn shard_of(name: &str, plan: &Map<String, Value>) -> Result<Option<ShardRecord>, MergeError> {
    let Some(shard) = plan.get(SHARD) else { return Ok(None) };
    Option::deserialize(shard).map_err(|error| MergeError::NoShard {
        machine: name.to_owned(),
        reason: error.to_string(),
        text: shown(shard),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(plan: Value) -> Hello {
        serde_json::from_value(json!({
            "protocol": 1, "pid": 1, "engine": "0.1.0", "frontend": "pgbench", "started": "2026-11-20T14:12:03.123456Z",
            "server_version": "18.6", "plan": plan,
        }))
        .unwrap()
    }

    fn joined(plans: &[Value]) -> Result<Hello, MergeError> {
        let hellos: Vec<_> = plans.iter().map(|plan| hello(plan.clone())).collect();
        let names = ["a", "b", "c"];
        let parts: Vec<_> = names.into_iter().zip(&hellos).collect();
        Ok(merged(&parts, plans.len())?.unwrap())
    }

    #[test]
    fn what_is_shared_out_adds_up_and_the_rest_is_that_of_all() {
        let part = |number: u32, clients: u32, tasks: u32| {
            json!({ "scripts": ["s"], "clients": clients, "transactions": null, "shard": {"number": number, "of": 2, "clients": 5},
                    "pools": {"apps": 3, "tasks": tasks, "arrival": "50"} })
        };
        let whole = joined(&[part(1, 3, 40), part(2, 2, 35)]).unwrap();
        assert_eq!(
            Value::Object(whole.plan),
            json!({ "scripts": ["s"], "clients": 5, "transactions": null,
                    "pools": {"apps": 3, "tasks": 75, "arrival": "50"} })
        );
        assert_eq!(whole.machines.unwrap(), ["a", "b"]);
    }

    #[test]
    fn parts_of_other_runs_are_refused_by_name() {
        let refused = |one: Value, other: Value| joined(&[one, other]).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"duration_s": 5.0}), json!({"duration_s": 6.0})),
            "machine b did not take part in the run of machine a: \"duration_s\" is 5.0 on a and 6.0 on b"
        );
        assert!(refused(json!({"pools": {"apps": 1}}), json!({"pools": {"apps": 2}})).contains("\"pools.apps\" is 1"));
        assert!(refused(json!({}), json!({"pools": {}})).contains("\"pools\" is null on a"));
        let long = refused(json!({"scripts": ["é".repeat(100)]}), json!({"scripts": []}));
        assert!(long.contains("éé... on a and [] on b"), "{long}");
    }

    #[test]
    fn each_part_is_there_once() {
        let shard =
            |number: u32, of: u32, clients: u32| json!({ "shard": {"number": number, "of": of, "clients": clients} });
        let refused = |plans: &[Value]| joined(plans).unwrap_err().to_string();
        assert!(joined(&[shard(2, 2, 5), shard(1, 2, 5)]).is_ok());
        assert_eq!(
            refused(&[shard(1, 2, 5), shard(1, 2, 5)]),
            "machines a and b both ran shard 1 of 2; each shard may occur only once"
        );
        let advice = "give the events of all machines of one run";
        assert_eq!(
            refused(&[shard(1, 3, 5), shard(2, 3, 5)]),
            format!("machine a ran shard 1 of 3, but there are 2 machines; {advice}")
        );
        assert_eq!(refused(&[shard(1, 2, 5)]), format!("machine a ran shard 1 of 2, but there is 1 machine; {advice}"));
        assert!(refused(&[shard(1, 2, 5), shard(2, 2, 6)]).contains("\"shard.clients\" is 5 on a and 6 on b"));
        assert!(
            refused(&[json!({ "shard": 1 })]).starts_with("machine a does not report which shard of the run it ran")
        );
        let own = refused(&[shard(1, 2, 5), json!({})]);
        assert_eq!(own, "machine b ran a whole load, but machine a ran only shard 1 of 2 of a load");
    }
}
