//! The set of IPv6 addresses of `sidon watch`, which is saved like the structures of the library.

use crate::operate::{Draw, Operate, SEED};
use sidon::{Infeasible, Refused};
use sidon_traffic::monitor::addresses::Addresses;
use std::{fmt::Debug, net::Ipv6Addr};

fn address(number: u64) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(number))
}

impl Operate for Addresses {
    fn fresh(draw: &mut Draw<'_>) -> Result<Self, Infeasible> {
        Addresses::new(8 + draw(24), SEED)
    }

    fn operate(&mut self, _: &Self, draw: &mut Draw<'_>) -> Result<(), Refused> {
        self.observe(address(draw(40))).map(|_| ())
    }

    fn wipe(&mut self) {}

    fn answers(&self) -> impl PartialEq + Debug {
        let found: Vec<bool> = (0..40).map(|number| self.contains(address(number))).collect();
        (found, self.stored(), self.iter().collect::<Vec<_>>())
    }
}
