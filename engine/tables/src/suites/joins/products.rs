//! Generates the rows of products and coupons. The numbers in brackets after a field are the `column` arguments of the
//! random draws that make the field.

use super::sizes::{CATEGORIES, COUPONS, DEPARTMENTS_OF_SHOP, FIRST_DAY, day_in_order, products};
use crate::row::{RowBuffer, RowSource};
use crate::suites::draws::{RowDraws, TableDraws};
use crate::suites::population::{Population, numbered};

/// The numbers of the tables of this file in their suite. With the seed, the number of a table determines its random
/// values.
const PRODUCTS: u64 = 1;
const COUPONS_TABLE: u64 = 6;

/// The number of brands of each category.
const BRANDS: i64 = 8;

/// The categories and prices of products, which the table of sales needs too.
#[derive(Debug, Clone, Copy)]
pub struct Assortment {
    table: TableDraws,
    pub count: i64,
}

impl Assortment {
    pub fn new(population: &Population) -> Self {
        Self { table: population.draws(PRODUCTS), count: products(population) }
    }

    fn draws(self, product: i64) -> RowDraws {
        self.table.row(product)
    }

    /// Returns the category of a product, counted from 0. It is made from the random numbers of the product whose
    /// `column` arguments are 0 and 1.
    fn category(self, product: i64) -> i64 {
        self.draws(product).zipf(0, DEPARTMENTS_OF_SHOP.len() as i64 * CATEGORIES) - 1
    }

    /// Returns the department of a product, counted from 0.
    pub fn department(self, product: i64) -> i64 {
        self.category(product) / CATEGORIES
    }

    /// Returns the price of a product in cents. It is made from the random number of the product whose `column`
    /// argument is 3, and from the product's department: a department with a higher number has higher prices.
    pub fn price(self, product: i64) -> i64 {
        let base = (self.department(product) + 1) * 1000;
        base + self.draws(product).below(3, base)
    }
}

/// Returns the rows of the table products. In brackets are the `column` arguments of the random draws that make a
/// field. The fields are: product_id, department, category (0, 1), brand (2), price (3), launched_on, ended_on (4, 5).
///
/// Each brand belongs to one category, and each category to one department. Only products in the older half can have an
/// end date.
pub fn product_rows(population: Population) -> RowSource {
    let assortment = Assortment::new(&population);
    let count = assortment.count;
    numbered(count, move |id, out| {
        let (draws, category) = (assortment.draws(id), assortment.category(id));
        let launched = day_in_order(id, count);
        let row = RowBuffer::new(out, 7)
            .int(id)
            .text(DEPARTMENTS_OF_SHOP[(category / CATEGORIES) as usize].as_bytes())
            .formatted(format_args!("category {category:03}"))
            .formatted(format_args!("brand {:04}", category * BRANDS + draws.below(2, BRANDS)))
            .money(assortment.price(id))
            .date(launched);
        if id <= count / 2 && draws.is_one_of(4, 40) {
            row.date(launched + draws.between(5, 100, 900));
        } else {
            row.null();
        }
    })
}

/// Returns the rows of the table coupons. In brackets are the `column` arguments of the random draws that make a field.
/// The fields are: coupon_id, department, percent (0), valid_from.
pub fn coupon_rows(population: Population) -> RowSource {
    let table = population.draws(COUPONS_TABLE);
    numbered(COUPONS, move |id, out| {
        let department = (id - 1) % DEPARTMENTS_OF_SHOP.len() as i64;
        RowBuffer::new(out, 4)
            .int(id)
            .text(DEPARTMENTS_OF_SHOP[department as usize].as_bytes())
            .small(5 * table.row(id).between(0, 1, 6))
            .date(FIRST_DAY + (id - 1) * 5);
    })
}
