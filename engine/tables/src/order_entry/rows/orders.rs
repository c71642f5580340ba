//! Generates the rows of the orders, of their lines, and of `new_order`, which lists the orders that are not delivered.

use ground::random::Random;
use workload::order_entry::sizes::{FIRST_NEW_ORDER, ITEMS, ORDERS};

use crate::order_entry::population::{Population, RandomStream, RowPlace, order_size};
use crate::row::{RowBuffer, RowSource};

/// Returns the rows of `orders`: o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local, o_entry_d.
pub fn orders(population: Population) -> RowSource {
    let mut places = population.places(ORDERS);
    let mut random = population.random(RandomStream::Orders, 0, 0);
    let mut sizes = population.random(RandomStream::OrderSizes, 0, 0);
    let mut customers = Vec::new();
    Box::new(move |out| {
        let Some(RowPlace { warehouse, district, number }) = places.next() else { return false };
        if number == 1 {
            random = population.random(RandomStream::Orders, warehouse, district);
            sizes = population.random(RandomStream::OrderSizes, warehouse, district);
            customers = permutation(&mut random);
        }
        let row = RowBuffer::new(out, 8).int(warehouse).small(district).int(number).int(customers[number as usize - 1]);
        let row = if is_delivered(number) { row.small(random.range(1, 10)) } else { row.null() };
        row.small(order_size(&mut sizes)).small(1).time(population.now);
        true
    })
}

/// Returns the rows of `order_line`: ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
/// ol_quantity, ol_amount, ol_dist_info.
pub fn order_lines(population: Population) -> RowSource {
    let mut places = population.places(ORDERS);
    let mut random = population.random(RandomStream::OrderLines, 0, 0);
    let mut sizes = population.random(RandomStream::OrderSizes, 0, 0);
    let (mut order, mut line, mut lines) = (RowPlace::default(), 0, 0);
    Box::new(move |out| {
        if line == lines {
            let Some(next) = places.next() else { return false };
            if next.number == 1 {
                random = population.random(RandomStream::OrderLines, next.warehouse, next.district);
                sizes = population.random(RandomStream::OrderSizes, next.warehouse, next.district);
            }
            (order, line, lines) = (next, 0, order_size(&mut sizes));
        }
        line += 1;
        let RowPlace { warehouse, district, number } = order;
        let item = random.range(1, ITEMS);
        let row =
            RowBuffer::new(out, 10).int(warehouse).small(district).int(number).small(line).int(item).int(warehouse);
        let row = if is_delivered(number) {
            row.time(population.now).small(5).money(0)
        } else {
            row.null().small(5).money(random.range(1, 999_999))
        };
        row.letters(&mut random, 24, 24);
        true
    })
}

/// Returns the rows of `new_order`: no_w_id, no_d_id, no_o_id.
pub fn new_orders(population: Population) -> RowSource {
    let mut places = population.places(ORDERS - FIRST_NEW_ORDER + 1);
    Box::new(move |out| {
        let Some(place) = places.next() else { return false };
        let order = FIRST_NEW_ORDER - 1 + place.number;
        RowBuffer::new(out, 3).int(place.warehouse).small(place.district).int(order);
        true
    })
}

fn is_delivered(order: i64) -> bool {
    order < FIRST_NEW_ORDER
}

/// Returns the customers of a district in random order. Each customer has one order.
fn permutation(random: &mut Random) -> Vec<i64> {
    let mut customers: Vec<_> = (1..=ORDERS).collect();
    for last in (1..customers.len()).rev() {
        customers.swap(last, random.range(0, last as i64) as usize);
    }
    customers
}
