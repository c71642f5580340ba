//! The values that a client puts into statements. Each value has a slot, the name by which the texts of statements
//! refer to it.

use std::io::Write;

use wire::value::Value;

/// Declares the slots, which are the named values of statements. The second part of each declaration is true if the
/// value is a string, which needs quotes in a text.
macro_rules! slots {
    ($($slot:ident $name:literal $is_string:literal,)*) => {
        /// A slot: a named value in the texts of statements, such as the number of the warehouse.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Slot { $($slot,)* }

        const SLOTS: &[(Slot, &str, bool)] = &[$((Slot::$slot, $name, $is_string),)*];
    };
}

slots! {
    W "w" false,
    D "d" false,
    CustomerW "customer_w" false,
    CustomerD "customer_d" false,
    Customer "customer" false,
    LastName "last_name" true,
    Order "order" false,
    Lines "lines" false,
    AllLocal "all_local" false,
    Number "number" false,
    Item "item" false,
    SupplyW "supply_w" false,
    Quantity "quantity" false,
    Remote "remote" false,
    Amount "amount" false,
    DistInfo "dist_info" true,
    Names "names" true,
    Note "note" true,
    Carrier "carrier" false,
    FirstRecent "first_recent" false,
    Threshold "threshold" false,
    Items "items" true,
    Supplies "supplies" true,
    Quantities "quantities" true,
}

impl Slot {
    pub const COUNT: usize = SLOTS.len();

    /// Returns the slot with this name, which must exist.
    pub fn named(name: &str) -> Self {
        let found = SLOTS.iter().find(|(_, known, _)| *known == name);
        found.map_or_else(|| unreachable!("there is a slot {name}"), |(slot, ..)| *slot)
    }

    /// True if the value needs quotes when a statement is sent as text.
    pub fn is_string(self) -> bool {
        SLOTS[self as usize].2
    }
}

/// The current values of all slots of a client.
pub struct Values {
    all: Box<[Value]>,
    /// A buffer in which the text of a value is composed before it is stored.
    text: Vec<u8>,
}

impl Default for Values {
    fn default() -> Self {
        Self { all: vec![Value::Unset; Slot::COUNT].into(), text: Vec::new() }
    }
}

impl Values {
    /// Returns all values in the order of the slots, as statements need them.
    pub fn all(&self) -> &[Value] {
        &self.all
    }

    /// Returns the number to which a slot was set earlier.
    pub fn number(&self, slot: Slot) -> i64 {
        match self.all[slot as usize] {
            Value::Int(number) => number,
            _ => 0,
        }
    }

    /// Sets a slot to a whole number.
    pub fn set(&mut self, slot: Slot, number: i64) {
        self.all[slot as usize] = Value::Int(number);
    }

    /// Sets a slot to a text, or to a number that is already formatted as text.
    pub fn set_bytes(&mut self, slot: Slot, text: &[u8]) {
        self.all[slot as usize].set_text(text);
    }

    /// Sets a slot to the text that `write` appends to an empty buffer.
    pub fn write(&mut self, slot: Slot, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        write(&mut self.text);
        self.all[slot as usize].set_text(&self.text);
    }

    /// Sets a slot to an array of whole numbers.
    pub fn set_array(&mut self, slot: Slot, numbers: impl Iterator<Item = i64>) {
        self.write(slot, |out| {
            for (index, number) in numbers.enumerate() {
                // Writing to memory cannot fail.
                let _ = write!(out, "{}{number}", if index == 0 { "{" } else { "," });
            }
            out.push(b'}');
        });
    }

    /// Sets a slot to an amount of money, which is given in cents.
    pub fn set_cents(&mut self, slot: Slot, cents: i64) {
        self.write(slot, |out| {
            // Writing to memory cannot fail.
            let _ = write!(out, "{}.{:02}", cents / 100, cents % 100);
        });
    }
}

/// Parses an amount of money such as `12.30`, and returns it in cents. Returns `None` if the text has another form.
pub fn cents(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, rest) = text.split_once('.')?;
    if rest.len() != 2 {
        return None;
    }
    Some(whole.parse::<i64>().ok()? * 100 + rest.parse::<i64>().ok()?)
}

/// Parses a whole number. Returns `None` if the text has another form.
pub fn whole(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_as_it_is_written() {
        for (number, text) in [(0, "0.00"), (7, "0.07"), (100, "1.00"), (500_000, "5000.00")] {
            let mut values = Values::default();
            values.set_cents(Slot::Amount, number);
            assert_eq!(values.all()[Slot::Amount as usize], Value::Text(text.as_bytes().into()));
            assert_eq!(cents(text.as_bytes()), Some(number));
        }
        for text in ["", "1", "1.5", "x.00", "1.0x", "\u{e4}.00"] {
            assert_eq!(cents(text.as_bytes()), None, "{text}");
        }
    }
}
