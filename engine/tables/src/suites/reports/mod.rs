//! The tables of the suite `reports`: a wholesale trade for decision-support queries. The 8 tables have the same
//! proportions as the tables of TPC-H, but other names, columns, texts and rules.

mod catalog;
mod parties;
mod sizes;
mod trade;
mod words;

use super::population::Table;
use catalog::{offer_rows, part_rows};
use parties::{buyer_rows, nation_rows, region_rows, supplier_rows};
use sizes::{NATIONS_COUNT, OFFERS_OF_PART, buyers, parts, purchases, suppliers};
use trade::{line_rows, lines, purchase_rows};

/// All tables of the suite `reports`, the largest first.
pub const TABLES: [Table; 8] = [
    Table {
        name: "lines",
        columns: "purchase_id int not null, line smallint not null, part_id int not null, supplier_id int not null, \
            quantity smallint not null, price numeric(12,2) not null, discount numeric(4,2) not null, \
            tax numeric(4,2) not null, outcome text not null, state text not null, shipped_on date not null, \
            promised_on date not null, received_on date not null, carrier text not null, handling text not null, \
            remark text not null",
        key: "purchase_id, line",
        indexes: &[
            ("lines_part_supplier", "part_id, supplier_id"),
            ("lines_supplier", "supplier_id"),
            ("lines_shipped_on", "shipped_on"),
        ],
        rows: line_rows,
        count: lines,
    },
    Table {
        name: "purchases",
        columns: "purchase_id int not null, buyer_id int not null, state text not null, total numeric(12,2) not null, \
            purchased_on date not null, urgency text not null, clerk int not null, remark text not null",
        key: "purchase_id",
        indexes: &[("purchases_buyer", "buyer_id"), ("purchases_purchased_on", "purchased_on")],
        rows: purchase_rows,
        count: purchases,
    },
    Table {
        name: "offers",
        columns: "part_id int not null, supplier_id int not null, available int not null, cost numeric(12,2) not null, \
            remark text not null",
        key: "part_id, supplier_id",
        indexes: &[("offers_supplier", "supplier_id")],
        rows: offer_rows,
        count: |population| parts(population) * OFFERS_OF_PART,
    },
    Table {
        name: "parts",
        columns: "part_id int not null, part text not null, maker text not null, brand text not null, \
            kind text not null, size smallint not null, packing text not null, price numeric(12,2) not null, \
            remark text not null",
        key: "part_id",
        indexes: &[],
        rows: part_rows,
        count: parts,
    },
    Table {
        name: "buyers",
        columns: "buyer_id int not null, buyer text not null, nation_id int not null, address text not null, \
            phone text not null, balance numeric(12,2) not null, segment text not null, remark text not null",
        key: "buyer_id",
        indexes: &[("buyers_nation", "nation_id")],
        rows: buyer_rows,
        count: buyers,
    },
    Table {
        name: "suppliers",
        columns: "supplier_id int not null, supplier text not null, nation_id int not null, address text not null, \
            phone text not null, balance numeric(12,2) not null, remark text not null",
        key: "supplier_id",
        indexes: &[("suppliers_nation", "nation_id")],
        rows: supplier_rows,
        count: suppliers,
    },
    Table {
        name: "nations",
        columns: "nation_id int not null, region_id int not null, nation text not null",
        key: "nation_id",
        indexes: &[],
        rows: nation_rows,
        count: |_| NATIONS_COUNT,
    },
    Table {
        name: "regions",
        columns: "region_id int not null, region text not null",
        key: "region_id",
        indexes: &[],
        rows: region_rows,
        count: |_| words::REGIONS.len() as i64,
    },
];

/// The foreign keys: the table, its columns, and the table that they refer to.
pub const FOREIGN_KEYS: [(&str, &str, &str); 8] = [
    ("nations", "region_id", "regions"),
    ("suppliers", "nation_id", "nations"),
    ("buyers", "nation_id", "nations"),
    ("offers", "part_id", "parts"),
    ("offers", "supplier_id", "suppliers"),
    ("purchases", "buyer_id", "buyers"),
    ("lines", "purchase_id", "purchases"),
    ("lines", "part_id, supplier_id", "offers"),
];
