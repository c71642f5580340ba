//! The nine tables of order entry: their columns, keys and numbers of rows. The sums of payments and the customers'
//! balances have two more digits than the specification requires, because a load without think times reaches the
//! specified limits within hours.

use workload::order_entry::sizes::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS};

use super::population::Population;
use super::rows;
use crate::row::RowSource;

/// A table of order entry.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static str,
    /// The columns of the primary key; empty if the table has none.
    pub key: &'static str,
    /// The indexes other than the primary key's, each with its name and its columns.
    pub indexes: &'static [(&'static str, &'static str)],
    pub rows: fn(Population) -> RowSource,
    /// The function that returns the table's number of rows in a population.
    pub count: fn(&Population) -> u64,
}

/// Returns the definitions of a name and an address, in columns whose names begin with the given prefix.
macro_rules! address {
    ($prefix:literal) => {
        concat!(
            $prefix,
            "name varchar(10) not null, ",
            $prefix,
            "street_1 varchar(20) not null, ",
            $prefix,
            "street_2 varchar(20) not null, ",
            $prefix,
            "city varchar(20) not null, ",
            $prefix,
            "state char(2) not null, ",
            $prefix,
            "zip char(9) not null, "
        )
    };
}

/// All tables of order entry, the largest first.
pub const TABLES: [Table; 9] = [
    Table {
        name: "stock",
        columns: "s_w_id int not null, s_i_id int not null, s_quantity smallint not null, s_dist_01 char(24) not null, \
            s_dist_02 char(24) not null, s_dist_03 char(24) not null, s_dist_04 char(24) not null, \
            s_dist_05 char(24) not null, s_dist_06 char(24) not null, s_dist_07 char(24) not null, \
            s_dist_08 char(24) not null, s_dist_09 char(24) not null, s_dist_10 char(24) not null, \
            s_ytd int not null, s_order_cnt int not null, s_remote_cnt int not null, s_data varchar(50) not null",
        key: "s_w_id, s_i_id",
        indexes: &[],
        rows: rows::stock,
        count: |population| (population.warehouses * ITEMS) as u64,
    },
    Table {
        name: "order_line",
        columns: "ol_w_id int not null, ol_d_id smallint not null, ol_o_id int not null, ol_number smallint not null, \
            ol_i_id int not null, ol_supply_w_id int not null, ol_delivery_d timestamptz, \
            ol_quantity smallint not null, ol_amount numeric(6,2) not null, ol_dist_info char(24) not null",
        key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
        indexes: &[],
        rows: rows::order_lines,
        count: Population::order_lines,
    },
    Table {
        name: "customer",
        columns: "c_w_id int not null, c_d_id smallint not null, c_id int not null, c_first varchar(16) not null, \
            c_middle char(2) not null, c_last varchar(16) not null, c_street_1 varchar(20) not null, \
            c_street_2 varchar(20) not null, c_city varchar(20) not null, c_state char(2) not null, \
            c_zip char(9) not null, c_phone char(16) not null, c_since timestamptz not null, c_credit char(2) not null, \
            c_credit_lim numeric(12,2) not null, c_discount numeric(4,4) not null, c_balance numeric(14,2) not null, \
            c_ytd_payment numeric(14,2) not null, c_payment_cnt int not null, c_delivery_cnt int not null, \
            c_data varchar(500) not null",
        key: "c_w_id, c_d_id, c_id",
        indexes: &[("customer_last_name", "c_w_id, c_d_id, c_last, c_first")],
        rows: rows::customers,
        count: |population| of_districts(population, CUSTOMERS),
    },
    Table {
        name: "orders",
        columns: "o_w_id int not null, o_d_id smallint not null, o_id int not null, o_c_id int not null, \
            o_carrier_id smallint, o_ol_cnt smallint not null, o_all_local smallint not null, \
            o_entry_d timestamptz not null",
        key: "o_w_id, o_d_id, o_id",
        indexes: &[("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")],
        rows: rows::orders,
        count: |population| of_districts(population, ORDERS),
    },
    Table {
        name: "history",
        columns: "h_c_id int not null, h_c_d_id smallint not null, h_c_w_id int not null, h_d_id smallint not null, \
            h_w_id int not null, h_date timestamptz not null, h_amount numeric(6,2) not null, \
            h_data varchar(24) not null",
        key: "",
        indexes: &[],
        rows: rows::history,
        count: |population| of_districts(population, CUSTOMERS),
    },
    Table {
        name: "item",
        columns: "i_id int not null, i_im_id int not null, i_price numeric(5,2) not null, i_name varchar(24) not null, \
            i_data varchar(50) not null",
        key: "i_id",
        indexes: &[],
        rows: rows::items,
        count: |_| ITEMS as u64,
    },
    Table {
        name: "new_order",
        columns: "no_w_id int not null, no_d_id smallint not null, no_o_id int not null",
        key: "no_w_id, no_d_id, no_o_id",
        indexes: &[],
        rows: rows::new_orders,
        count: |population| of_districts(population, ORDERS - FIRST_NEW_ORDER + 1),
    },
    Table {
        name: "district",
        columns: concat!(
            "d_w_id int not null, d_id smallint not null, ",
            address!("d_"),
            "d_tax numeric(4,4) not null, d_ytd numeric(14,2) not null, d_next_o_id int not null"
        ),
        key: "d_w_id, d_id",
        indexes: &[],
        rows: rows::districts,
        count: |population| of_districts(population, 1),
    },
    Table {
        name: "warehouse",
        columns: concat!(
            "w_id int not null, ",
            address!("w_"),
            "w_tax numeric(4,4) not null, w_ytd numeric(14,2) not null"
        ),
        key: "w_id",
        indexes: &[],
        rows: rows::warehouses,
        count: |population| population.warehouses as u64,
    },
];

fn of_districts(population: &Population, rows: i64) -> u64 {
    (population.warehouses * DISTRICTS * rows) as u64
}

/// Returns the statements that make the foreign keys of the specification.
pub fn foreign_keys() -> Vec<String> {
    [
        ("district", "d_w_id", "warehouse"),
        ("customer", "c_w_id, c_d_id", "district"),
        ("history", "h_c_w_id, h_c_d_id, h_c_id", "customer"),
        ("history", "h_w_id, h_d_id", "district"),
        ("new_order", "no_w_id, no_d_id, no_o_id", "orders"),
        ("orders", "o_w_id, o_d_id, o_c_id", "customer"),
        ("order_line", "ol_w_id, ol_d_id, ol_o_id", "orders"),
        ("order_line", "ol_supply_w_id, ol_i_id", "stock"),
        ("stock", "s_w_id", "warehouse"),
        ("stock", "s_i_id", "item"),
    ]
    .map(|(table, columns, other)| format!("alter table {table} add foreign key ({columns}) references {other}"))
    .to_vec()
}
