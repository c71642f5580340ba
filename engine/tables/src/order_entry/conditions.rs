//! The consistency conditions 1 to 12 of TPC-C's clause 3.3.2, as queries. They hold whenever no transaction is in
//! progress.
//!
//! The specification states condition 11 for the initial population only, in which 2,100 orders of each district are
//! delivered. The query here adds the deliveries that were counted in the customers' rows since then, so that the
//! condition holds after a run too.

use wire::error::ConnectionError;
use wire::session::Session;

/// A consistency condition of the specification.
pub struct Condition {
    /// The number of the condition in the specification.
    pub number: u32,
    /// The equality that the condition requires, for messages.
    pub text: &'static str,
    /// A query that returns a row for each place that the condition is about, such as a district or a customer: the
    /// name of the place, the two values that have to be equal, and three numbers by which the places are ordered.
    places: &'static str,
}

/// The first place, such as a district, at which a condition does not hold, and the two values that should be equal
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub place: String,
    pub left: String,
    pub right: String,
    /// The number of places, such as districts or customers, at which the condition does not hold.
    pub places: String,
}

/// All consistency conditions, in the order of their numbers.
pub const CONDITIONS: [Condition; 12] = [
    Condition {
        number: 1,
        text: "W_YTD = sum(D_YTD)",
        places: "select 'warehouse ' || w_id, w_ytd, \
            (select sum(d_ytd) from district where d_w_id = w_id), w_id, 0, 0 from warehouse",
    },
    Condition {
        number: 2,
        text: "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        places: "select 'warehouse ' || d_w_id || ', district ' || d_id || source, d_next_o_id - 1, highest, \
            d_w_id, d_id, 0 from district, lateral (values \
            (' in orders', (select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id)), \
            (' in new_order', coalesce((select max(no_o_id) from new_order where no_w_id = d_w_id and no_d_id = d_id), \
              d_next_o_id - 1))) as found (source, highest)",
    },
    Condition {
        number: 3,
        text: "max(NO_O_ID) - min(NO_O_ID) + 1 = count(NEW-ORDER)",
        places: "select 'warehouse ' || no_w_id || ', district ' || no_d_id, max(no_o_id) - min(no_o_id) + 1, count(*), \
            no_w_id, no_d_id, 0 from new_order group by no_w_id, no_d_id",
    },
    Condition {
        number: 4,
        text: "sum(O_OL_CNT) = count(ORDER-LINE)",
        places: "select 'warehouse ' || d_w_id || ', district ' || d_id, counted, coalesce(there, 0), d_w_id, d_id, 0 \
            from (select o_w_id as d_w_id, o_d_id as d_id, sum(o_ol_cnt) as counted from orders group by 1, 2) o \
            left join (select ol_w_id as d_w_id, ol_d_id as d_id, count(*) as there from order_line group by 1, 2) l \
            using (d_w_id, d_id)",
    },
    Condition {
        number: 5,
        text: "O_CARRIER_ID is null = there is a row in NEW-ORDER",
        places: "select 'warehouse ' || coalesce(o_w_id, no_w_id) || ', district ' || coalesce(o_d_id, no_d_id) \
              || ', order ' || coalesce(o_id, no_o_id), \
            case when o_id is null then 'no order' when o_carrier_id is null then 'null' else 'a carrier' end, \
            case when o_id is null then 'an order' when no_o_id is null then 'a carrier' else 'null' end, \
            coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id) \
            from orders full join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id",
    },
    Condition {
        number: 6,
        text: "O_OL_CNT = count(ORDER-LINE) of the order",
        places: "select 'warehouse ' || w || ', district ' || d || ', order ' || o, coalesce(o_ol_cnt, 0), \
            coalesce(there, 0), w, d, o \
            from (select o_w_id as w, o_d_id as d, o_id as o, o_ol_cnt from orders) as heads \
            full join (select ol_w_id as w, ol_d_id as d, ol_o_id as o, count(*) as there from order_line \
              group by 1, 2, 3) as lines using (w, d, o)",
    },
    Condition {
        number: 7,
        text: "OL_DELIVERY_D is null = O_CARRIER_ID is null",
        places: "select 'warehouse ' || ol_w_id || ', district ' || ol_d_id || ', order ' || ol_o_id || ', line ' \
              || ol_number, case when ol_delivery_d is null then 'null' else 'a date' end, \
            case when o_carrier_id is null then 'null' else 'a date' end, ol_w_id, ol_d_id, ol_o_id \
            from order_line join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id",
    },
    Condition {
        number: 8,
        text: "W_YTD = sum(H_AMOUNT)",
        places: "select 'warehouse ' || w_id, w_ytd, coalesce(paid, 0), w_id, 0, 0 from warehouse \
            left join (select h_w_id, sum(h_amount) as paid from history group by 1) h on h_w_id = w_id",
    },
    Condition {
        number: 9,
        text: "D_YTD = sum(H_AMOUNT)",
        places: "select 'warehouse ' || d_w_id || ', district ' || d_id, d_ytd, coalesce(paid, 0), d_w_id, d_id, 0 \
            from district left join (select h_w_id, h_d_id, sum(h_amount) as paid from history group by 1, 2) h \
            on h_w_id = d_w_id and h_d_id = d_id",
    },
    Condition {
        number: 10,
        text: "C_BALANCE = sum(OL_AMOUNT) of delivered lines - sum(H_AMOUNT)",
        places: "select 'warehouse ' || c_w_id || ', district ' || c_d_id || ', customer ' || c_id, c_balance, \
            coalesce(delivered, 0) - coalesce(paid, 0), c_w_id, c_d_id, c_id from customer \
            left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered from orders join order_line \
              on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id where ol_delivery_d is not null \
              group by 1, 2, 3) l on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id \
            left join (select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from history group by 1, 2, 3) h \
              on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id",
    },
    Condition {
        number: 11,
        text: "count(ORDER) - count(NEW-ORDER) = 2100 + deliveries since the load",
        places: "select 'warehouse ' || d_w_id || ', district ' || d_id, coalesce(orders, 0) - coalesce(left_over, 0), \
            2100 + delivered, d_w_id, d_id, 0 from district \
            join (select c_w_id, c_d_id, sum(c_delivery_cnt) as delivered from customer group by 1, 2) c \
              on c_w_id = d_w_id and c_d_id = d_id \
            left join (select o_w_id, o_d_id, count(*) as orders from orders group by 1, 2) o \
              on o_w_id = d_w_id and o_d_id = d_id \
            left join (select no_w_id, no_d_id, count(*) as left_over from new_order group by 1, 2) n \
              on no_w_id = d_w_id and no_d_id = d_id",
    },
    Condition {
        number: 12,
        text: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of delivered lines",
        places: "select 'warehouse ' || c_w_id || ', district ' || c_d_id || ', customer ' || c_id, \
            c_balance + c_ytd_payment, coalesce(delivered, 0), c_w_id, c_d_id, c_id from customer \
            left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered from orders join order_line \
              on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id where ol_delivery_d is not null \
              group by 1, 2, 3) l on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id",
    },
];

/// Begins a transaction for the queries of all conditions, so that they see one snapshot even while a load runs.
pub fn begin(session: &mut Session) -> Result<(), ConnectionError> {
    session.query("begin isolation level repeatable read read only")?;
    // For condition 10 the planners of PostgreSQL 10 and 13 estimate one customer and choose nested loops, which take
    // minutes.
    session.query("set local enable_nestloop = off").map(drop)
}

impl Condition {
    /// Looks for the first place, such as a district or a customer, at which the condition does not hold. Returns
    /// `None` if it holds everywhere.
    pub fn check(&self, session: &mut Session) -> Result<Option<Violation>, ConnectionError> {
        let rows = session.query(&self.query())?;
        let texts = rows.into_iter().next().and_then(|row| {
            let texts: Vec<_> = row.into_iter().map(|value| value.unwrap_or_else(|| "null".to_owned())).collect();
            <[String; 4]>::try_from(texts).ok()
        });
        Ok(texts.map(|[place, left, right, places]| Violation { place, left, right, places }))
    }

    fn query(&self) -> String {
        format!(
            "select place, one, other, count(*) over () from ({}) as places (place, one, other, w, d, n) \
             where one is distinct from other order by w, d, n limit 1",
            self.places
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_stand_in_the_order_of_their_numbers() {
        assert!(CONDITIONS.iter().zip(1..).all(|(condition, number)| condition.number == number));
    }
}
