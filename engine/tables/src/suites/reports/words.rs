//! The words of which the text columns of the suite `reports` consist, such as names of nations and remarks.

/// The 64 words from which remarks are made. Six random bits choose a word.
pub const REMARKS: [&str; 64] = [
    "after",
    "again",
    "amber",
    "before",
    "blue",
    "boxes",
    "broken",
    "careful",
    "checked",
    "closed",
    "colder",
    "complaint",
    "counted",
    "damaged",
    "delayed",
    "dozen",
    "early",
    "empty",
    "evening",
    "extra",
    "fragile",
    "friday",
    "gently",
    "green",
    "heavy",
    "inside",
    "invoice",
    "label",
    "late",
    "loose",
    "loud",
    "measured",
    "monday",
    "morning",
    "needs",
    "never",
    "noted",
    "packed",
    "paint",
    "pallet",
    "partly",
    "quiet",
    "rain",
    "ready",
    "recall",
    "refund",
    "repair",
    "returned",
    "round",
    "sample",
    "second",
    "sharp",
    "shelf",
    "signed",
    "silver",
    "slowly",
    "square",
    "stacked",
    "thin",
    "twice",
    "under",
    "weighed",
    "wet",
    "yellow",
];

pub const FIRST_NAMES: [&str; 32] = [
    "Ada", "Bela", "Carl", "Dora", "Emil", "Fanny", "Georg", "Hanna", "Ivo", "Jana", "Karim", "Lena", "Milan", "Nora",
    "Otto", "Paula", "Quirin", "Rosa", "Samir", "Tilda", "Ugo", "Vera", "Wanda", "Xaver", "Yara", "Zeno", "Anton",
    "Berta", "Cleo", "David", "Erna", "Felix",
];

pub const LAST_NAMES: [&str; 32] = [
    "Abel", "Bruck", "Carlsen", "Dahl", "Ekman", "Faber", "Gruber", "Holm", "Iversen", "Jansen", "Keller", "Lund",
    "Moser", "Nagy", "Olsen", "Petrov", "Quist", "Rossi", "Sandor", "Toth", "Ullman", "Varga", "Weiss", "Xander",
    "Young", "Zeller", "Adler", "Becker", "Cohen", "Duarte", "Evans", "Fischer",
];

pub const STREETS: [&str; 32] = [
    "Acorn", "Bakery", "Canal", "Dyer", "Elm", "Ferry", "Garden", "Harbour", "Ivy", "Juniper", "King", "Lantern",
    "Mill", "North", "Orchard", "Potter", "Quarry", "River", "Station", "Tower", "Upper", "Vine", "Weaver", "Yew",
    "Bridge", "Castle", "Forest", "Hill", "Lake", "Market", "School", "Spring",
];

pub const WAYS: [&str; 8] = ["Alley", "Avenue", "Court", "Lane", "Road", "Row", "Square", "Street"];

pub const FINISHES: [&str; 32] = [
    "anodised",
    "bent",
    "blackened",
    "brushed",
    "burnt",
    "cast",
    "coated",
    "drilled",
    "etched",
    "folded",
    "forged",
    "glazed",
    "ground",
    "hammered",
    "knitted",
    "lacquered",
    "milled",
    "oiled",
    "pierced",
    "plated",
    "polished",
    "pressed",
    "riveted",
    "rolled",
    "sanded",
    "sealed",
    "stained",
    "stamped",
    "tempered",
    "turned",
    "waxed",
    "woven",
];

pub const MATERIALS: [&str; 32] = [
    "alder",
    "aluminium",
    "ash",
    "bamboo",
    "basalt",
    "beech",
    "brass",
    "bronze",
    "carbon",
    "cedar",
    "ceramic",
    "chrome",
    "copper",
    "cork",
    "cotton",
    "felt",
    "glass",
    "granite",
    "hemp",
    "iron",
    "jute",
    "leather",
    "linen",
    "maple",
    "nickel",
    "nylon",
    "oak",
    "rubber",
    "slate",
    "steel",
    "tin",
    "zinc",
];

pub const OBJECTS: [&str; 32] = [
    "axle", "basket", "bolt", "bracket", "bucket", "clamp", "coil", "dial", "funnel", "gasket", "gear", "handle",
    "hinge", "hook", "ladle", "lamp", "latch", "lever", "nozzle", "panel", "pin", "pulley", "rack", "rail", "ring",
    "rod", "shelf", "spring", "tray", "tube", "valve", "wheel",
];

pub const DEPARTMENTS: [&str; 12] = [
    "boats", "garden", "garage", "heating", "kitchen", "lighting", "office", "outdoor", "plumbing", "seasonal", "toys",
    "workshop",
];

pub const CLASSES: [&str; 12] =
    ["basic", "bulk", "classic", "compact", "deluxe", "eco", "heavy", "junior", "mini", "plus", "pro", "slim"];

pub const PACKING_SIZES: [&str; 6] = ["giant", "large", "long", "medium", "small", "tiny"];
pub const PACKING_FORMS: [&str; 6] = ["bag", "box", "can", "crate", "sack", "tube"];

pub const SEGMENTS: [&str; 5] = ["crafts", "hotels", "schools", "shops", "yards"];
pub const URGENCIES: [&str; 5] = ["1 express", "2 high", "3 normal", "4 low", "5 none"];
pub const CARRIERS: [&str; 7] = ["air", "barge", "courier", "post", "rail", "road", "ship"];
pub const HANDLINGS: [&str; 4] = ["fragile", "insured", "plain", "signed"];

pub const REGIONS: [&str; 5] = ["Coast", "Delta", "Highland", "Islands", "Plains"];

/// The names of the nations. Nation number n, counted from 0, belongs to region n mod 5.
pub const NATIONS: [&str; 25] = [
    "Arvenia", "Belmora", "Corvia", "Dalmund", "Estravia", "Faroland", "Gorania", "Helvarin", "Istrana", "Jorvik",
    "Kastela", "Lorvania", "Meridia", "Norvale", "Ostmark", "Pelagia", "Quintara", "Rovenia", "Sarnia", "Tarvos",
    "Umbria", "Valdora", "Westria", "Yslund", "Zembla",
];

/// Appends a remark of `count` words, at most 20. The lowest 60 bits of `bits[0]` choose the first ten words, with six
/// bits for each word; `bits[1]` chooses the others in the same way.
pub fn write_remark(bits: [u64; 2], count: i64, out: &mut Vec<u8>) {
    for word in 0..count as usize {
        if word > 0 {
            out.push(b' ');
        }
        let number = bits[word / 10] >> (6 * (word % 10)) & 63;
        out.extend_from_slice(REMARKS[number as usize].as_bytes());
    }
}
