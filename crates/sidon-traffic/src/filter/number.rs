//! Numbers in an expression: bytes of headers, names, arithmetic, comparisons.
//!
//! ```text
//! number = shift { (& | ^) shift }, shift = sum { (<< | >>) sum }
//! sum    = product { (+ | -) product }, product = unit { (* | / | %) unit }
//! unit   = integer | name | len | protocol [ number : size ] | - unit | ( number )
//! ```

use super::{
    NotAFilter,
    eval::compute,
    expr::{Header, Number, Operation, Relation, Test},
    lex::What,
    parse::{ARP, Parser, Protocol, integer},
    words,
};
use crate::packet::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

const RARP: u16 = 0x8035;

/// The operators by how strongly they bind, weakest first.
const LEVELS: [&[(&str, Operation)]; 4] = [
    &[("&", Operation::And), ("|", Operation::Or), ("^", Operation::Xor)],
    &[("<<", Operation::ShiftLeft), (">>", Operation::ShiftRight)],
    &[("+", Operation::Add), ("-", Operation::Subtract)],
    &[("*", Operation::Multiply), ("/", Operation::Divide), ("%", Operation::Remainder)],
];

const RELATIONS: [(&str, Relation); 7] = [
    ("=", Relation::Equal),
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<", Relation::Less),
    ("<=", Relation::LessEqual),
    (">", Relation::Greater),
    (">=", Relation::GreaterEqual),
];

impl Parser<'_> {
    /// A comparison, if one starts here. A parenthesis may open a number or an expression: what
    /// follows it decides.
    pub(super) fn comparison(&mut self) -> Result<Option<Test>, NotAFilter> {
        let (start, depth) = (self.at, self.depth);
        let sure = self.number_is_sure();
        if !sure && !self.is_sign(0, "(") && !self.word_is_number() {
            return Ok(None);
        }
        let left = match self.number(0) {
            Ok(left) => left,
            Err(why) if sure => return Err(why),
            Err(_) => {
                (self.at, self.depth) = (start, depth);
                return Ok(None);
            }
        };
        let relation = RELATIONS.iter().find(|(sign, _)| self.is_sign(0, sign));
        let Some(&(_, relation)) = relation else {
            if sure {
                return Err(self.refuse("expected a comparison such as `!=` here"));
            }
            (self.at, self.depth) = (start, depth);
            return Ok(None);
        };
        self.at += 1;
        let right = self.number(0)?;
        Ok(Some(Test::Compare(Box::new([left, right]), relation)))
    }

    /// Whether only a number can start like this: `len`, a minus, `protocol [`, `5 +`.
    fn number_is_sure(&self) -> bool {
        match &self.peek().what {
            What::Word(word) if word == "len" => true,
            What::Word(word) if Protocol::from_word(word).is_some() => self.is_sign(1, "["),
            What::Word(_) => {
                let mut operators = LEVELS.iter().flat_map(|level| level.iter());
                self.word_is_number() && operators.any(|(sign, _)| self.is_sign(1, sign))
            }
            What::Sign(sign) => *sign == "-",
            What::End => false,
        }
    }

    /// Whether the next word is a number, which may as well be a port or an address.
    fn word_is_number(&self) -> bool {
        match &self.peek().what {
            What::Word(word) => integer(word).is_some() || words::number(word).is_some(),
            _ => false,
        }
    }

    fn number(&mut self, level: usize) -> Result<Number, NotAFilter> {
        let Some(operators) = LEVELS.get(level) else { return self.unit() };
        let mut left = self.number(level + 1)?;
        while let Some(&(_, operation)) = operators.iter().find(|(sign, _)| self.is_sign(0, sign)) {
            self.at += 1;
            let here = self.at;
            let right = self.number(level + 1)?;
            left = match (&left, &right) {
                (Number::Constant(a), Number::Constant(b)) => match compute(*a, operation, *b) {
                    Some(value) => Number::Constant(value),
                    None => {
                        self.at = here;
                        return Err(self.refuse("a division by zero"));
                    }
                },
                _ => Number::Compute(Box::new([left, right]), operation),
            };
        }
        Ok(left)
    }

    fn unit(&mut self) -> Result<Number, NotAFilter> {
        if self.eat("(") {
            self.deeper()?;
            let inner = self.number(0)?;
            self.depth -= 1;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.eat("-") {
            self.deeper()?;
            let inner = self.unit()?;
            self.depth -= 1;
            let zero = Number::Constant(0);
            return Ok(Number::Compute(Box::new([zero, inner]), Operation::Subtract));
        }
        let What::Word(word) = &self.peek().what else {
            return Err(self.refuse("expected a number here"));
        };
        let known = integer(word).or_else(|| words::number(word));
        let (is_length, protocol) = (word == "len", Protocol::from_word(word));
        match (known, protocol) {
            (Some(value), _) => {
                self.at += 1;
                Ok(Number::Constant(value))
            }
            _ if is_length => {
                self.at += 1;
                Ok(Number::Length)
            }
            (None, Some(protocol)) if self.is_sign(1, "[") => self.load(protocol),
            _ => Err(self.refuse("expected a number here")),
        }
    }

    fn load(&mut self, protocol: Protocol) -> Result<Number, NotAFilter> {
        let from = match protocol {
            Protocol::Ether => Header::Ether,
            Protocol::Ip => Header::Network(ETHERTYPE_IPV4),
            Protocol::Ip6 => Header::Network(ETHERTYPE_IPV6),
            Protocol::Arp => Header::Network(ARP),
            Protocol::Rarp => Header::Network(RARP),
            Protocol::Both(50 | 51) => {
                return Err(self.refuse("the bytes of this protocol cannot be asked for"));
            }
            Protocol::Both(number) | Protocol::Ip4(number) => Header::Transport(number),
            Protocol::Icmp6 => Header::Icmp6,
        };
        self.at += 2;
        self.deeper()?;
        let index = Box::new(self.number(0)?);
        self.depth -= 1;
        let mut size = 1;
        if self.eat(":") {
            size = match &self.peek().what {
                What::Word(word) => integer(word).unwrap_or(0) as u8,
                _ => 0,
            };
            if !matches!(size, 1 | 2 | 4) {
                return Err(self.refuse("a size is 1, 2 or 4 bytes"));
            }
            self.at += 1;
        }
        self.expect("]")?;
        Ok(Number::Load { from, index, size })
    }
}
