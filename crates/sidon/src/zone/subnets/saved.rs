//! The image of a [`Subnets`]: words, the subnets of the words where they are hashed, bitmaps.

use super::{BITMAP, LISTED_MAX, PROMOTED, Shape, Subnets};
use crate::{
    Malformed, Seed,
    packed::Packed,
    saved::{self, Save},
};

impl Subnets {
    /// Refuses a table that no sequence of hosts produces. Examples are a subnet in a slot where no
    /// search finds it, a host listed twice, and a bitmap that no word or two words refer to.
    fn is_sound(&self) -> Result<(), Malformed> {
        let sound = |name, holds: bool| if holds { Ok(()) } else { Err(Malformed::Field { name }) };
        sound("stored", self.stored <= self.shape.subnets())?;
        sound("promoted", self.promoted <= self.shape.bitmaps)?;
        let used = (0..self.shape.slots).filter(|&slot| self.word(slot) != 0).count() as u64;
        sound("stored", used == self.stored)?;
        let mut taken = vec![false; self.promoted as usize];
        for slot in 0..self.shape.slots {
            let (word, key) = (self.word(slot), self.keys.as_ref().map(|keys| keys.get(slot)));
            if word == 0 {
                sound("subnets", key.unwrap_or(0) == 0)?;
                continue;
            }
            sound(
                "subnets",
                key.is_none_or(|subnet| self.find(self.digest(subnet), subnet) == Ok(slot)),
            )?;
            let count = word >> 56;
            if count == PROMOTED {
                let number = word & !(PROMOTED << 56);
                let free = taken.get_mut(usize::try_from(number).unwrap_or(usize::MAX));
                sound("bitmaps", free.is_some_and(|taken| !std::mem::replace(taken, true)))?;
                let hosts: u32 = self.bitmap(word).iter().map(|byte| byte.count_ones()).sum();
                sound("bitmaps", hosts > LISTED_MAX)?;
                continue;
            }
            sound("words", (1..=u64::from(LISTED_MAX)).contains(&count))?;
            let bytes = word.to_le_bytes();
            let (hosts, rest) = bytes[..7].split_at(count as usize);
            let twice = (1..hosts.len()).any(|i| hosts[..i].contains(&hosts[i]));
            sound("words", !twice && rest.iter().all(|&byte| byte == 0))?;
        }
        sound("bitmaps", taken.iter().all(|&taken| taken))?;
        let beyond = &self.bitmaps.bytes()[self.promoted as usize * BITMAP..];
        sound("bitmaps", beyond.iter().all(|&byte| byte == 0))
    }
}

impl Subnets {
    /// The byte image.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Shape { subnet_bits, slots, bitmaps } = self.shape;
        let words = &self.words.bytes()[..slots as usize * 8];
        let keys = self.keys.as_ref().map_or(&[][..], Packed::payload);
        let maps = &self.bitmaps.bytes()[..bitmaps as usize * BITMAP];
        let payload = [words, keys, maps].concat();
        let fields = [subnet_bits.into(), slots, bitmaps, self.stored, self.promoted];
        saved::write(<Self as Save>::KIND, self.seed, &fields, &payload)
    }

    /// The structure of a byte image.
    pub fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        let ([subnet_bits, slots, bitmaps, stored, promoted], payload) =
            saved::read(image, <Self as Save>::KIND, seed)?;
        let shape =
            Shape { subnet_bits: saved::narrow("subnet_bits", subnet_bits)?, slots, bitmaps };
        shape.check()?;
        let keys =
            if shape.is_direct() { 0 } else { Packed::payload_bytes(slots, shape.subnet_bits)? };
        // `Shape::check` limits both to 2^32.
        let (words, maps) = (slots * 8, bitmaps * BITMAP as u64);
        saved::justify(payload, words + keys + maps)?;
        let mut read = Subnets::new(shape, seed)?;
        let (words, rest) = payload.split_at(words as usize);
        let (keys, maps) = rest.split_at(keys as usize);
        read.words.bytes_mut()[..words.len()].copy_from_slice(words);
        read.bitmaps.bytes_mut()[..maps.len()].copy_from_slice(maps);
        if read.keys.as_mut().is_some_and(|own| !own.load(keys)) {
            return Err(Malformed::Field { name: "subnets" });
        }
        (read.stored, read.promoted) = (stored, promoted);
        read.is_sound()?;
        Ok(read)
    }
}

impl Save for Subnets {
    const KIND: u16 = crate::saved::kinds::SUBNETS.number;

    fn to_bytes(&self) -> Vec<u8> {
        Subnets::to_bytes(self)
    }

    fn from_bytes(image: &[u8], seed: Seed) -> Result<Self, Malformed> {
        Subnets::from_bytes(image, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidon_kit::Rng;

    fn filled(shape: Shape, hosts: u64) -> Subnets {
        let (mut rng, mut set) = (Rng::seeded(4), Subnets::new(shape, Seed(9)).unwrap());
        for _ in 0..hosts {
            let subnet = rng.below(1 << shape.subnet_bits).min(rng.below(1 << shape.subnet_bits));
            let _ = set.observe(subnet, rng.below(24) as u8);
        }
        set
    }

    #[test]
    fn what_is_read_back_answers_the_same_and_goes_on_the_same() {
        for shape in [
            Shape { subnet_bits: 6, slots: 64, bitmaps: 20 },
            Shape { subnet_bits: 9, slots: 67, bitmaps: 9 },
            Shape { subnet_bits: 9, slots: 67, bitmaps: 0 },
        ] {
            for hosts in [0, 1, 300, 3_000] {
                let mut set = filled(shape, hosts);
                let image = set.to_bytes();
                let mut read = Subnets::from_bytes(&image, Seed(9)).unwrap();
                assert_eq!(read.to_bytes(), image);
                assert_eq!((read.len(), read.promoted()), (set.len(), set.promoted()));
                for subnet in 0..1 << shape.subnet_bits {
                    assert_eq!(read.list(subnet), set.list(subnet));
                    assert_eq!(read.observe(subnet, 200), set.observe(subnet, 200));
                }
                assert_eq!(Subnets::from_bytes(&image, Seed(8)).err(), Some(Malformed::Seed));
            }
        }
    }

    /// Changes each byte to each other value and repairs the checksum. Every table that is accepted
    /// must be written back byte for byte.
    #[test]
    fn a_table_is_read_whole_or_refused() {
        let image = filled(Shape { subnet_bits: 7, slots: 30, bitmaps: 3 }, 120).to_bytes();
        let (mut accepted, mut refused) = (0, 0);
        for at in 0..image.len() - 4 {
            for flip in 1..=255 {
                let mut other = image.clone();
                other[at] ^= flip;
                assert!(Subnets::from_bytes(&other, Seed(9)).is_err(), "byte {at} ^ {flip}");
                let body = other.len() - 4;
                let checksum = crc32fast::hash(&other[..body]);
                other[body..].copy_from_slice(&checksum.to_le_bytes());
                match Subnets::from_bytes(&other, Seed(9)) {
                    Ok(read) => {
                        assert_eq!(read.to_bytes(), other, "byte {at} ^ {flip}");
                        accepted += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(accepted > 0 && refused > accepted, "{accepted} accepted, {refused} refused");
        for len in 0..image.len() {
            assert!(Subnets::from_bytes(&image[..len], Seed(9)).is_err(), "cut to {len}");
        }
    }
}
