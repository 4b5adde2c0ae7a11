//! The byte image of a [`Sketch`].

use super::{Known, READ_BUDGET, Sketch};
use crate::{
    Infeasible, Malformed, Seed,
    count::Update,
    packed,
    saved::{self, Save},
    zone::{
        NO_SEED,
        code::Code,
        filter::{read_code, write_code},
    },
};

impl<C: Code> Sketch<C> {
    /// The byte image.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (code, mut payload) = write_code(&self.code.shape());
        let [family, universe, order, digits, groups, infinity] = code;
        let (known, number) = match (self.known, self.update) {
            (Known::Inside(active), Update::Plain) => (0, active),
            (Known::OneMore(key), _) => (1, key),
            (Known::Beyond, Update::Plain) => (2, 0),
            (Known::Inside(active), Update::Conservative) => (3, active),
            (Known::Beyond, Update::Conservative) => (4, 0),
        };
        let width = self.width().into();
        let fields = [family, universe, order, digits, groups, infinity, width, known, number];
        payload.extend(self.counters.payload());
        saved::write(<Self as Save>::KIND, NO_SEED, &fields, &payload)
    }

    /// The structure of a byte image.
    ///
    /// Accepts any seed, because no key is hashed.
    pub fn from_bytes(image: &[u8], _: Seed) -> Result<Self, Malformed> {
        let (fields, payload) = saved::read::<9>(image, <Self as Save>::KIND, NO_SEED)?;
        let [code @ .., width, known, number] = fields;
        let width = saved::narrow("width", width)?;
        Infeasible::unless_within("width", width.into(), 1, packed::WIDTH_MAX.into())?;
        let (code, cells) = read_code::<C>(code, payload, width)?;
        let update = if known > 2 { Update::Conservative } else { Update::Plain };
        let mut sketch = Sketch::new(code, width, update)?;
        if !sketch.counters.load(cells) {
            return Err(Malformed::Field { name: "counters" });
        }
        sketch.count_occupied();
        let field = |name| Malformed::Field { name };
        // Every amount is added to one counter of each group, so all groups have the same sum.
        let sum = |group| -> u64 {
            let cells = sketch.code.start(group)..sketch.code.start(group + 1);
            cells.map(|cell| sketch.counter(cell)).sum()
        };
        let total = sum(0);
        let is_sum = update == Update::Plain;
        if is_sum && (1..sketch.code.groups()).any(|group| sum(group) != total) {
            return Err(field("counters"));
        }
        let zone = sketch.code.zone();
        sketch.known = match known {
            0 | 3 if number <= zone && sketch.can_be_of(number) => Known::Inside(number),
            1 if number < sketch.code.universe()
                && sketch.minimum(number) > 0
                && sketch.can_be_of(zone.saturating_add(1)) =>
            {
                Known::OneMore(number)
            }
            2 if number == 0 && total > 0 => Known::Beyond,
            4 if number == 0 && !sketch.occupied.contains(&0) => Known::Beyond,
            _ => return Err(field("known")),
        };
        // Verify a claim of exact counts where that is cheap.
        let (without, active) = match sketch.known {
            Known::Inside(active) => (None, active),
            Known::OneMore(key) => (Some(key), zone),
            Known::Beyond => return Ok(sketch),
        };
        let is_cheap = sketch.is_cheap(READ_BUDGET);
        if is_cheap && sketch.explained(without, u64::MAX) != Some(active) {
            return Err(field("known"));
        }
        Ok(sketch)
    }
}

/// `Sketch<Any>` reads an image of any code.
impl<C: Code> Save for Sketch<C> {
    const KIND: u16 = crate::saved::kinds::SKETCH.number;

    fn to_bytes(&self) -> Vec<u8> {
        Sketch::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Sketch::from_bytes(image, seed)
    }
}
