//! The ring itself: system calls and shared memory, inside five safe functions.
#![allow(unsafe_code)]

use super::{Interface, LiveError, Options, link};
use std::{
    ffi::{CStr, CString, c_int, c_void},
    io,
    mem::{offset_of, size_of, zeroed},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// Bytes of a block: several of the largest frames.
const BLOCK: u32 = 1 << 18;
/// Milliseconds after which the kernel hands over a block that is not full.
const RETIRE: u32 = 60;
/// Bytes of a VLAN tag, kept free before every frame.
const TAG: usize = 4;
/// Bytes of the two hardware addresses before the tag.
const ADDRESSES: usize = 12;

/// The position of a frame in the ring, valid until the next call of `next`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    at: usize,
    length: usize,
    pub(super) time_ns: u64,
    pub(super) wire_len: u32,
    pub(super) outgoing: bool,
}

/// A socket and the memory it shares with the kernel.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    map: NonNull<u8>,
    bytes: usize,
    /// The block that is being read, or will be next.
    block: usize,
    /// Whether this process owns the block.
    ours: bool,
    /// Unread frames of the block, and the position of the next one.
    left: u32,
    at: usize,
}

// SAFETY: this value alone owns the map. Access needs `&mut self` or borrows from `&self`, and no
// part of the map is tied to a thread.
unsafe impl Send for Ring {}

/// The error of the last system call.
fn failed(what: &'static str) -> LiveError {
    let why = io::Error::last_os_error();
    if why.kind() == io::ErrorKind::PermissionDenied {
        return LiveError::NotPermitted;
    }
    LiveError::System { what, why }
}

fn set<T>(socket: &impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which lives through the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            length,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets a socket's receive buffer to `bytes` bytes, or to the most that the system allows.
pub(crate) fn widen(socket: &impl AsFd, bytes: u32) {
    for name in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // `SO_RCVBUFFORCE` may exceed the system's limit, but needs a capability.
        if set(socket, libc::SOL_SOCKET, name, &(bytes as c_int)).is_ok() {
            return;
        }
    }
}

/// A socket for queries about interfaces: any kind works, and this kind needs no privilege.
fn asking() -> Result<OwnedFd, LiveError> {
    // SAFETY: no memory is handed over.
    let number = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if number < 0 {
        return Err(failed("socket"));
    }
    // SAFETY: the call above made this descriptor, and only this code holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn request(name: &CStr) -> Option<libc::ifreq> {
    // SAFETY: all of its fields are numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let bytes = name.to_bytes();
    if bytes.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Some(request)
}

/// The hardware type of an interface, and whether it is up.
fn about(socket: &OwnedFd, name: &CStr) -> Option<(u16, bool)> {
    let mut hardware = request(name)?;
    let mut flags = hardware;
    for (number, request) in
        [(libc::SIOCGIFHWADDR, &mut hardware), (libc::SIOCGIFFLAGS, &mut flags)]
    {
        // SAFETY: these two requests read the name of an `ifreq` and write into the same.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, ptr::from_mut(request)) };
        if done != 0 {
            return None;
        }
    }
    // SAFETY: the kernel has filled in these fields, as the requests say.
    let (hardware, flags) =
        unsafe { (hardware.ifr_ifru.ifru_hwaddr.sa_family, flags.ifr_ifru.ifru_flags) };
    Some((hardware, c_int::from(flags) & libc::IFF_UP != 0))
}

/// The interfaces of this machine.
pub(super) fn interfaces() -> Result<Vec<Interface>, LiveError> {
    let socket = asking()?;
    // SAFETY: no memory is handed over; the list is freed below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(failed("if_nameindex"));
    }
    let mut all = Vec::new();
    let mut entry = list;
    // SAFETY: the list ends with an entry of index 0, and each name before that is a C string.
    while let libc::if_nameindex { if_index: index @ 1.., if_name } = unsafe { *entry } {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(if_name) };
        let about = about(&socket, name);
        all.push(Interface {
            index,
            name: name.to_string_lossy().into_owned(),
            link: about.and_then(|(hardware, _)| link(hardware)),
            up: about.is_some_and(|(_, up)| up),
        });
        // SAFETY: this was not the last entry.
        entry = unsafe { entry.add(1) };
    }
    // SAFETY: `if_nameindex` returned `list`, which is not used again.
    unsafe { libc::if_freenameindex(list) };
    Ok(all)
}

impl Ring {
    /// The ring of an interface and the kernel's number for its hardware.
    pub(super) fn open(name: &str, options: Options) -> Result<(Self, u16), LiveError> {
        let missing = || LiveError::NoSuch { name: name.to_owned() };
        let c_name = CString::new(name).map_err(|_| missing())?;
        let blocks = u32::try_from(options.ring / u64::from(BLOCK)).unwrap_or(0);
        let bytes = (blocks as usize).checked_mul(BLOCK as usize);
        let Some(bytes) = bytes.filter(|_| (2..1 << 14).contains(&blocks)) else {
            return Err(LiveError::Ring { bytes: options.ring });
        };
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is handed over. Protocol 0: nothing comes before it is bound.
        let number = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if number < 0 {
            return Err(failed("socket"));
        }
        // SAFETY: the call above made this descriptor, and only this code holds it.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        // SAFETY: the name is a C string that lives through the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        let (hardware, _) = about(&socket, &c_name).filter(|_| index != 0).ok_or_else(missing)?;

        let option =
            |what, done: io::Result<()>| done.map_err(|why| LiveError::System { what, why });
        let packet = libc::SOL_PACKET;
        let version: c_int = libc::tpacket_versions::TPACKET_V3 as c_int;
        option("PACKET_VERSION", set(&socket, packet, libc::PACKET_VERSION, &version))?;
        option("PACKET_RESERVE", set(&socket, packet, libc::PACKET_RESERVE, &(TAG as c_int)))?;
        // A filter of one instruction: keep the first `snap` bytes of every frame.
        let code = (libc::BPF_RET | libc::BPF_K) as u16;
        let mut keep = libc::sock_filter { code, jt: 0, jf: 0, k: options.snap };
        let filter = libc::sock_fprog { len: 1, filter: &raw mut keep };
        option("filter", set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter))?;
        let ring = libc::tpacket_req3 {
            tp_block_size: BLOCK,
            tp_block_nr: blocks,
            tp_frame_size: 1 << 11,
            tp_frame_nr: blocks * (BLOCK >> 11),
            tp_retire_blk_tov: RETIRE,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        option("PACKET_RX_RING", set(&socket, packet, libc::PACKET_RX_RING, &ring))?;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of the ring's own size; no memory of ours is touched.
        let map =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, shared, socket.as_raw_fd(), 0) };
        let map = NonNull::new(map.cast()).filter(|_| map != libc::MAP_FAILED);
        let map = map.ok_or_else(|| failed("mmap"))?;
        // After this line, `Drop` unmaps the ring.
        let ring = Ring { socket, map, bytes, block: 0, ours: false, left: 0, at: 0 };

        if options.promiscuous {
            let member = libc::packet_mreq {
                mr_ifindex: index as c_int,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            let done = set(&ring.socket, packet, libc::PACKET_ADD_MEMBERSHIP, &member);
            option("PACKET_ADD_MEMBERSHIP", done)?;
        }
        // SAFETY: all of its fields are numbers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as c_int;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads `length` bytes of `address`, which lives through the call.
        let bound =
            unsafe { libc::bind(ring.socket.as_raw_fd(), (&raw const address).cast(), length) };
        if bound != 0 {
            return Err(failed("bind"));
        }
        Ok((ring, hardware))
    }

    /// The next frame; `None` if no frame arrives within `wait`, or if a signal interrupts.
    #[inline]
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Option<Slot>> {
        while self.left == 0 {
            if self.ours {
                self.give_back();
            }
            if !self.take() {
                if !self.poll(wait)? {
                    return Ok(None);
                }
                if !self.take() {
                    return Ok(None);
                }
            }
        }
        self.step().map(Some)
    }

    /// The bytes of a frame that [`Ring::next`] found last.
    #[inline]
    pub(super) fn bytes(&self, slot: &Slot) -> &[u8] {
        debug_assert!(self.ours && slot.at + slot.length <= self.bytes);
        // SAFETY: `step` checked that the bytes are inside the block. This process owns the block
        // until `next` is called, which takes `&mut self`: the kernel does not write there before.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(slot.at), slot.length) }
    }

    /// The status word of the current block, which both sides write.
    fn status(&self) -> &AtomicU32 {
        let at = self.block * BLOCK as usize
            + offset_of!(libc::tpacket_block_desc, hdr)
            + offset_of!(libc::tpacket_hdr_v1, block_status);
        // SAFETY: within the map, aligned to 4 as blocks are to pages, and shared as atomics are.
        unsafe { AtomicU32::from_ptr(self.map.as_ptr().add(at).cast()) }
    }

    /// Takes the current block, if the kernel has handed it over.
    #[inline]
    fn take(&mut self) -> bool {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let start = self.block * BLOCK as usize;
        let at = start + offset_of!(libc::tpacket_block_desc, hdr);
        // SAFETY: within the map, aligned as blocks are; the kernel wrote it before the status that
        // was acquired above.
        let header = unsafe { self.map.as_ptr().add(at).cast::<libc::tpacket_hdr_v1>().read() };
        self.ours = true;
        self.left = header.num_pkts;
        self.at = start + header.offset_to_first_pkt as usize;
        true
    }

    /// Gives the current block back to the kernel, and moves on to the next.
    fn give_back(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ours = false;
        self.block += 1;
        if self.block * BLOCK as usize == self.bytes {
            self.block = 0;
        }
    }

    /// Reads the header of the next frame of the current block.
    #[inline]
    fn step(&mut self) -> io::Result<Slot> {
        let end = (self.block + 1) * BLOCK as usize;
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the ring is damaged");
        let aligned = |length: usize| length.next_multiple_of(16);
        let sender_at = self.at + aligned(size_of::<libc::tpacket3_hdr>());
        if !self.at.is_multiple_of(8) || sender_at + size_of::<libc::sockaddr_ll>() > end {
            return Err(broken());
        }
        // SAFETY: inside the block, which this process owns, and aligned: both were checked above.
        let (header, sender) = unsafe {
            let map = self.map.as_ptr();
            let header = map.add(self.at).cast::<libc::tpacket3_hdr>().read();
            (header, map.add(sender_at).cast::<libc::sockaddr_ll>().read())
        };
        let mut at = self.at + usize::from(header.tp_mac);
        let mut length = header.tp_snaplen as usize;
        if at.saturating_add(length) > end {
            return Err(broken());
        }
        self.left -= 1;
        self.at += header.tp_next_offset as usize;
        let mut wire_len = header.tp_len;
        let room = at >= sender_at + size_of::<libc::sockaddr_ll>() + TAG;
        if header.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && room && length >= ADDRESSES {
            // The kernel removed the VLAN tag; put it back, into the reserved bytes before the
            // frame.
            let kind = if header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                header.hv1.tp_vlan_tpid
            } else {
                libc::ETH_P_8021Q as u16
            };
            let mut tag = [0; TAG];
            tag[..2].copy_from_slice(&kind.to_be_bytes());
            tag[2..].copy_from_slice(&(header.hv1.tp_vlan_tci as u16).to_be_bytes());
            // SAFETY: `PACKET_RESERVE` left room for a tag between the header and the frame, and
            // `room` checks it. All of it is inside the block, which this process owns. `&mut self`
            // excludes borrowed slices.
            unsafe {
                let frame = self.map.as_ptr().add(at);
                ptr::copy(frame, frame.sub(TAG), ADDRESSES);
                ptr::copy_nonoverlapping(tag.as_ptr(), frame.add(ADDRESSES - TAG), TAG);
            }
            at -= TAG;
            length += TAG;
            wire_len = wire_len.saturating_add(TAG as u32);
        }
        Ok(Slot {
            at,
            length,
            time_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            wire_len,
            outgoing: sender.sll_pkttype == libc::PACKET_OUTGOING,
        })
    }

    /// Waits for the kernel. Returns whether there is something to read.
    fn poll(&self, wait: Duration) -> io::Result<bool> {
        let mut what =
            libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait = c_int::try_from(wait.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: one `pollfd`, which lives through the call.
        let ready = unsafe { libc::poll(&raw mut what, 1, wait) };
        if ready < 0 {
            let why = io::Error::last_os_error();
            return if why.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(why) };
        }
        if what.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
            let mut error: c_int = 0;
            self.ask(libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
            return Err(if error == 0 {
                io::Error::other("the interface went away")
            } else {
                io::Error::from_raw_os_error(error)
            });
        }
        Ok(ready > 0)
    }

    fn ask<T: Copy>(&self, level: c_int, name: c_int, value: &mut T) -> io::Result<()> {
        let mut length = size_of::<T>() as libc::socklen_t;
        let (socket, value): (c_int, *mut c_void) =
            (self.socket.as_raw_fd(), ptr::from_mut(value).cast());
        // SAFETY: the kernel writes at most `length` bytes, the size of `value`. All callers pass
        // numbers or structures of numbers.
        let done = unsafe { libc::getsockopt(socket, level, name, value, &raw mut length) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Frames that the kernel saw, and how many of them it dropped, since the last call.
    pub(super) fn statistics(&self) -> io::Result<[u32; 2]> {
        let mut since = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        self.ask(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut since)?;
        Ok([since.tp_packets, since.tp_drops])
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this size; nobody borrows from a value that is dropped.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.bytes) };
    }
}
