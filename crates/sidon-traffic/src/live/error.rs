//! Why an interface cannot be read, and what to do about it.

use std::{fmt, io};

/// Why an interface cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiveError {
    /// Interfaces are read on Linux alone.
    Unsupported,
    /// The program lacks `CAP_NET_RAW`.
    NotPermitted,
    /// There is no such interface.
    NoSuch {
        /// The name that was asked for.
        name: String,
    },
    /// What its frames begin with is not known here.
    Link {
        /// The interface.
        name: String,
        /// The kernel's number for its hardware.
        hardware: u16,
    },
    /// The ring is smaller than two blocks or larger than the kernel counts.
    Ring {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// The system said no.
    System {
        /// To what.
        what: &'static str,
        /// In its words.
        why: io::Error,
    },
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::Unsupported => write!(f, "interfaces can be read on Linux only"),
            LiveError::NotPermitted => {
                let program = std::env::current_exe();
                let program = program.map_or("sidon".to_owned(), |path| path.display().to_string());
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
                write!(f, "{name}: frames of hardware type {hardware} are not decoded")
            }
            LiveError::Ring { bytes } => {
                write!(f, "a ring of {bytes} bytes: it takes 512 KiB to 4 GiB")
            }
            LiveError::System { what, why } => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for LiveError {}
