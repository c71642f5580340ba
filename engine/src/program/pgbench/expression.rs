//! The expressions of `\set`: parsed once into a tree whose variables are slots, evaluated without allocation.

use super::symbols::Symbols;
use crate::program::random::Random;
use crate::program::value::Value;

/// A compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Constant(i64),
    Variable(usize),
    Negate(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// `random(low, high)`: uniform, both ends included.
    Random(Box<Expression>, Box<Expression>),
}

/// Integer operators, with PostgreSQL's overflow checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Expression {
    /// The value; the error is pgbench's sentence.
    #[inline]
    pub fn evaluate(&self, values: &[Value], symbols: &Symbols, random: &mut Random) -> Result<i64, String> {
        match self {
            Expression::Constant(number) => Ok(*number),
            Expression::Variable(slot) => match &values[*slot] {
                Value::Int(number) => Ok(*number),
                Value::Unset => Err(format!("undefined variable \"{}\"", symbols.name(*slot))),
            },
            Expression::Negate(operand) => {
                let number = operand.evaluate(values, symbols, random)?;
                number.checked_neg().ok_or_else(|| "bigint negate out of range".to_owned())
            }
            Expression::Binary(operator, left, right) => {
                let left = left.evaluate(values, symbols, random)?;
                operator.apply(left, right.evaluate(values, symbols, random)?)
            }
            Expression::Random(low, high) => {
                let low = low.evaluate(values, symbols, random)?;
                let high = high.evaluate(values, symbols, random)?;
                draw(low, high, random)
            }
        }
    }
}

/// A uniform draw with pgbench's checks of the range.
fn draw(low: i64, high: i64, random: &mut Random) -> Result<i64, String> {
    if low > high {
        return Err("empty range given to random".to_owned());
    }
    // The span must not overflow a signed integer, as in pgbench.
    if low < 0 && high > i64::MAX + low {
        return Err("random range is too large".to_owned());
    }
    Ok(random.range(low, high))
}

impl Operator {
    fn apply(self, left: i64, right: i64) -> Result<i64, String> {
        let (result, name) = match self {
            Operator::Add => (left.checked_add(right), "add"),
            Operator::Subtract => (left.checked_sub(right), "sub"),
            Operator::Multiply => (left.checked_mul(right), "mul"),
            Operator::Divide | Operator::Modulo if right == 0 => return Err("division by zero".to_owned()),
            Operator::Divide => (left.checked_div(right), "div"),
            Operator::Modulo => (Some(left.wrapping_rem(right)), "mod"),
        };
        result.ok_or_else(|| format!("bigint {name} out of range"))
    }
}

/// Parses the text after the variable's name. Errors carry the byte offset at which they arose.
pub fn parse(text: &str, symbols: &mut Symbols) -> Result<Expression, (usize, String)> {
    let mut parser = Parser { text, at: 0, symbols };
    let expression = parser.sum()?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.error("syntax error")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    symbols: &'a mut Symbols,
}

type Parsed = Result<Expression, (usize, String)>;

impl Parser<'_> {
    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&[('+', Operator::Add), ('-', Operator::Subtract)]) {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        let operators = [('*', Operator::Multiply), ('/', Operator::Divide), ('%', Operator::Modulo)];
        while let Some(operator) = self.operator(&operators) {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        if self.eat('-') {
            return Ok(match self.unary()? {
                Expression::Constant(number) => Expression::Constant(-number),
                other => Expression::Negate(Box::new(other)),
            });
        }
        if self.eat('+') {
            return self.unary();
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed {
        match self.peek() {
            Some('(') => {
                self.eat('(');
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Some(':') => {
                self.at += 1;
                let name = self.word();
                if name.is_empty() {
                    return Err(self.error("syntax error"));
                }
                Ok(Expression::Variable(self.symbols.slot(&name)))
            }
            Some(c) if c.is_ascii_digit() => {
                let digits = self.word();
                digits.parse().map(Expression::Constant).map_err(|_| self.error("bigint constant overflow"))
            }
            Some(c) if c.is_ascii_alphabetic() => self.call(),
            _ => Err(self.error("syntax error")),
        }
    }

    fn call(&mut self) -> Parsed {
        let name = self.word();
        if name != "random" {
            return Err(self.error(&format!("unexpected function name \"{name}\"")));
        }
        self.expect('(')?;
        let low = self.sum()?;
        self.expect(',')?;
        let high = self.sum()?;
        self.expect(')')?;
        Ok(Expression::Random(Box::new(low), Box::new(high)))
    }

    fn peek(&mut self) -> Option<char> {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), (usize, String)> {
        if self.eat(wanted) { Ok(()) } else { Err(self.error("syntax error")) }
    }

    fn operator(&mut self, among: &[(char, Operator)]) -> Option<Operator> {
        let next = self.peek()?;
        let (_, operator) = among.iter().find(|(sign, _)| *sign == next)?;
        self.at += 1;
        Some(*operator)
    }

    fn word(&mut self) -> String {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn error(&self, message: &str) -> (usize, String) {
        (self.at, message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(text: &str) -> Result<i64, String> {
        let mut symbols = Symbols::default();
        let scale = symbols.slot("scale");
        let expression = parse(text, &mut symbols).map_err(|(_, message)| message)?;
        let mut values = vec![Value::Unset; symbols.len()];
        values[scale] = Value::Int(20);
        expression.evaluate(&values, &symbols, &mut Random::seeded(1))
    }

    #[test]
    fn precedence_and_signs() {
        assert_eq!(evaluate("1 + 2 * 3"), Ok(7));
        assert_eq!(evaluate("(1 + 2) * -3"), Ok(-9));
        assert_eq!(evaluate("100000 * :scale"), Ok(2_000_000));
        assert_eq!(evaluate("17 % 5 - 17 / 5"), Ok(-1));
        assert_eq!(evaluate("- -4"), Ok(4));
    }

    #[test]
    fn overflow_division_and_empty_ranges_are_errors() {
        assert_eq!(evaluate("9223372036854775807 + 1").unwrap_err(), "bigint add out of range");
        assert_eq!(evaluate("1 / 0").unwrap_err(), "division by zero");
        assert_eq!(evaluate("(-9223372036854775807 - 1) % -1"), Ok(0));
        assert_eq!(evaluate("random(2, 1)").unwrap_err(), "empty range given to random");
        assert_eq!(
            evaluate("random(-9223372036854775807, 9223372036854775807)").unwrap_err(),
            "random range is too large"
        );
        assert_eq!(evaluate(":nothing").unwrap_err(), "undefined variable \"nothing\"");
    }

    #[test]
    fn bad_syntax_is_refused_with_its_place() {
        for text in ["", "1 +", "random(1)", "(1", "1 2", "foo(1)", "99999999999999999999"] {
            assert!(evaluate(text).is_err(), "{text}");
        }
        assert_eq!(parse("1 + )", &mut Symbols::default()).unwrap_err().0, 4);
    }
}
