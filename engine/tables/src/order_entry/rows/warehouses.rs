//! Generates the rows of the items, the warehouses, their districts and their stock.

use workload::order_entry::sizes::{CUSTOMERS, DISTRICTS, ITEMS, ORDERS};

use crate::order_entry::population::{Population, RandomStream};
use crate::order_entry::text;
use crate::row::{RowBuffer, RowSource};

/// The highest tax, in ten-thousandths.
const HIGHEST_TAX: i64 = 2000;

/// The year-to-date payments of each district in cents: 10.00 from each of its customers.
const DISTRICT_YTD: i64 = 1000 * CUSTOMERS;

/// Returns the rows of `item`: i_id, i_im_id, i_price, i_name, i_data.
pub fn items(population: Population) -> RowSource {
    let mut random = population.random(RandomStream::Items, 0, 0);
    let mut ids = 1..=ITEMS;
    Box::new(move |out| {
        let Some(id) = ids.next() else { return false };
        let image = random.range(1, 10_000);
        let price = random.range(100, 10_000);
        RowBuffer::new(out, 5)
            .int(id)
            .int(image)
            .money(price)
            .letters(&mut random, 14, 24)
            .written(|out| text::write_data(&mut random, out));
        true
    })
}

/// Returns the rows of `warehouse`: w_id, w_name, the address, w_tax, w_ytd.
pub fn warehouses(population: Population) -> RowSource {
    let mut ids = 1..=population.warehouses;
    Box::new(move |out| {
        let Some(id) = ids.next() else { return false };
        let mut random = population.random(RandomStream::Warehouses, id, 0);
        let tax = random.range(0, HIGHEST_TAX);
        RowBuffer::new(out, 9)
            .int(id)
            .letters(&mut random, 6, 10)
            .address(&mut random)
            .share(tax)
            .money(DISTRICTS * DISTRICT_YTD);
        true
    })
}

/// Returns the rows of `district`: d_w_id, d_id, d_name, the address, d_tax, d_ytd, d_next_o_id.
pub fn districts(population: Population) -> RowSource {
    let mut places = population.places(1);
    Box::new(move |out| {
        let Some(place) = places.next() else { return false };
        let mut random = population.random(RandomStream::Districts, place.warehouse, place.district);
        let tax = random.range(0, HIGHEST_TAX);
        RowBuffer::new(out, 11)
            .int(place.warehouse)
            .small(place.district)
            .letters(&mut random, 6, 10)
            .address(&mut random)
            .share(tax)
            .money(DISTRICT_YTD)
            .int(ORDERS + 1);
        true
    })
}

/// Returns the rows of `stock`: s_w_id, s_i_id, s_quantity, s_dist_01 to s_dist_10, s_ytd, s_order_cnt, s_remote_cnt,
/// s_data.
pub fn stock(population: Population) -> RowSource {
    let mut rows = 0..population.warehouses * ITEMS;
    let mut random = population.random(RandomStream::Stock, 0, 0);
    Box::new(move |out| {
        let Some(row) = rows.next() else { return false };
        let (warehouse, item) = (row / ITEMS + 1, row % ITEMS + 1);
        if item == 1 {
            random = population.random(RandomStream::Stock, warehouse, 0);
        }
        let quantity = random.range(10, 100);
        let mut row = RowBuffer::new(out, 17).int(warehouse).int(item).small(quantity);
        for _ in 0..DISTRICTS {
            row = row.letters(&mut random, 24, 24);
        }
        row.int(0).int(0).int(0).written(|out| text::write_data(&mut random, out));
        true
    })
}
