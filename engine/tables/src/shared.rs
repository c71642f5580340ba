//! Tables that several engines fill at once, each with its share of the rows.
//!
//! They were made or emptied before all of them: an engine that emptied them would take away what the others have
//! written. So COPY cannot freeze, which only the transaction may that has emptied the table, and nobody may alter the
//! table meanwhile: rows come with all their columns. In return nothing ties a table to one connection, so that an
//! ordinary one is filled over several as well.

use std::ops::Range;
use std::slice;

use super::Load;
use super::layout::Part;

/// What of the parts is to be filled by this engine, over as many connections as are `wanted`.
pub fn own(parts: Vec<Part>, load: &Load, wanted: usize) -> Vec<Part> {
    if !load.shard.is_part() {
        return parts;
    }
    let accounts = load.accounts();
    let own = cut(&parts, slice::from_ref(&accounts));
    if own.len() >= wanted {
        return own;
    }
    let (wanted, length) = (wanted as u64, accounts.end - accounts.start);
    let bound = |number: u64| accounts.start + length * number / wanted;
    cut(&own, &(0..wanted).map(|number| bound(number)..bound(number + 1)).collect::<Vec<_>>())
}

/// The parts in each of the ranges, as far as there are rows.
fn cut(parts: &[Part], ranges: &[Range<u64>]) -> Vec<Part> {
    let within = |part: &Part, range| part.share.within(range).map(|share| Part { share, ..part.clone() });
    ranges.iter().flat_map(|range| parts.iter().filter_map(move |part| within(part, range))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::Share;
    use super::*;
    use ground::shard::Shard;

    /// Bounds of the ranges that the engine `index` of three fills, if there is a partition for each of these bounds.
    fn filled(bounds: &[(u64, u64)], index: usize, wanted: usize) -> Vec<(u64, u64)> {
        let part = |(start, end): &(u64, u64)| Part {
            table: "pgbench_accounts".to_owned(),
            share: Share::Range(*start..*end),
            wide: false,
        };
        let load = Load { shard: Shard { index, of: 3 }, ..Load::default() };
        let ranges = own(bounds.iter().map(part).collect(), &load, wanted).into_iter().map(|part| match part.share {
            Share::Range(range) => (range.start, range.end),
            other => panic!("{other:?}"),
        });
        ranges.collect()
    }

    #[test]
    fn an_ordinary_table_is_filled_over_as_many_connections_as_are_wanted() {
        let whole = [(0, 100_000)];
        assert_eq!(filled(&whole, 0, 1), [(0, 33_334)]);
        assert_eq!(filled(&whole, 1, 2), [(33_334, 50_000), (50_000, 66_667)]);
        assert_eq!(filled(&whole, 2, 3), [(66_667, 77_778), (77_778, 88_889), (88_889, 100_000)]);
    }

    #[test]
    fn partitions_without_a_row_of_ours_are_left_to_others() {
        let halves = [(0, 50_000), (50_000, 100_000)];
        assert_eq!(filled(&halves, 0, 1), [(0, 33_334)]);
        assert_eq!(filled(&halves, 1, 2), [(33_334, 50_000), (50_000, 66_667)]);
    }
}
