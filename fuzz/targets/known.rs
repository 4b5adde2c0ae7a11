//! Files of known addresses: read, and extended without a change of the bytes they have.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidon_traffic::{
    files::memory::Memory,
    known::{self, Seen},
};
use std::{
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

fuzz_target!(init: sidon_fuzz::plant(seeds), |bytes: &[u8]| {
    let path = Path::new("known");
    let disk = Memory::default();
    disk.put("known", bytes);
    let read: Result<Vec<IpAddr>, _> = known::read(&disk, path).expect("a file").collect();
    let new: Vec<IpAddr> = (0..4).map(|i| Ipv4Addr::new(192, 0, 2, i).into()).collect();
    let added = known::add(&disk, path, &mut new.iter().copied().collect::<Seen>());
    let mut all = disk.all();
    let after = all.remove("known").expect("the file stays");
    assert!(all.is_empty(), "a temporary file is left");
    let (Ok(read), Ok(added)) = (read, added) else {
        assert_eq!(after, bytes, "a file that is refused was changed");
        return;
    };
    assert!(after.starts_with(bytes), "the user's bytes were changed");
    let again: Result<Vec<IpAddr>, _> = known::read(&disk, path).expect("a file").collect();
    let again = again.expect("what was added can be read");
    let missing: Vec<IpAddr> = new.into_iter().filter(|one| !read.contains(one)).collect();
    assert_eq!(added, missing.len() as u64);
    assert_eq!(again, [read, missing].concat());
});

fn seeds() -> Vec<Vec<u8>> {
    [
        "",
        "# branch office\n192.0.2.1     # the printer\n2001:db8::7\n198.51.100.9\n",
        "192.0.2.1\r\n::ffff:192.0.2.3\r\n::\r\n0.0.0.0",
        "\u{feff}192.0.2.2\n\n  fe80::1  \n#\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
