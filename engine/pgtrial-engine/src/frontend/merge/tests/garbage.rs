//! Tests with random and damaged input: the merger must either merge it, or reject it with a message of one sentence.

use proptest::prelude::*;

use super::*;

/// The change by which the test damages a line of events.
#[derive(Debug, Clone)]
enum Harm {
    Replaced(usize, Vec<u8>),
    Cut(usize),
    Dropped,
    Twice,
    Swapped,
    Other(&'static str, &'static str),
}

fn harm() -> impl Strategy<Value = Harm> {
    let numbers = prop::sample::select(vec![
        "-1",
        "1e308",
        "18446744073709551615",
        "null",
        "\"x\"",
        "[]",
        "{}",
        "17592186044416",
    ]);
    let keys = vec![
        "transactions",
        "second",
        "seconds",
        "t",
        "mean",
        "stddev",
        "max",
        "clients",
        "duration_s",
        "status",
        "at",
        "failures",
        "histogram",
        "phase",
        "plan",
        "latency_us",
        "lag_us",
        "client",
        "measure",
        "scripts",
    ];
    prop_oneof![
        (any::<usize>(), prop::collection::vec(any::<u8>(), 0..4)).prop_map(|(at, bytes)| Harm::Replaced(at, bytes)),
        any::<usize>().prop_map(Harm::Cut),
        Just(Harm::Dropped),
        Just(Harm::Twice),
        Just(Harm::Swapped),
        (prop::sample::select(keys), numbers).prop_map(|(key, value)| Harm::Other(key, value)),
    ]
}

fn apply(stream: &mut Vec<Vec<u8>>, at: usize, harm: &Harm) {
    if stream.is_empty() {
        return;
    }
    let at = at % stream.len();
    match harm {
        Harm::Replaced(place, bytes) => {
            let place = place % stream[at].len().max(1);
            let end = (place + bytes.len()).min(stream[at].len());
            stream[at].splice(place..end, bytes.iter().copied());
        }
        Harm::Cut(length) => {
            let length = length % (stream[at].len() + 1);
            stream[at].truncate(length);
        }
        Harm::Dropped => drop(stream.remove(at)),
        Harm::Twice => stream.insert(at, stream[at].clone()),
        Harm::Swapped => stream.swap(at, 0),
        Harm::Other(key, value) => {
            let text = String::from_utf8_lossy(&stream[at]).into_owned();
            let key = format!("\"{key}\":");
            if let Some(start) = text.find(&key).map(|start| start + key.len()) {
                let length = text[start..].find([',', '}']).unwrap_or(0);
                stream[at] = format!("{}{value}{}", &text[..start], &text[start + length..]).into_bytes();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn harmed_streams_are_merged_or_refused_in_a_sentence(
        all in transactions(30),
        has_schedule in any::<bool>(),
        harms in prop::collection::vec((0..3usize, any::<usize>(), harm()), 1..6),
        order in prop::collection::vec(any::<usize>(), 1..40),
    ) {
        let mut streams = vec![engine(&all, 1, 0.5, has_schedule); 3];
        harms.iter().for_each(|(machine, at, harm)| apply(&mut streams[*machine], *at, harm));
        let mut order = order.iter().cycle();
        match merged(&streams, |_| *order.next().unwrap()) {
            Ok((events, _)) => prop_assert_eq!(&*events.last().unwrap().event, "done"),
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.contains("machine") && !message.contains('\n'), "{}", message);
            }
        }
    }

    #[test]
    fn any_line_is_read_or_refused(line in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut merger = Merger::new(["a".to_owned()]);
        prop_assert!(merger.add_line(0, &line).is_err());
    }
}
