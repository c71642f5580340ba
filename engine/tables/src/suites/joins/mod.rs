//! The tables of the suite `joins`: a shop whose values are skewed, whose columns depend on each other, and in whose
//! joins the number of matches depends on other columns. PostgreSQL's planner assumes that columns are independent, so
//! it misestimates the sizes of these joins.

mod people;
mod products;
mod sales;
mod sizes;

use super::population::Table;
use people::{people_rows, place_rows};
use products::{coupon_rows, product_rows};
use sales::{review_rows, sale_rows, visit_rows};
use sizes::{COUPONS, PLACES, people, products, reviews, sales, visits};

/// All tables of the suite `joins`, the largest first.
pub const TABLES: [Table; 7] = [
    Table {
        name: "sales",
        columns: "sale_id int not null, person_id int not null, product_id int not null, sold_on date not null, \
            channel text not null, quantity smallint not null, amount numeric(12,2) not null, coupon_id int",
        key: "sale_id",
        indexes: &[
            ("sales_person", "person_id"),
            ("sales_product", "product_id"),
            ("sales_sold_on", "sold_on"),
            ("sales_coupon", "coupon_id"),
        ],
        rows: sale_rows,
        count: sales,
    },
    Table {
        name: "visits",
        columns: "visit_id int not null, person_id int not null, visited_on date not null, pages smallint not null, \
            campaign text",
        key: "visit_id",
        indexes: &[("visits_person", "person_id"), ("visits_visited_on", "visited_on")],
        rows: visit_rows,
        count: visits,
    },
    Table {
        name: "reviews",
        columns: "review_id int not null, product_id int not null, person_id int not null, stars smallint not null, \
            written_on date not null, flagged boolean",
        key: "review_id",
        indexes: &[("reviews_product", "product_id"), ("reviews_person", "person_id")],
        rows: review_rows,
        count: reviews,
    },
    Table {
        name: "people",
        columns: "person_id int not null, place_id int not null, birth_year smallint not null, \
            income smallint not null, plan text not null, referrer_id int, joined_on date not null",
        key: "person_id",
        indexes: &[("people_place", "place_id"), ("people_referrer", "referrer_id")],
        rows: people_rows,
        count: people,
    },
    Table {
        name: "products",
        columns: "product_id int not null, department text not null, category text not null, brand text not null, \
            price numeric(12,2) not null, launched_on date not null, ended_on date",
        key: "product_id",
        indexes: &[("products_category", "category"), ("products_brand", "brand")],
        rows: product_rows,
        count: products,
    },
    Table {
        name: "places",
        columns: "place_id int not null, zip text not null, city text not null, province text not null, \
            country text not null",
        key: "place_id",
        indexes: &[("places_city", "city")],
        rows: place_rows,
        count: |_| PLACES,
    },
    Table {
        name: "coupons",
        columns: "coupon_id int not null, department text not null, percent smallint not null, \
            valid_from date not null",
        key: "coupon_id",
        indexes: &[],
        rows: coupon_rows,
        count: |_| COUPONS,
    },
];

/// The foreign keys: the table, its columns, and the table that they refer to.
pub const FOREIGN_KEYS: [(&str, &str, &str); 8] = [
    ("people", "place_id", "places"),
    ("people", "referrer_id", "people"),
    ("sales", "person_id", "people"),
    ("sales", "product_id", "products"),
    ("sales", "coupon_id", "coupons"),
    ("visits", "person_id", "people"),
    ("reviews", "product_id", "products"),
    ("reviews", "person_id", "people"),
];
