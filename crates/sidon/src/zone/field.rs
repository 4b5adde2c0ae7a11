//! Finite fields: `q` numbers that can be added, multiplied and divided without leaving `0..q`.
//!
//! A field exists for every prime power `q = p^e` and for no other number. With `e = 1` it is
//! arithmetic modulo `p`. Otherwise an element is a polynomial of degree below `e` over the numbers
//! modulo `p`. It is written as the integer whose base-`p` digits are the coefficients, constant
//! term lowest. Products are reduced by the smallest monic irreducible polynomial of degree `e`.
//! ```text
//! GF(9):  5 = 2 + 1x     7 = 1 + 2x     5 + 7 = 0 + 0x = 0     modulus 10 = 1 + 0x + 1x^2
//! ```
//! A product costs one reduction modulo a prime, or three table reads: two logarithms and one
//! power. The tables hold `3q` numbers of 16 bits; prime fields have none.
//!
//! Any other order has a product of fields, one for each prime power that divides it exactly. An
//! element is one element of each field, and all arithmetic is done in each. Not every element has
//! an inverse. The elements `(j, j, ..)` differ in every field, so their differences have one. There
//! are as many of them as the smallest field has elements.
//! ```text
//! order 12 = GF(4) * GF(3):  11 = (3, 2)     the points 0 (0, 0)   5 (1, 1)   10 (2, 2)
//! ```

use crate::Infeasible;
use std::{fmt, sync::Arc};

/// The largest order.
pub(crate) const ORDER_MAX: u64 = 1 << 16;

/// The prime and the exponent of a prime power. `None` for any other number.
pub(crate) fn prime_power(q: u64) -> Option<(u64, u32)> {
    if q < 2 {
        return None;
    }
    let mut p = 2;
    while p * p <= q && !q.is_multiple_of(p) {
        p += 1;
    }
    if !q.is_multiple_of(p) {
        return Some((q, 1));
    }
    let (mut rest, mut exponent) = (q, 0);
    while rest.is_multiple_of(p) {
        rest /= p;
        exponent += 1;
    }
    (rest == 1).then_some((p, exponent))
}

/// The prime powers whose product is `n`, at most one of each prime.
fn prime_powers(n: u64) -> Vec<u64> {
    let (mut powers, mut rest, mut p) = (Vec::new(), n, 2);
    while rest > 1 {
        p = if p * p > rest { rest } else { p };
        let mut power = 1;
        while rest.is_multiple_of(p) {
            (power, rest) = (power * p, rest / p);
        }
        powers.extend((power > 1).then_some(power));
        p += 1;
    }
    powers
}

/// The number of points of the [product](Field::product) of this order, which is at least 2.
pub(crate) fn points(order: u64) -> u64 {
    prime_powers(order).into_iter().min().unwrap_or(order)
}

/// The least prime power that is at least `q`. `None` if it is above 2^16.
pub(crate) fn next_prime_power(q: u64) -> Option<u64> {
    (q.max(2)..=ORDER_MAX).find(|&q| prime_power(q).is_some())
}

/// A field of `q` elements, `0..q`, or a product of fields.
#[derive(Clone)]
pub(crate) struct Field {
    /// The prime and the exponent. Zero for a product of several fields.
    p: u32,
    exponent: u32,
    order: u32,
    /// The polynomial that reduces products, as an integer. For a prime field, the prime.
    #[cfg(test)]
    modulus: u32,
    tables: Option<Arc<Tables>>,
    /// The fields of a product. None for a single field.
    parts: Arc<[Field]>,
}

struct Tables {
    /// The logarithm of each element except zero, to the base of a generator.
    log: Vec<u16>,
    /// The powers of the generator, listed twice, so that a sum of two logarithms needs no
    /// reduction.
    power: Vec<u16>,
}

impl Field {
    /// The field of this order: a prime power up to 2^16.
    pub(crate) fn new(order: u64) -> Result<Self, Infeasible> {
        Infeasible::unless_within("order", order, 2, ORDER_MAX)?;
        let Some((p, exponent)) = prime_power(order) else {
            let near = next_prime_power(order).unwrap_or(ORDER_MAX);
            let (name, allowed) = ("order", "a prime power");
            return Err(Infeasible::NotOneOf { name, got: order, allowed, near });
        };
        let (p, order) = (p as u32, order as u32);
        if exponent == 1 {
            return Ok(Field {
                p,
                exponent,
                order,
                #[cfg(test)]
                modulus: p,
                tables: None,
                parts: Arc::new([]),
            });
        }
        let modulus = irreducible(p, exponent, order);
        let tables = Some(Arc::new(Tables::new(p, exponent, order, modulus)));
        Ok(Field {
            p,
            exponent,
            order,
            #[cfg(test)]
            modulus,
            tables,
            parts: Arc::new([]),
        })
    }

    /// The field of this order, or the product of fields if it is no prime power. Up to 2^16.
    pub(crate) fn product(order: u64) -> Result<Self, Infeasible> {
        Infeasible::unless_within("order", order, 2, ORDER_MAX)?;
        let parts = prime_powers(order).into_iter().map(Field::new);
        let parts = parts.collect::<Result<Arc<[Field]>, _>>()?;
        if let [single] = &*parts {
            return Ok(single.clone());
        }
        Ok(Field {
            p: 0,
            exponent: 0,
            order: order as u32,
            #[cfg(test)]
            modulus: 0,
            tables: None,
            parts,
        })
    }

    /// The number of points: elements whose differences have inverses.
    pub(crate) fn points(&self) -> u32 {
        self.parts.iter().map(|part| part.order).min().unwrap_or(self.order)
    }

    /// A point by its number. Point 1 is the unit.
    #[inline(always)]
    pub(crate) fn point(&self, number: u32) -> u32 {
        if self.exponent > 0 {
            return number;
        }
        self.parts.iter().rev().fold(0, |point, part| point * part.order + number)
    }

    /// The element of a product that is `of` the parts of `a` and `b` in each field.
    #[inline]
    fn each(&self, mut a: u32, mut b: u32, of: impl Fn(&Field, u32, u32) -> u32) -> u32 {
        let (mut result, mut place) = (0, 1);
        for part in &*self.parts {
            let order = part.order;
            result += of(part, a % order, b % order) * place;
            (a, b, place) = (a / order, b / order, place * order);
        }
        result
    }

    /// The number of elements.
    pub(crate) fn order(&self) -> u32 {
        self.order
    }

    #[cfg(test)]
    pub(crate) fn modulus(&self) -> u32 {
        self.modulus
    }

    /// The sum of two elements.
    #[inline(always)]
    pub(crate) fn add(&self, a: u32, b: u32) -> u32 {
        if self.exponent == 1 {
            let sum = a + b;
            return if sum >= self.order { sum - self.order } else { sum };
        }
        if self.p == 2 { a ^ b } else { self.add_digits(a, b) }
    }

    /// The additive inverse.
    #[inline]
    pub(crate) fn negative(&self, a: u32) -> u32 {
        if self.exponent == 0 {
            return self.each(a, 0, |part, a, _| part.negative(a));
        }
        digits(self.p, a, 0, |a, _| (self.p - a) % self.p)
    }

    /// The difference `a - b`.
    #[cfg(test)]
    pub(crate) fn sub(&self, a: u32, b: u32) -> u32 {
        self.add(a, self.negative(b))
    }

    /// The product of two elements.
    #[inline(always)]
    pub(crate) fn mul(&self, a: u32, b: u32) -> u32 {
        match &self.tables {
            None if self.exponent == 0 => self.each(a, b, Field::mul),
            None => ((u64::from(a) * u64::from(b)) % u64::from(self.order)) as u32,
            Some(_) if a == 0 || b == 0 => 0,
            Some(tables) => {
                let sum = usize::from(tables.log[a as usize]) + usize::from(tables.log[b as usize]);
                tables.power[sum].into()
            }
        }
    }

    /// The multiplicative inverse. `None` for zero, and if a part of a product is zero.
    pub(crate) fn inverse(&self, a: u32) -> Option<u32> {
        if a == 0 || a >= self.order {
            return None;
        }
        if self.exponent == 0 {
            // The part that is zero has no inverse, and no inverse is zero.
            let inverse = self.each(a, 0, |part, a, _| part.inverse(a).unwrap_or(0));
            return (self.mul(a, inverse) == self.point(1)).then_some(inverse);
        }
        // By Fermat: a^(q-2).
        let (mut result, mut base, mut rest) = (1, a, self.order - 2);
        while rest > 0 {
            if rest & 1 == 1 {
                result = self.mul(result, base);
            }
            base = self.mul(base, base);
            rest >>= 1;
        }
        Some(result)
    }

    #[inline]
    fn add_digits(&self, a: u32, b: u32) -> u32 {
        if self.exponent == 0 {
            return self.each(a, b, Field::add);
        }
        digits(self.p, a, b, |a, b| (a + b) % self.p)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Field {}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GF({})", self.order)
    }
}

impl Tables {
    fn new(p: u32, exponent: u32, order: u32, modulus: u32) -> Self {
        let cycle = order - 1;
        let times = |a, b| multiply(p, exponent, modulus, a, b);
        let power = |base: u32, mut n: u32| {
            let (mut result, mut base) = (1, base);
            while n > 0 {
                if n & 1 == 1 {
                    result = times(result, base);
                }
                base = times(base, base);
                n >>= 1;
            }
            result
        };
        // An element generates all others if its power (q - 1) / f is not 1 for every prime factor
        // f of q - 1.
        let mut factors = Vec::new();
        let (mut rest, mut factor) = (cycle, 2);
        while rest > 1 {
            if rest.is_multiple_of(factor) {
                factors.push(factor);
                while rest.is_multiple_of(factor) {
                    rest /= factor;
                }
            }
            factor += 1;
        }
        let generates = |&g: &u32| factors.iter().all(|factor| power(g, cycle / factor) != 1);
        let generator = (2..order).find(generates).expect("a field's units are a cycle");
        let mut tables =
            Tables { log: vec![0; order as usize], power: vec![0; 2 * cycle as usize] };
        let mut element = 1;
        for i in 0..cycle {
            tables.log[element as usize] = i as u16;
            tables.power[i as usize] = element as u16;
            tables.power[(i + cycle) as usize] = element as u16;
            element = times(element, generator);
        }
        tables
    }
}

/// The number whose base-`p` digits are `of` the digits of `a` and `b`.
#[inline]
fn digits(p: u32, mut a: u32, mut b: u32, of: impl Fn(u32, u32) -> u32) -> u32 {
    let (mut result, mut place) = (0, 1);
    while a > 0 || b > 0 {
        result += of(a % p, b % p) * place;
        (a, b, place) = (a / p, b / p, place * p);
    }
    result
}

/// The product of two polynomials, reduced.
fn multiply(p: u32, exponent: u32, modulus: u32, a: u32, b: u32) -> u32 {
    let mut coefficients = [0u32; 32];
    let (mut i, mut left) = (0, a);
    while left > 0 {
        let (mut j, mut right) = (i, b);
        while right > 0 {
            coefficients[j] = (coefficients[j] + (left % p) * (right % p)) % p;
            (j, right) = (j + 1, right / p);
        }
        (i, left) = (i + 1, left / p);
    }
    let e = exponent as usize;
    for high in (e..32).rev() {
        let lead = coefficients[high];
        let (mut low, mut rest) = (high - e, modulus);
        // The modulus is monic: subtracting `lead` times it clears the highest coefficient.
        while lead > 0 && rest > 0 {
            coefficients[low] = (coefficients[low] + (p - lead) * (rest % p)) % p;
            (low, rest) = (low + 1, rest / p);
        }
    }
    coefficients[..e].iter().rev().fold(0, |value, digit| value * p + digit)
}

/// The smallest monic irreducible polynomial of this degree, as an integer.
fn irreducible(p: u32, exponent: u32, order: u32) -> u32 {
    let half = p.pow(exponent / 2 + 1);
    let has_divisor = |candidate: u32| (p..half).any(|divisor| divides(p, divisor, candidate));
    let found = (order..2 * order).find(|&candidate| !has_divisor(candidate));
    found.expect("there is an irreducible polynomial of every degree")
}

/// Whether a monic polynomial divides another. `false` for a divisor that is not monic.
fn divides(p: u32, divisor: u32, candidate: u32) -> bool {
    let degree = |a: u32| a.checked_ilog(p).unwrap_or(0);
    let by = degree(divisor);
    if divisor / p.pow(by) != 1 {
        return false;
    }
    let mut rest = candidate;
    while rest > 0 && degree(rest) >= by {
        let shift = p.pow(degree(rest) - by);
        let lead = rest / p.pow(degree(rest));
        rest = digits(p, rest, divisor * shift, |a, b| (a + (p - lead) * b) % p);
    }
    rest == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(most: u64) -> impl Iterator<Item = u64> {
        (2..=most).filter(|&q| prime_power(q).is_some())
    }

    #[test]
    fn moduli_are_the_smallest_irreducible_ones() {
        let known = [(4, 7), (8, 11), (9, 10), (16, 19), (25, 27), (27, 34), (32, 37), (49, 50)];
        for (order, modulus) in known {
            assert_eq!(Field::new(order).unwrap().modulus(), modulus, "GF({order})");
        }
    }

    #[test]
    fn every_law_holds_in_every_field_up_to_64() {
        let mut fields = 0;
        for q in orders(64) {
            let field = Field::new(q).unwrap();
            let all = || 0..q as u32;
            for a in all() {
                assert_eq!((field.add(a, 0), field.mul(a, 1), field.mul(a, 0)), (a, a, 0));
                assert_eq!(field.add(a, field.negative(a)), 0);
                match field.inverse(a) {
                    Some(inverse) => assert_eq!(field.mul(a, inverse), 1),
                    None => assert_eq!(a, 0),
                }
                for b in all() {
                    let (sum, product) = (field.add(a, b), field.mul(a, b));
                    assert!(sum < q as u32 && product < q as u32);
                    assert_eq!((sum, product), (field.add(b, a), field.mul(b, a)));
                    assert_eq!(field.sub(sum, b), a);
                    assert!(product != 0 || a == 0 || b == 0);
                    for c in all() {
                        assert_eq!(field.add(sum, c), field.add(a, field.add(b, c)));
                        assert_eq!(field.mul(product, c), field.mul(a, field.mul(b, c)));
                        assert_eq!(field.mul(sum, c), field.add(field.mul(a, c), field.mul(b, c)));
                    }
                }
            }
            fields += 1;
        }
        assert_eq!(fields, 27);
    }

    #[test]
    fn products_of_fields_keep_the_laws_and_points_differ_by_units() {
        let mut products = 0;
        for order in (6..=45).filter(|&order| prime_power(order).is_none()) {
            let ring = Field::product(order).unwrap();
            let (one, all) = (ring.point(1), || 0..order as u32);
            for a in all() {
                assert_eq!((ring.add(a, 0), ring.mul(a, one), ring.mul(a, 0)), (a, a, 0));
                assert_eq!(ring.add(a, ring.negative(a)), 0);
                let inverses = all().filter(|&b| ring.mul(a, b) == one).collect::<Vec<_>>();
                assert_eq!(ring.inverse(a).into_iter().collect::<Vec<_>>(), inverses);
                for (b, c) in all().flat_map(|b| all().map(move |c| (b, c))) {
                    assert_eq!(ring.add(ring.add(a, b), c), ring.add(a, ring.add(b, c)));
                    assert_eq!(ring.mul(ring.mul(a, b), c), ring.mul(a, ring.mul(b, c)));
                    let apart = ring.add(ring.mul(a, c), ring.mul(b, c));
                    assert_eq!(ring.mul(ring.add(a, b), c), apart);
                }
            }
            assert_eq!(u64::from(ring.points()), points(order));
            for (i, j) in (0..ring.points()).flat_map(|j| (0..j).map(move |i| (i, j))) {
                let apart = ring.sub(ring.point(j), ring.point(i));
                assert!(ring.inverse(apart).is_some(), "{order}: {i} {j}");
            }
            products += 1;
        }
        assert_eq!(products, 23);
        // Known least factors, and prime powers, which have as many points as elements.
        for (order, least) in [(6, 2), (12, 3), (20, 4), (35, 5), (72, 8), (16, 16), (17, 17)] {
            assert_eq!(points(order), least);
        }
    }

    #[test]
    fn large_fields_keep_the_laws_where_they_are_sampled() {
        let mut rng = sidon_kit::Rng::seeded(8);
        for q in [65_536, 59_049, 65_521, 32_768, 63_001, 50_653, 15_625, 257, 256, 243] {
            let field = Field::new(q).unwrap();
            for _ in 0..2_000 {
                let [a, b, c] = [(); 3].map(|()| rng.below(q) as u32);
                let left = field.mul(field.add(a, b), c);
                assert_eq!(left, field.add(field.mul(a, c), field.mul(b, c)), "GF({q})");
                assert_eq!(field.mul(field.mul(a, b), c), field.mul(a, field.mul(b, c)));
                assert_eq!(field.sub(field.add(a, b), b), a);
                if let Some(inverse) = field.inverse(a) {
                    assert_eq!(field.mul(a, inverse), 1);
                }
            }
        }
    }

    #[test]
    fn other_orders_are_infeasible_and_name_the_next_one() {
        for (order, next) in
            [(6, 7), (10, 11), (12, 13), (15, 16), (18, 19), (24, 25), (65_535, 65_536)]
        {
            let why = Field::new(order).unwrap_err();
            let text = format!("order is {order}, and must be a prime power, such as {next}");
            assert_eq!(why.to_string(), text);
            assert_eq!(next_prime_power(order), Some(next));
        }
        for order in [0, 1, 65_537, u64::MAX] {
            assert!(Field::new(order).is_err());
        }
        assert_eq!(next_prime_power(65_537), None);
    }
}
