//! Errors of reading an interface, and what to do about them.

use crate::text;
use std::{fmt, io};

/// Why an interface cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// Interfaces can be read only on Linux.
    Unsupported,
    /// The program lacks `CAP_NET_RAW`.
    NotPermitted,
    /// There is no such interface.
    NoSuch {
        /// The name of the interface.
        name: String,
    },
    /// The link type of its frames is not supported.
    Link {
        /// The interface.
        name: String,
        /// The kernel's number for its hardware.
        hardware: u16,
    },
    /// The ring is smaller than two blocks or larger than the kernel counts.
    Ring {
        /// The requested size in bytes.
        bytes: u64,
    },
    /// A system call failed.
    System {
        /// The call or the option that failed.
        what: &'static str,
        /// The system's error.
        why: io::Error,
    },
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::Unsupported => write!(f, "interfaces can be read on Linux only"),
            LiveError::NotPermitted => {
                let program = std::env::current_exe();
                let program = program.map_or("sidon".to_owned(), text::path);
                write!(
                    f,
                    "not permitted to read interfaces; either run as root, or once:\n  \
                     sudo setcap cap_net_raw=ep {program}"
                )
            }
            LiveError::NoSuch { name } => {
                write!(f, "no interface {name:?}; sidon watch -D lists them")
            }
            LiveError::Link { name, hardware } => {
                write!(
                    f,
                    "{}: frames of hardware type {hardware} are not decoded",
                    text::printable(name)
                )
            }
            LiveError::Ring { bytes } => {
                write!(f, "a ring of {bytes} bytes: it takes 512 KiB to 4 GiB")
            }
            LiveError::System { what, why } => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for LiveError {}
