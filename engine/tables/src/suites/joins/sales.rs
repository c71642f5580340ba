//! Generates the rows of sales, visits and reviews. The same people and the same products are frequent in all three
//! tables. The numbers in brackets after a field are the `column` arguments of the random draws that make the field.

use super::products::Assortment;
use super::sizes::{COUPONS, DAYS, DEPARTMENTS_OF_SHOP, FIRST_DAY, day_in_order, people, reviews, sales, visits};
use crate::row::{RowBuffer, RowSource};
use crate::suites::draws::{RowDraws, spread};
use crate::suites::population::{Population, numbered};

/// The numbers of the tables of this file in their suite. With the seed, the number of a table determines its random
/// values.
const SALES: u64 = 3;
const VISITS: u64 = 4;
const REVIEWS: u64 = 5;

const CHANNELS: [&str; 4] = ["app", "phone", "store", "web"];

/// Returns the rows of the table sales. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: sale_id, person_id (0, 1), product_id (2 to 5), sold_on (6), channel (7, 8), quantity (9), amount,
/// coupon_id (10, 11).
///
/// People who buy often tend to buy frequent products. Most sales of a person go through the same channel. A coupon
/// belongs to the department of the product.
pub fn sale_rows(population: Population) -> RowSource {
    let (table, count) = (population.draws(SALES), sales(&population));
    let (people, assortment) = (people(&population), Assortment::new(&population));
    numbered(count, move |id, out| {
        let draws = table.row(id);
        let rank = draws.zipf(0, people);
        let (person, product) = (spread(rank, people), product(draws, rank, people, assortment.count));
        let quantity = draws.between(9, 1, 3);
        let channel = if draws.is_one_of(7, 80) { CHANNELS[person as usize % 4] } else { draws.one(8, &CHANNELS) };
        let row = RowBuffer::new(out, 8)
            .int(id)
            .int(person)
            .int(product)
            .date(day_in_order(id, count) + draws.below(6, 3))
            .text(channel.as_bytes())
            .small(quantity)
            .money(quantity * assortment.price(product));
        if draws.is_one_of(10, 90) {
            row.null();
        } else {
            let departments = DEPARTMENTS_OF_SHOP.len() as i64;
            row.int(assortment.department(product) + departments * draws.below(11, COUPONS / departments) + 1);
        }
    })
}

/// Returns the product of a sale. In three of five sales, people who buy often get products that are sold often: the
/// rank of the product lies in the octave (see [`RowDraws::zipf`]) that corresponds to the octave of the person's rank.
/// In the other sales the product does not depend on the person.
fn product(draws: RowDraws, rank_of_person: i64, people: i64, products: i64) -> i64 {
    let octaves = |count: i64| i64::from(count.ilog2()) + 1;
    let rank = if draws.is_one_of(2, 60) {
        let octave = i64::from(rank_of_person.ilog2()) * octaves(products) / octaves(people);
        draws.in_octave(3, octave, products)
    } else {
        draws.zipf(4, products)
    };
    spread(rank, products)
}

/// Returns the rows of the table visits. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: visit_id, person_id (0, 1), visited_on (2), pages (3, 4), campaign (5). The campaign is the campaign
/// of that day, or NULL.
pub fn visit_rows(population: Population) -> RowSource {
    let (table, people) = (population.draws(VISITS), people(&population));
    numbered(visits(&population), move |id, out| {
        let draws = table.row(id);
        let day = draws.below(2, DAYS);
        let row = RowBuffer::new(out, 5)
            .int(id)
            .int(spread(draws.zipf(0, people), people))
            .date(FIRST_DAY + day)
            .small(draws.zipf(3, 64));
        if draws.is_one_of(5, 70) {
            row.null();
        } else {
            row.formatted(format_args!("campaign {:02}", day / 100));
        }
    })
}

/// Returns the rows of the table reviews. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: review_id, product_id (0, 1), person_id (2, 3), stars (4 to 6), written_on, flagged (7, 8).
///
/// A third of the products tends to get bad reviews. Only reviews of one star can be flagged.
pub fn review_rows(population: Population) -> RowSource {
    let (table, count) = (population.draws(REVIEWS), reviews(&population));
    let (people, products) = (people(&population), Assortment::new(&population).count);
    numbered(count, move |id, out| {
        let draws = table.row(id);
        let product = spread(draws.zipf(0, products), products);
        let stars = match draws.is_one_of(4, 85) {
            true if product % 3 == 0 => draws.between(5, 1, 2),
            true => draws.between(5, 4, 5),
            false => draws.between(6, 1, 5),
        };
        let row = RowBuffer::new(out, 6)
            .int(id)
            .int(product)
            .int(spread(draws.zipf(2, people), people))
            .small(stars)
            .date(day_in_order(id, count));
        if stars == 1 && draws.is_one_of(7, 20) {
            row.boolean(draws.is_one_of(8, 50));
        } else {
            row.null();
        }
    })
}
