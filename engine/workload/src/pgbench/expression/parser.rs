//! Parses expressions into trees, with the precedences of pgbench's grammar. From the lowest to the highest: `OR`;
//! `AND`; `NOT`; `IS`; comparisons, which cannot be chained; bit operators and `~`; sums; products; signs.

use super::functions::{self, Arity, IS as IS_OPERATOR, NOT as NOT_OPERATOR};
use super::lexer::{ExpressionToken, Lexer, Mistake};
use super::scalar::Scalar;
use super::tree::{Syntax, Tree};

/// The error for an expression that cannot be parsed: the mistake, and the offset at which the line of the expression
/// ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    pub mistake: Mistake,
    pub end: usize,
}

/// Parses the expression that starts at byte `at` of a script and ends with its line. Also returns the offset behind
/// that line. Trees have at most the height [`MAX_HEIGHT`], so that recursion over them cannot exhaust the stack.
pub fn parse(text: &[u8], at: usize) -> Result<(Syntax, usize), ParseError> {
    let mut parser = Parser { lexer: Lexer::new(text, at), token: ExpressionToken::End, nesting: 0 };
    match parser.whole() {
        Ok(tree) => Ok((tree, parser.lexer.position())),
        Err(mistake) => {
            let mistake = parser.lexer.finish(mistake);
            Err(ParseError { mistake, end: parser.lexer.position() })
        }
    }
}

/// The greatest height of a tree.
pub const MAX_HEIGHT: usize = 3000;

/// The greatest depth to which parentheses and prefixes may be nested.
const MAX_NESTING: usize = 200;

/// The precedences of the operators. Higher numbers bind more strongly.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// A tree with its height, which the parser limits.
struct Node {
    tree: Syntax,
    height: usize,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token, which the lexer has already returned.
    token: ExpressionToken,
    nesting: usize,
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Syntax, Mistake> {
        self.advance()?;
        let node = self.expression(OR)?;
        if self.token == ExpressionToken::End { Ok(node.tree) } else { Err(self.unexpected()) }
    }

    /// Parses operands that are joined by operators whose precedence is at least `least`.
    fn expression(&mut self, least: u8) -> Result<Node, Mistake> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.lexer.mistake("memory exhausted", None));
        }
        let mut left = self.operand()?;
        while let Some(operator) = self.operator().filter(|operator| operator.strength() >= least) {
            left = match operator {
                Infix::Is => self.postfix(left)?,
                _ => {
                    self.advance()?;
                    let right = self.expression(operator.strength() + 1)?;
                    if operator.strength() == COMPARISON && self.comes_comparison() {
                        return Err(self.unexpected());
                    }
                    self.join(operator, left, right)?
                }
            };
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn comes_comparison(&self) -> bool {
        self.operator().is_some_and(|operator| operator.strength() == COMPARISON)
    }

    /// Returns the operator that the next token begins; `None` if the next token is not an operator.
    fn operator(&self) -> Option<Infix> {
        use Infix::{Call, Is, Logic, Swapped};
        Some(match self.token {
            ExpressionToken::Keyword("or") => Logic(true),
            ExpressionToken::Keyword("and") => Logic(false),
            ExpressionToken::Keyword("is" | "isnull" | "notnull") => Is,
            ExpressionToken::Sign(sign) => match sign {
                "+" | "-" => Call(sign, SUM),
                "*" | "/" | "%" => Call(sign, PRODUCT),
                "=" | "<>" | "<=" | "<" => Call(sign, COMPARISON),
                "!=" => Call("<>", COMPARISON),
                ">=" => Swapped("<="),
                ">" => Swapped("<"),
                "&" | "|" | "#" | "<<" | ">>" => Call(sign, BITS),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn join(&self, operator: Infix, left: Node, right: Node) -> Result<Node, Mistake> {
        let height = left.height.max(right.height);
        let (left, right) = (left.tree, right.tree);
        match operator {
            Infix::Logic(decides) => self.node(height, Tree::Logic(decides, Box::new([left, right]))),
            Infix::Call(sign, _) => self.call(sign, height, [left, right]),
            // pgbench has no operator for this comparison. It exchanges the sides and uses the opposite operator, so
            // that it evaluates the right side first.
            Infix::Swapped(sign) => self.call(sign, height, [right, left]),
            Infix::Is => self.node(height, left),
        }
    }

    /// Makes a node from a tree whose subtrees have at most the given height. Fails if the tree would exceed the
    /// greatest height.
    fn node(&self, height: usize, tree: Syntax) -> Result<Node, Mistake> {
        let height = height + 1;
        if height > MAX_HEIGHT { Err(self.lexer.mistake("memory exhausted", None)) } else { Ok(Node { tree, height }) }
    }

    /// Parses the operator `ISNULL`, `NOTNULL`, `IS [NOT] NULL`, or `IS [NOT]` and a boolean, behind its operand.
    fn postfix(&mut self, operand: Node) -> Result<Node, Mistake> {
        let keyword = self.token.clone();
        self.advance()?;
        let (negated, wanted) = match keyword {
            ExpressionToken::Keyword("isnull") => (false, Scalar::Null),
            ExpressionToken::Keyword("notnull") => (true, Scalar::Null),
            _ => {
                let negated = self.eat(&ExpressionToken::Keyword("not"))?;
                let wanted = match self.token {
                    ExpressionToken::Keyword("null") => Scalar::Null,
                    ExpressionToken::Bool(truth) => Scalar::Bool(truth),
                    _ => return Err(self.unexpected()),
                };
                self.advance()?;
                (negated, wanted)
            }
        };
        let is = self.call(IS_OPERATOR, operand.height, [operand.tree, Tree::Constant(wanted)])?;
        if negated { self.call(NOT_OPERATOR, is.height, [is.tree]) } else { Ok(is) }
    }

    /// Makes a node for an operator with its operands.
    fn call<const N: usize>(&self, operator: &str, height: usize, arguments: [Syntax; N]) -> Result<Node, Mistake> {
        match functions::find(operator) {
            Some(function) => self.node(height, Tree::Call(function, Box::new(arguments))),
            None => Err(self.unexpected()),
        }
    }

    fn operand(&mut self) -> Result<Node, Mistake> {
        let constant = |scalar| Node { tree: Tree::Constant(scalar), height: 1 };
        let token = self.token.clone();
        let node = match token {
            ExpressionToken::Bool(truth) => constant(Scalar::Bool(truth)),
            ExpressionToken::Int(number) => constant(Scalar::Int(number)),
            ExpressionToken::Double(number) => constant(Scalar::Double(number)),
            ExpressionToken::Keyword("null") => constant(Scalar::Null),
            ExpressionToken::Variable(name) => Node { tree: Tree::Variable(name), height: 1 },
            ExpressionToken::Name(name) => return self.function(&name),
            ExpressionToken::Keyword("case") => return self.case(),
            ExpressionToken::Keyword("not") => {
                self.advance()?;
                let operand = self.expression(NOT)?;
                return self.call(NOT_OPERATOR, operand.height, [operand.tree]);
            }
            ExpressionToken::Sign(sign) => return self.prefix(sign),
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok(node)
    }

    /// Parses a sign, `~` or a parenthesis, with the operand or expression behind it.
    fn prefix(&mut self, sign: &str) -> Result<Node, Mistake> {
        if !matches!(sign, "(" | "+" | "-" | "~") {
            return Err(self.unexpected());
        }
        self.advance()?;
        match sign {
            "(" => {
                let inner = self.expression(OR)?;
                self.expect(&ExpressionToken::Sign(")"))?;
                Ok(inner)
            }
            "+" => self.expression(SIGN),
            "-" if self.token == ExpressionToken::IntLimit => {
                self.advance()?;
                Ok(Node { tree: Tree::Constant(Scalar::Int(i64::MIN)), height: 1 })
            }
            "-" => {
                let operand = self.expression(SIGN)?;
                self.call("-", operand.height, [Tree::Constant(Scalar::Int(0)), operand.tree])
            }
            _ => {
                let operand = self.expression(BITS + 1)?;
                self.call("#", operand.height, [Tree::Constant(Scalar::Int(-1)), operand.tree])
            }
        }
    }

    fn function(&mut self, name: &str) -> Result<Node, Mistake> {
        let Some(function) = functions::find(name) else {
            return Err(self.lexer.mistake("unexpected function name", Some(name.to_owned())));
        };
        let (name, arity) = (function.name, function.arity);
        self.advance()?;
        self.expect(&ExpressionToken::Sign("("))?;
        let (mut arguments, mut height) = (Vec::new(), 0);
        // pgbench's grammar allows a comma before the first argument.
        if self.token != ExpressionToken::Sign(")") && self.token != ExpressionToken::Sign(",") {
            self.argument(&mut arguments, &mut height)?;
        }
        while self.token == ExpressionToken::Sign(",") {
            self.advance()?;
            self.argument(&mut arguments, &mut height)?;
        }
        if self.token != ExpressionToken::Sign(")") {
            return Err(self.unexpected());
        }
        let wrong = |message| Err(self.lexer.mistake(message, Some(name.to_owned())));
        match arity {
            Arity::AtLeastOne if arguments.is_empty() => return wrong("at least one argument expected"),
            Arity::AtLeastOne => {}
            Arity::Seeded(count) if arguments.len() == count => {
                arguments.push(Tree::Variable("default_seed".to_owned()));
            }
            Arity::Seeded(count) if arguments.len() == count + 1 => {}
            Arity::Exactly(count) if arguments.len() == count => {}
            Arity::Seeded(_) | Arity::Exactly(_) => return wrong("unexpected number of arguments"),
        }
        self.advance()?;
        self.node(height, Tree::Call(function, arguments.into()))
    }

    fn argument(&mut self, arguments: &mut Vec<Syntax>, height: &mut usize) -> Result<(), Mistake> {
        let node = self.expression(OR)?;
        *height = node.height.max(*height);
        arguments.push(node.tree);
        Ok(())
    }

    fn case(&mut self) -> Result<Node, Mistake> {
        self.advance()?;
        let (mut branches, mut height) = (Vec::new(), 1);
        loop {
            self.expect(&ExpressionToken::Keyword("when"))?;
            self.argument(&mut branches, &mut height)?;
            self.expect(&ExpressionToken::Keyword("then"))?;
            self.argument(&mut branches, &mut height)?;
            if self.token != ExpressionToken::Keyword("when") {
                break;
            }
        }
        if self.eat(&ExpressionToken::Keyword("else"))? {
            self.argument(&mut branches, &mut height)?;
        } else {
            branches.push(Tree::Constant(Scalar::Null));
        }
        self.expect(&ExpressionToken::Keyword("end"))?;
        self.node(height, Tree::Case(branches.into()))
    }

    fn advance(&mut self) -> Result<(), Mistake> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn eat(&mut self, wanted: &ExpressionToken) -> Result<bool, Mistake> {
        let found = self.token == *wanted;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, wanted: &ExpressionToken) -> Result<(), Mistake> {
        if self.eat(wanted)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Mistake {
        self.lexer.mistake("syntax error", None)
    }
}

/// An operator that stands behind its first operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Infix {
    /// `OR` if the field is true, `AND` if it is false. An operand with this value decides the result.
    Logic(bool),
    Is,
    Call(&'static str, u8),
    /// A comparison that is evaluated with its sides exchanged, by the operator in the field.
    Swapped(&'static str),
}

impl Infix {
    fn strength(self) -> u8 {
        match self {
            Infix::Logic(true) => OR,
            Infix::Logic(false) => AND,
            Infix::Is => IS,
            Infix::Call(_, strength) => strength,
            Infix::Swapped(_) => COMPARISON,
        }
    }
}
