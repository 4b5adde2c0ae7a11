//! Reads a file or standard input, and decompresses it by the format of its first bytes.
//!
//! Magic numbers identify gzip, zstd and lz4 frames. Frames may follow one another, and their
//! checksums are verified. The decompressors are pure Rust and hold one window each. A decompressor
//! reads on until it has a byte, so bytes that decompress to nothing have a limit ([`EMPTY_MAX`]).

use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Frame;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder as ZstdFrame};
use std::{
    io::{self, BufRead, BufReader, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Any stream of bytes that can be handed to another thread.
pub(super) type Bytes = Box<dyn Read + Send>;

/// How the input is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    Plain,
    /// gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
    /// The lz4 frame format, one frame or several.
    Lz4,
}

/// The end of a Zstandard frame: an empty last block, and a checksum that is not read.
const ZSTD_END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
/// The most bytes of a Zstandard window: the limit of the command `zstd`.
const ZSTD_WINDOW_MAX: u64 = 128 << 20;
/// The start of a Zstandard frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A damaged Zstandard block adds fewer bytes than this before the decoder refuses it: 1 MiB of
/// literals, and matches of 256 KiB.
const ZSTD_DAMAGED: u64 = 3 << 19;
/// Bytes read from a compressed file at a time.
const CHUNK: usize = 64 << 10;
/// The most bytes of a compressed file in a row that decompress to nothing, such as empty gzip members
/// and skippable zstd frames. As many as the reader of pcapng skips before it returns.
pub(super) const EMPTY_MAX: u64 = 16 << 20;

/// Counters of the bytes of a file.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Bytes read so far.
    pub(super) bytes: AtomicU64,
    /// Bytes read when the decompressor last decoded a byte.
    useful: AtomicU64,
}

impl Taken {
    /// The decompressor has decoded bytes.
    pub(super) fn was_useful(&self) {
        self.useful.store(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether too many bytes have decompressed to nothing.
    pub(super) fn is_empty(&self) -> bool {
        let [bytes, useful] = [&self.bytes, &self.useful].map(|one| one.load(Ordering::Relaxed));
        bytes.saturating_sub(useful) > EMPTY_MAX
    }
}

/// The decompressed stream, its compression, and counters of the input.
pub(super) fn open(input: Bytes) -> io::Result<(Bytes, Compression, Arc<Taken>)> {
    let taken = Arc::new(Taken::default());
    let mut input = Counted { input, taken: Arc::clone(&taken) };
    let mut start = [0; 4];
    let got = read_full(&mut input, &mut start)?;
    let head = io::Cursor::new(start).take(got as u64);
    let compression = match start {
        [0x1f, 0x8b, ..] if got >= 2 => Compression::Gzip,
        ZSTD_MAGIC => Compression::Zstd,
        [nibble, 0x2a, 0x4d, 0x18] if nibble >> 4 == 5 => Compression::Zstd,
        [0x04, 0x22, 0x4d, 0x18] => Compression::Lz4,
        _ => Compression::Plain,
    };
    let whole = head.chain(input);
    let bytes: Bytes = match compression {
        Compression::Plain => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole))),
        Compression::Zstd => {
            Box::new(Zstd::new(BufReader::with_capacity(CHUNK, whole), Arc::clone(&taken))?)
        }
        Compression::Lz4 => Box::new(Lz4::new(BufReader::with_capacity(CHUNK, whole))),
    };
    Ok((bytes, compression, taken))
}

/// Counts the bytes that are read.
struct Counted {
    input: Bytes,
    taken: Arc<Taken>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken.is_empty() {
            return Err(io::Error::other("a compressed file without content"));
        }
        let got = self.input.read(buffer)?;
        self.taken.bytes.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// Reads until the buffer is full or the input ends, and returns the number of bytes.
pub(super) fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(got)
}

/// lz4 frames, one after the other.
struct Lz4<R: Read>(Lz4Frame<Noticed<R>>);

impl<R: BufRead> Lz4<R> {
    fn new(input: R) -> Self {
        Lz4(Lz4Frame::new(Noticed { input, ended: false }))
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A read of 0 bytes is the end of a frame, which may be empty. The next read enters the next
        // frame.
        loop {
            let got = self.0.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let Noticed { input, ended } = self.0.get_mut();
            // The decoder reads no byte after the mark at a frame's end. Without the mark, it takes the
            // end of the input for the end of the frame.
            if *ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
        }
    }
}

/// Records whether its reader has reached the end of the input.
struct Noticed<R> {
    input: R,
    ended: bool,
}

impl<R: Read> Read for Noticed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.ended |= got == 0 && !buffer.is_empty();
        Ok(got)
    }
}

/// Zstandard frames, one after the other, without skippable frames.
struct Zstd<R> {
    input: Noticed<R>,
    frame: ZstdFrame,
    inside: bool,
    /// Whether the input ends within the frame.
    is_cut: bool,
    /// The largest window so far. The decoder keeps the memory for it.
    window: u64,
    taken: Arc<Taken>,
}

impl<R: Read> Zstd<R> {
    fn new(input: R, taken: Arc<Taken>) -> io::Result<Self> {
        let mut frame = ZstdFrame::new();
        frame.set_max_window_size(ZSTD_WINDOW_MAX);
        // The decoder grows its buffer in the first frame, and reserves the window at the start of
        // all others. A first frame with a window of 1 KiB makes the first one of the file such a one.
        let small = [&ZSTD_MAGIC[..], &[0, 0]].concat();
        frame.init(small.as_slice()).map_err(io::Error::other)?;
        let input = Noticed { input, ended: false };
        Ok(Zstd { input, frame, inside: false, is_cut: false, window: 0, taken })
    }

    /// Enters the next frame. `false` at the end of the input.
    fn enter(&mut self) -> io::Result<bool> {
        loop {
            let mut magic = [0; 4];
            match read_full(&mut self.input, &mut magic)? {
                0 => return Ok(false),
                4 => {}
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            if magic[0] >> 4 == 5 && magic[1..] == [0x2a, 0x4d, 0x18] {
                let mut length = [0; 4];
                self.input.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut (&mut self.input).take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            let mut header = magic.to_vec();
            if magic == ZSTD_MAGIC {
                let window = read_header(&mut self.input, &mut header)?;
                // The decoder itself refuses a larger window.
                if window > self.window && window <= ZSTD_WINDOW_MAX {
                    reserve(window)?;
                    self.window = window;
                }
            }
            self.frame.init(header.as_slice()).map_err(io::Error::other)?;
            self.inside = true;
            return Ok(true);
        }
    }
}

/// Appends the header of a Zstandard frame, without its magic number, and returns the bytes of the
/// window.
fn read_header(input: &mut impl Read, header: &mut Vec<u8>) -> io::Result<u64> {
    let mut next = |length: usize| {
        let mut field = [0; 8];
        input.read_exact(&mut field[..length])?;
        header.extend(&field[..length]);
        io::Result::Ok(u64::from_le_bytes(field))
    };
    let descriptor = next(1)?;
    let is_single = descriptor & 0x20 != 0;
    let window = if is_single { 0 } else { next(1)? };
    next([0, 1, 2, 4][(descriptor & 3) as usize])?;
    let size_length = [usize::from(is_single), 2, 4, 8][(descriptor >> 6) as usize];
    let size = next(size_length)?.saturating_add(if size_length == 2 { 256 } else { 0 });
    // Five bits of the exponent, and three bits of eighths.
    Ok(if is_single { size } else { (8 + (window & 7)) << (window >> 3) << 7 })
}

/// Checks that the decoder can allocate its buffer for this window. The decoder panics if it cannot.
fn reserve(window: u64) -> io::Result<()> {
    let needed = zstd_memory(window);
    let mut probe = Vec::<u8>::new();
    let reserved = probe.try_reserve_exact(usize::try_from(needed).unwrap_or(usize::MAX));
    // The compiler may remove an allocation that nothing uses.
    std::hint::black_box(&probe);
    if reserved.is_ok() {
        return Ok(());
    }
    let message = format!(
        "a zstd window of {} MiB needs {} MiB of memory, which the system refuses; decompress it \
         with another program first",
        window.div_ceil(1 << 20),
        needed.div_ceil(1 << 20)
    );
    Err(io::Error::new(io::ErrorKind::OutOfMemory, message))
}

/// The most bytes that the decoder allocates for this window: a ring, and a larger one while a
/// damaged block makes it grow.
fn zstd_memory(window: u64) -> u64 {
    // As in ruzstd: a power of two, two blocks of 128 KiB, and a byte that stays free.
    let ring = |bytes: u64| {
        let slack = 256 << 10;
        (bytes + 1).saturating_sub(slack).next_power_of_two() + slack + 1
    };
    let [usual, damaged] = [window, window + ZSTD_DAMAGED].map(ring);
    if damaged > usual { usual + damaged } else { usual }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.enter()? {
                return Ok(0);
            }
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                // Decodes one block, and any empty blocks before it. The decoder keeps the last
                // window back until the frame ends, so the block counts before it is returned.
                let one = BlockDecodingStrategy::UptoBytes(1);
                match self.frame.decode_blocks(&mut self.input, one) {
                    Ok(false) => self.taken.was_useful(),
                    Ok(true) => {}
                    // The decoder returns its last window at the end of the frame.
                    Err(_) if self.input.ended && !self.is_cut => {
                        self.is_cut = true;
                        let all = BlockDecodingStrategy::All;
                        self.frame.decode_blocks(&ZSTD_END[..], all).map_err(io::Error::other)?;
                    }
                    Err(why) => return Err(io::Error::other(why)),
                }
            }
            let got = self.frame.read(buffer)?;
            if got > 0 {
                return Ok(got);
            }
            if self.is_cut {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (stored, found) =
                (self.frame.get_checksum_from_data(), self.frame.get_calculated_checksum());
            if stored.is_some() && stored != found {
                return Err(io::Error::other("the frame's checksum does not fit"));
            }
            self.inside = false;
        }
    }
}
