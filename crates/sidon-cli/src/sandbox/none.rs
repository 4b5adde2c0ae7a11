//! Replacement of the layers on systems other than Linux: there are none.

use super::{Confined, Layer, Needs};
use std::path::Path;

pub(super) fn confine(_: &Needs) -> (Confined, Option<&Path>) {
    let why = || Layer::Missing("this system is not Linux".to_owned());
    (vec![("Landlock", why()), ("seccomp", why())], None)
}
