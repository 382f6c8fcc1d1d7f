//! A strict reader of tar archives: it understands what `tar -czf` and the like write for plain files and folders, and
//! refuses everything else by name.
//!
//! Not a general tar library on purpose. Those repair, guess and support; here whatever two readers could read
//! differently is refused. It writes nothing: what it found goes to a [`Sink`].

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use thiserror::Error;

/// Bounds of an archive.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Packed size, in bytes.
    pub packed_bytes: u64,
    /// Sum of all files, in bytes.
    pub unpacked_bytes: u64,
    /// Files and folders.
    pub entries: u64,
    /// Folders above a file.
    pub depth: usize,
    /// How much more comes out than went in, once more than [`RATIO_FREE_BYTES`] came out.
    pub ratio: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            packed_bytes: 250 * 1024 * 1024,
            unpacked_bytes: 1024 * 1024 * 1024,
            entries: 20_000,
            depth: 32,
            ratio: 100,
        }
    }
}

/// Small archives of repetitive text reach any ratio.
const RATIO_FREE_BYTES: u64 = 16 * 1024 * 1024;
const PATH_BYTES_MAX: usize = 512;
const NAME_BYTES_MAX: usize = 200;
/// Of a PAX header or a GNU long name.
const EXTENSION_BYTES_MAX: u64 = 64 * 1024;
/// `tar` fills its last record with zeros, 10 KiB by default.
const PADDING_BYTES_MAX: u64 = 1024 * 1024;
const BLOCK: usize = 512;

/// Why an archive is refused. `path` is escaped for people.
#[derive(Debug, Error)]
pub enum TarError {
    /// Something about one entry.
    #[error("{path}: {reason}")]
    Entry {
        /// The entry's path, escaped and cut.
        path: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Something about the archive.
    #[error("{0}")]
    Archive(String),
    /// It cannot be read, or what was found cannot be written.
    #[error("the archive cannot be read or unpacked")]
    Io(#[from] io::Error),
}

/// Takes what was found, in the order of the archive. A folder comes before what is in it.
pub trait Sink {
    /// A folder, by its canonical path.
    fn folder(&mut self, path: &str) -> io::Result<()>;
    /// A file; all of `content` is to be read.
    fn file(&mut self, path: &str, executable: bool, content: &mut dyn Read) -> io::Result<()>;
}

/// What was found in sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Reads a whole gzipped archive.
///
/// # Errors
/// The first thing that is wrong. Whatever the sink was given up to then has to be thrown away.
pub fn read(
    packed: impl io::BufRead,
    bounds: Bounds,
    sink: &mut dyn Sink,
) -> Result<Totals, TarError> {
    let unzipped = Meter {
        inner: GzDecoder::new(packed),
        out: 0,
        over: bounds.unpacked_bytes + bounds.entries * 2 * BLOCK as u64 + PADDING_BYTES_MAX,
        ratio: bounds.ratio,
        packed: bounds.packed_bytes,
    };
    let mut reader = Reader {
        from: unzipped,
        bounds,
        seen: HashMap::new(),
        folded: HashSet::new(),
        totals: Totals::default(),
        entries: 0,
        sink,
    };
    reader.all()?;
    // The decoder stops behind the first member; `tar` would go on with a second one.
    let mut rest = reader.from.inner.into_inner();
    let mut byte = [0];
    if rest.read(&mut byte)? != 0 {
        return Err(TarError::Archive(
            "there are bytes behind the end of the gzip data; pack it again with tar -czf".into(),
        ));
    }
    Ok(reader.totals)
}

/// Bounds what comes out of the decoder, also where nothing is kept of it.
struct Meter<R> {
    inner: GzDecoder<R>,
    out: u64,
    over: u64,
    ratio: u64,
    packed: u64,
}

impl<R: io::BufRead> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.out += count as u64;
        let allowed = self.packed.saturating_mul(self.ratio).max(RATIO_FREE_BYTES);
        if self.out > self.over || self.out > allowed {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_MUCH));
        }
        Ok(count)
    }
}

const TOO_MUCH: &str = "it unpacks to more than is allowed";

struct Reader<'a, R> {
    from: Meter<R>,
    bounds: Bounds,
    /// Path to whether it is a folder.
    seen: HashMap<String, bool>,
    folded: HashSet<String>,
    totals: Totals,
    entries: u64,
    sink: &'a mut dyn Sink,
}

/// What PAX and GNU headers say about the next entry.
#[derive(Default)]
struct Ahead {
    path: Option<Vec<u8>>,
}

impl<R: io::BufRead> Reader<'_, R> {
    fn all(&mut self) -> Result<(), TarError> {
        let mut ahead = Ahead::default();
        while let Some(header) = self.header()? {
            let kind = header[156];
            match kind {
                b'x' => {
                    let text = self.extension(&header)?;
                    ahead.path = pax(&text, false)?.or(ahead.path);
                }
                b'g' => {
                    let text = self.extension(&header)?;
                    pax(&text, true)?;
                }
                b'L' => ahead.path = Some(self.long_name(&header)?),
                _ => self.entry(&header, std::mem::take(&mut ahead))?,
            }
        }
        if ahead.path.is_some() {
            return Err(TarError::Archive(
                "a long name stands at the end and belongs to no file".into(),
            ));
        }
        self.padding()
    }

    /// The next header; none at the end mark.
    fn header(&mut self) -> Result<Option<[u8; BLOCK]>, TarError> {
        let block = self.block()?;
        if block.iter().all(|b| *b == 0) {
            if self.block()?.iter().any(|b| *b != 0) {
                return Err(TarError::Archive(
                    "a block of zeros stands before the end".into(),
                ));
            }
            return Ok(None);
        }
        let stored = octal(&block[148..156])
            .ok_or_else(|| TarError::Archive("a header has no checksum".into()))?;
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(i, b)| {
                if (148..156).contains(&i) {
                    32
                } else {
                    u64::from(*b)
                }
            })
            .sum();
        if stored != sum {
            return Err(TarError::Archive("a header has a wrong checksum".into()));
        }
        if &block[257..262] != b"ustar" {
            return Err(TarError::Archive(
                "it is in a format older than POSIX tar; pack it with GNU or BSD tar".into(),
            ));
        }
        Ok(Some(block))
    }

    fn block(&mut self) -> Result<[u8; BLOCK], TarError> {
        let mut block = [0; BLOCK];
        self.exact(&mut block)?;
        Ok(block)
    }

    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), TarError> {
        self.from.read_exact(buffer).map_err(readable)
    }

    fn padding(&mut self) -> Result<(), TarError> {
        let mut buffer = [0; 4096];
        let mut count = 0;
        loop {
            let n = self.from.read(&mut buffer).map_err(readable)?;
            if n == 0 {
                return Ok(());
            }
            count += n as u64;
            if buffer[..n].iter().any(|b| *b != 0) || count > PADDING_BYTES_MAX {
                return Err(TarError::Archive(
                    "there is something behind the end of the archive".into(),
                ));
            }
        }
    }

    fn size(&self, header: &[u8; BLOCK]) -> Result<u64, TarError> {
        octal(&header[124..136])
            .ok_or_else(|| TarError::Archive("a header has no plain size".into()))
    }

    fn extension(&mut self, header: &[u8; BLOCK]) -> Result<Vec<u8>, TarError> {
        let size = self.size(header)?;
        self.entries += 1;
        if size > EXTENSION_BYTES_MAX || self.entries > self.bounds.entries * 2 {
            return Err(TarError::Archive(
                "an extended header is too long, or there are too many".into(),
            ));
        }
        let mut text = vec![0; size as usize];
        self.exact(&mut text)?;
        self.skip_to_block(size)?;
        Ok(text)
    }

    fn long_name(&mut self, header: &[u8; BLOCK]) -> Result<Vec<u8>, TarError> {
        let mut text = self.extension(header)?;
        if text.pop() != Some(0) || text.contains(&0) {
            return Err(TarError::Archive(
                "a long name does not end as it must".into(),
            ));
        }
        Ok(text)
    }

    fn skip_to_block(&mut self, size: u64) -> Result<(), TarError> {
        let rest = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        let mut block = [0; BLOCK];
        self.exact(&mut block[..rest as usize])
    }

    fn entry(&mut self, header: &[u8; BLOCK], ahead: Ahead) -> Result<(), TarError> {
        let raw = ahead.path.unwrap_or_else(|| header_path(header));
        let shown = shown(&raw);
        let refuse = |reason: &str| TarError::Entry {
            path: shown.clone(),
            reason: reason.to_owned(),
        };
        self.entries += 1;
        if self.entries > self.bounds.entries {
            return Err(TarError::Archive(format!(
                "it has more than {} entries",
                self.bounds.entries
            )));
        }
        let folder = match header[156] {
            b'5' => true,
            b'0' | 0 => false,
            kind => return Err(refuse(kind_reason(kind))),
        };
        let mode =
            octal(&header[100..108]).ok_or_else(|| refuse("its mode is not a plain number"))?;
        if mode & 0o7000 & !if folder { 0o3000 } else { 0 } != 0 {
            return Err(refuse(
                "it is set-uid, set-gid or sticky; take those bits off",
            ));
        }
        let size = self.size(header)?;
        let path = canonical(&raw, folder, self.bounds.depth).map_err(|reason| refuse(&reason))?;
        if folder {
            if size != 0 {
                return Err(refuse("it is a folder with content"));
            }
            // "./" is the root itself.
            return if path.is_empty() {
                Ok(())
            } else {
                self.folder(&path).map_err(|r| r.or(refuse))
            };
        }
        if self.totals.bytes + size > self.bounds.unpacked_bytes {
            return Err(TarError::Archive(format!(
                "it {}: {} MiB",
                &TOO_MUCH[3..],
                self.bounds.unpacked_bytes >> 20
            )));
        }
        self.file(&path, size, mode & 0o111 != 0)
            .map_err(|r| r.or(refuse))
    }

    fn folder(&mut self, path: &str) -> Result<(), Bad> {
        match self.seen.get(path) {
            // Made for a file in it before, or said twice: `tar` does both.
            Some(true) => Ok(()),
            Some(false) => Err(Bad::Reason(
                "it is a file in one place and a folder in another",
            )),
            None => {
                self.parents(path)?;
                self.add(path, true)?;
                Ok(self.sink.folder(path)?)
            }
        }
    }

    fn file(&mut self, path: &str, size: u64, executable: bool) -> Result<(), Bad> {
        if self.seen.contains_key(path) {
            return Err(Bad::Reason("it is there twice"));
        }
        self.parents(path)?;
        self.add(path, false)?;
        let mut content = (&mut self.from).take(size);
        self.sink.file(path, executable, &mut content)?;
        // A sink that reads less would shift everything behind.
        if content.limit() != 0 {
            return Err(Bad::Tar(TarError::Archive(
                "it ends in the middle of a file".into(),
            )));
        }
        self.totals.files += 1;
        self.totals.bytes += size;
        Ok(self.skip_to_block(size)?)
    }

    fn parents(&mut self, path: &str) -> Result<(), Bad> {
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        for end in ends {
            let parent = &path[..end];
            match self.seen.get(parent) {
                Some(true) => {}
                Some(false) => return Err(Bad::Reason("a file stands where its folder should be")),
                None => {
                    self.add(parent, true)?;
                    self.sink.folder(parent)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, folder: bool) -> Result<(), Bad> {
        if self.seen.len() as u64 >= self.bounds.entries {
            return Err(Bad::Reason("there are too many files and folders"));
        }
        if !self.folded.insert(path.to_lowercase()) {
            return Err(Bad::Reason(
                "its name differs from another one only in upper and lower case",
            ));
        }
        self.seen.insert(path.to_owned(), folder);
        Ok(())
    }
}

/// What is wrong with an entry whose path the caller knows.
enum Bad {
    Reason(&'static str),
    Tar(TarError),
}

impl Bad {
    fn or(self, refuse: impl Fn(&str) -> TarError) -> TarError {
        match self {
            Self::Reason(reason) => refuse(reason),
            Self::Tar(error) => error,
        }
    }
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Self::Tar(readable(error))
    }
}

impl From<TarError> for Bad {
    fn from(error: TarError) -> Self {
        Self::Tar(error)
    }
}

fn readable(error: io::Error) -> TarError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            TarError::Archive("it ends in the middle; was it cut off?".into())
        }
        io::ErrorKind::FileTooLarge => TarError::Archive(TOO_MUCH.into()),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            TarError::Archive("it is not gzip, or it is damaged; pack it with tar -czf".into())
        }
        _ => TarError::Io(error),
    }
}

/// Digits with spaces or NULs around them; nothing else, no base-256.
fn octal(field: &[u8]) -> Option<u64> {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    if field[end..].iter().any(|b| *b != 0 && *b != b' ') {
        return None;
    }
    let text = std::str::from_utf8(&field[..end]).ok()?.trim_matches(' ');
    if text.is_empty() || !text.bytes().all(|b| (b'0'..=b'7').contains(&b)) {
        return None;
    }
    u64::from_str_radix(text, 8).ok()
}

fn header_path(header: &[u8; BLOCK]) -> Vec<u8> {
    let until_nul = |field: &[u8]| field.split(|b| *b == 0).next().unwrap_or_default().to_vec();
    let name = until_nul(&header[..100]);
    // Only POSIX has a prefix here; GNU keeps times in its place.
    if &header[257..265] != b"ustar\x0000" {
        return name;
    }
    let mut prefix = until_nul(&header[345..500]);
    if prefix.is_empty() {
        return name;
    }
    prefix.push(b'/');
    prefix.extend(name);
    prefix
}

/// Reads PAX records; gives a path, refuses all that would change what an entry is.
fn pax(text: &[u8], global: bool) -> Result<Option<Vec<u8>>, TarError> {
    let bad = || TarError::Archive("an extended header is malformed".into());
    let mut path = None;
    let mut rest = text;
    while !rest.is_empty() {
        let space = rest.iter().position(|b| *b == b' ').ok_or_else(bad)?;
        let digits = &rest[..space];
        if digits.is_empty()
            || digits.len() > 6
            || digits[0] == b'0'
            || !digits.iter().all(u8::is_ascii_digit)
        {
            return Err(bad());
        }
        let len: usize = std::str::from_utf8(digits)
            .ok()
            .and_then(|t| t.parse().ok())
            .ok_or_else(bad)?;
        if len <= space + 1 || len > rest.len() || rest[len - 1] != b'\n' {
            return Err(bad());
        }
        let record = &rest[space + 1..len - 1];
        rest = &rest[len..];
        let equals = record.iter().position(|b| *b == b'=').ok_or_else(bad)?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" if !global && path.is_none() => path = Some(value.to_vec()),
            // Nothing here reads these.
            b"mtime" | b"atime" | b"ctime" | b"uid" | b"gid" | b"uname" | b"gname" | b"comment" => {
            }
            key if key.starts_with(b"LIBARCHIVE.") || key.starts_with(b"SCHILY.") => {}
            key => {
                let key = shown(key);
                return Err(TarError::Archive(format!(
                    "an extended header sets {key}, which is not taken"
                )));
            }
        }
    }
    Ok(path)
}

fn kind_reason(kind: u8) -> &'static str {
    match kind {
        b'1' => "it is a hard link; only files and folders are taken (tar: --hard-dereference)",
        b'2' => "it is a symbolic link; only files and folders are taken (tar: --dereference)",
        b'3' | b'4' => "it is a device",
        b'6' => "it is a fifo",
        b'S' => "it is a sparse file",
        _ => "it is neither a file nor a folder",
    }
}

/// The one spelling of a path, or why there is none.
fn canonical(raw: &[u8], folder: bool, depth: usize) -> Result<String, String> {
    let text = std::str::from_utf8(raw).map_err(|_| "its name is not UTF-8")?;
    let text = text.strip_prefix("./").unwrap_or(text);
    let text = if folder {
        text.strip_suffix('/').unwrap_or(text)
    } else {
        text
    };
    if folder && (text.is_empty() || text == ".") {
        return Ok(String::new());
    }
    if text.len() > PATH_BYTES_MAX {
        return Err(format!("its path is longer than {PATH_BYTES_MAX} bytes"));
    }
    if text.starts_with('/') {
        return Err("its path is absolute".into());
    }
    for name in text.split('/') {
        component(name)?;
    }
    if text.matches('/').count() >= depth {
        return Err(format!("it is more than {depth} folders deep"));
    }
    Ok(text.to_owned())
}

fn component(name: &str) -> Result<(), String> {
    let reason = match name {
        "" => "its path has an empty part",
        "." | ".." => "its path has a part '.' or '..'",
        _ if name.len() > NAME_BYTES_MAX => "a part of its path is longer than 200 bytes",
        _ if name.chars().any(char::is_control) => "its name has control characters",
        _ if name.contains('\\') => "its name has a backslash",
        _ if name.chars().any(is_tricky) => {
            "its name has combining, invisible or direction characters; write it in plain ones"
        }
        _ if name.ends_with(['.', ' ']) || name.starts_with(' ') => {
            "a part of its path begins with a space or ends with a space or dot"
        }
        _ => return Ok(()),
    };
    Err(reason.to_owned())
}

/// Decomposed letters (one name, two spellings) and what cannot be seen.
fn is_tricky(c: char) -> bool {
    matches!(u32::from(c),
        0x300..=0x36f | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f
        | 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff0..=0xffff | 0xe0000..=0xe0fff)
}

/// A path for people: escaped, at most 120 characters.
fn shown(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw)
        .chars()
        .take(120)
        .flat_map(char::escape_default)
        .collect()
}
