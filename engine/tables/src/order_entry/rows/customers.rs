//! Generates the rows of the customers, and of the history with one payment of each customer.

use workload::order_entry::names::{LAST_NAMES, write_last_name};
use workload::order_entry::nurand::{last_name_constant, loaded_last_name};
use workload::order_entry::sizes::CUSTOMERS;

use crate::order_entry::population::{Population, RandomStream};
use crate::order_entry::text;
use crate::row::{RowBuffer, RowSource};

/// The amount that each customer has paid, in cents.
const PAID: i64 = 1000;

/// Returns the rows of `customer`: c_w_id, c_d_id, c_id, c_first, c_middle, c_last, the address, c_phone, c_since,
/// c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data.
pub fn customers(population: Population) -> RowSource {
    let mut places = population.places(CUSTOMERS);
    let mut random = population.random(RandomStream::Customers, 0, 0);
    let constant = last_name_constant(population.seed);
    Box::new(move |out| {
        let Some(place) = places.next() else { return false };
        if place.number == 1 {
            random = population.random(RandomStream::Customers, place.warehouse, place.district);
        }
        // The first 1,000 customers of a district have the 1,000 different last names, so that no name is missing.
        let is_first = place.number <= LAST_NAMES;
        let last_name = if is_first { place.number - 1 } else { loaded_last_name(&mut random, constant) };
        let credit: &[u8] = if random.range(1, 10) == 1 { b"BC" } else { b"GC" };
        let discount = random.range(0, 5000);
        RowBuffer::new(out, 21)
            .int(place.warehouse)
            .small(place.district)
            .int(place.number)
            .letters(&mut random, 8, 16)
            .text(b"OE")
            .written(|out| write_last_name(last_name, out))
            .address(&mut random)
            .written(|out| text::write_digits(&mut random, 16, out))
            .time(population.now)
            .text(credit)
            .money(5_000_000)
            .share(discount)
            .money(-PAID)
            .money(PAID)
            .int(1)
            .int(0)
            .letters(&mut random, 300, 500);
        true
    })
}

/// Returns the rows of `history`: h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data.
pub fn history(population: Population) -> RowSource {
    let mut places = population.places(CUSTOMERS);
    let mut random = population.random(RandomStream::History, 0, 0);
    Box::new(move |out| {
        let Some(place) = places.next() else { return false };
        if place.number == 1 {
            random = population.random(RandomStream::History, place.warehouse, place.district);
        }
        RowBuffer::new(out, 8)
            .int(place.number)
            .small(place.district)
            .int(place.warehouse)
            .small(place.district)
            .int(place.warehouse)
            .time(population.now)
            .money(PAID)
            .letters(&mut random, 12, 24);
        true
    })
}
