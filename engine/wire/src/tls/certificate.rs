//! The parts of an X.509 certificate that PostgreSQL's rules need and the TLS library does not show.
//!
//! `openssl x509 -req` without extensions, as in PostgreSQL's own instructions, makes certificates of version 1 that
//! name their host in the subject only. The TLS library takes neither; hence this reader. Source: RFC 5280, section 4.1;
//! X.690 for the encoding.

/// Object identifiers in their encoded form.
mod oid {
    pub(super) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    pub(super) const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
    pub(super) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
}

/// Tags of the values read here.
pub(super) mod tag {
    pub(in super::super) const BOOLEAN: u8 = 0x01;
    pub(in super::super) const INTEGER: u8 = 0x02;
    pub(in super::super) const BIT_STRING: u8 = 0x03;
    pub(in super::super) const OCTET_STRING: u8 = 0x04;
    pub(in super::super) const OID: u8 = 0x06;
    pub(in super::super) const UTC_TIME: u8 = 0x17;
    pub(in super::super) const GENERALIZED_TIME: u8 = 0x18;
    pub(in super::super) const SEQUENCE: u8 = 0x30;
    pub(in super::super) const SET: u8 = 0x31;
    pub(in super::super) const CONTEXT_0: u8 = 0xa0;
    pub(in super::super) const CONTEXT_3: u8 = 0xa3;
    pub(in super::super) const DNS_NAME: u8 = 0x82;
    pub(in super::super) const IP_ADDRESS: u8 = 0x87;
}

/// A certificate, as slices of its encoding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certificate<'a> {
    /// What the issuer signed.
    pub(super) signed: &'a [u8],
    /// The content of the signature's AlgorithmIdentifier.
    pub(super) signature_algorithm: &'a [u8],
    pub(super) signature: &'a [u8],
    /// 0 for version 1, 2 for version 3.
    version: u8,
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    /// Seconds since 1970.
    valid: (u64, u64),
    /// The whole SubjectPublicKeyInfo.
    pub(super) public_key_info: &'a [u8],
    /// The content of the key's AlgorithmIdentifier.
    pub(super) key_algorithm: &'a [u8],
    pub(super) key: &'a [u8],
    extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate; `None` if it is none.
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut outer = Reader::new(Reader::new(der).expect(tag::SEQUENCE)?);
        let signed = outer.whole(tag::SEQUENCE)?;
        let signature_algorithm = outer.expect(tag::SEQUENCE)?;
        let signature = bits(outer.expect(tag::BIT_STRING)?)?;

        let mut fields = Reader::new(Reader::new(signed).expect(tag::SEQUENCE)?);
        let version = match fields.optional(tag::CONTEXT_0) {
            Some(explicit) => *Reader::new(explicit).expect(tag::INTEGER)?.last()?,
            None => 0,
        };
        fields.expect(tag::INTEGER)?;
        fields.expect(tag::SEQUENCE)?;
        let issuer = fields.whole(tag::SEQUENCE)?;
        let mut validity = Reader::new(fields.expect(tag::SEQUENCE)?);
        let valid = (time(validity.next()?)?, time(validity.next()?)?);
        let subject = fields.whole(tag::SEQUENCE)?;
        let public_key_info = fields.whole(tag::SEQUENCE)?;
        let mut key_fields = Reader::new(Reader::new(public_key_info).expect(tag::SEQUENCE)?);
        let key_algorithm = key_fields.expect(tag::SEQUENCE)?;
        let key = bits(key_fields.expect(tag::BIT_STRING)?)?;

        let mut extensions: &[u8] = &[];
        for field in fields {
            if field.tag == tag::CONTEXT_3 {
                extensions = Reader::new(field.content).expect(tag::SEQUENCE)?;
            }
        }
        Some(Self {
            signed,
            signature_algorithm,
            signature,
            version,
            issuer,
            subject,
            valid,
            public_key_info,
            key_algorithm,
            key,
            extensions,
        })
    }

    /// Whether this is of version 1, which has no extensions.
    pub(super) fn is_version_1(&self) -> bool {
        self.version == 0 && self.extensions.is_empty()
    }

    /// Whether a time, in seconds since 1970, is within the validity.
    pub(super) fn is_valid_at(&self, time: u64) -> bool {
        (self.valid.0..=self.valid.1).contains(&time)
    }

    /// Whether this may issue certificates: by its constraints, or as a self-issued one of version 1.
    pub(super) fn is_authority(&self) -> bool {
        match self.extension(oid::BASIC_CONSTRAINTS) {
            Some(constraints) => Reader::new(constraints)
                .expect(tag::SEQUENCE)
                .and_then(|content| Reader::new(content).optional(tag::BOOLEAN))
                .is_some_and(|flag| flag != [0]),
            None => self.is_version_1() && self.issuer == self.subject,
        }
    }

    /// The first common name of the subject, if it is text.
    pub(super) fn common_name(&self) -> Option<&'a str> {
        let mut names = Reader::new(Reader::new(self.subject).expect(tag::SEQUENCE)?);
        while let Some(set) = names.optional(tag::SET) {
            let mut pair = Reader::new(Reader::new(set).expect(tag::SEQUENCE)?);
            if pair.expect(tag::OID)? == oid::COMMON_NAME {
                return std::str::from_utf8(pair.next()?.content).ok();
            }
        }
        None
    }

    /// The alternative names: their tags and contents, those of kinds unknown here included.
    pub(super) fn alternative_names(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let names = self.extension(oid::SUBJECT_ALT_NAME).and_then(|value| Reader::new(value).expect(tag::SEQUENCE));
        Reader::new(names.unwrap_or_default())
    }

    fn extension(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        let mut extensions = Reader::new(self.extensions);
        while let Some(extension) = extensions.optional(tag::SEQUENCE) {
            let mut fields = Reader::new(extension);
            if fields.expect(tag::OID)? == wanted {
                let _critical = fields.optional(tag::BOOLEAN);
                return fields.expect(tag::OCTET_STRING);
            }
        }
        None
    }
}

/// One encoded value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    whole: &'a [u8],
}

/// Reads the values in a piece of DER, one after the other; ends at the first that is malformed.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(der: &'a [u8]) -> Self {
        Self(der)
    }

    /// The content of the next value, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|value| value.tag == tag).map(|value| value.content)
    }

    /// The content of the next value if it has this tag; otherwise that value stays to be read.
    pub(super) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.0.first() == Some(&tag) { self.expect(tag) } else { None }
    }

    /// The next value with its header.
    fn whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|value| value.tag == tag).map(|value| value.whole)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (&tag, after_tag) = self.0.split_first()?;
        let (&first, after_first) = after_tag.split_first()?;
        let (length, body) = if first < 0x80 {
            (usize::from(first), after_first)
        } else {
            // Four bytes of length are far more than any certificate has.
            let (digits, body) = after_first.split_at_checked(usize::from(first & 0x7f))?;
            if digits.is_empty() || digits.len() > 4 {
                return None;
            }
            let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            (length, body)
        };
        let (content, rest) = body.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Value { tag, content, whole })
    }
}

/// The bytes of a bit string that ends at a whole byte.
fn bits(content: &[u8]) -> Option<&[u8]> {
    match content.split_first()? {
        (0, bytes) => Some(bytes),
        _ => None,
    }
}

/// Seconds since 1970 of a `UTCTime` or `GeneralizedTime` in the form that RFC 5280 demands; earlier times are 0.
fn time(value: Value<'_>) -> Option<u64> {
    let text = std::str::from_utf8(value.content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (value.tag, text.len()) {
        (tag::UTC_TIME, 12) => {
            let year: i64 = text[..2].parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, &text[2..])
        }
        (tag::GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
        _ => return None,
    };
    let part = |index: usize| rest[2 * index..2 * index + 2].parse::<i64>().ok();
    let days = days_since_1970(year, part(0)?, part(1)?);
    let seconds = ((days * 24 + part(2)?) * 60 + part(3)?) * 60 + part(4)?;
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// Days between 1 January 1970 and a date of the Gregorian calendar.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(tag: u8, text: &str) -> Option<u64> {
        let content = text.as_bytes();
        time(Value { tag, content, whole: content })
    }

    #[test]
    fn times_are_read_in_both_forms() {
        assert_eq!(seconds(tag::UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(seconds(tag::UTC_TIME, "240229123456Z"), Some(1_709_210_096));
        assert_eq!(seconds(tag::GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
        assert_eq!(seconds(tag::UTC_TIME, "500101000000Z"), Some(0));
        assert_eq!(seconds(tag::UTC_TIME, "2401010000Z"), None);
        assert_eq!(seconds(tag::UTC_TIME, "24010100000+Z"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Certificate::parse(&bytes);
        }

        #[test]
        fn a_damaged_certificate_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let key = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
            let mut der = key.cert.der().to_vec();
            *at.get_mut(&mut der) = byte;
            if let Some(certificate) = Certificate::parse(&der) {
                let _ = certificate.common_name();
                let _ = certificate.is_authority();
                let _ = certificate.alternative_names().count();
            }
        }
    }
}
