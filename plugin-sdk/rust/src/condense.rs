//! The SDK for providers of condense that are modules of WebAssembly. It needs no crate: the messages of condense.proto, of which
//! plugin-sdk/wasm.md has the list, are read and written here by hand. Do not change this file.
#![allow(dead_code)]

/// Describes a provider. Abilities: hides, rewrites, inserts, asks_models, keeps_words; the host rejects an answer that does anything else.
pub struct Strategy {
    pub name: &'static str,
    pub version: &'static str,
    pub doc: &'static str,
    pub abilities: &'static [&'static str],
    pub settings: &'static [Setting],
    /// Shortens a conversation. An error is shown to the user, and the chain goes on to the next provider.
    pub condense: fn(&Call) -> Result<Edit, String>,
}

/// A setting: its type and its default are those of JSON.
pub struct Setting {
    pub name: &'static str,
    pub kind: &'static str,
    pub default: &'static str,
    pub doc: &'static str,
}

/// A conversation to shorten.
#[derive(Default)]
pub struct Call<'a> {
    pub messages: Vec<Message<'a>>,
    /// In tokens: window, reserve, overhead, limit, target. The messages should have at most target - overhead.
    pub budget: [i64; 5],
    pub instructions: &'a [u8],
    pub no_recall: bool,
    settings: Vec<(&'a str, &'a str)>,
}

impl<'a> Call<'a> {
    /// The text of a setting, checked by the host.
    pub fn text(&self, name: &str) -> &'a str {
        self.settings.iter().find(|s| s.0 == name).map_or("", |s| s.1)
    }
    /// A setting that is a number; 0 if there is none.
    pub fn int(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }
    fn decode(data: &'a [u8]) -> Option<Call<'a>> {
        let mut call = Call::default();
        for f in Fields(data) {
            let f = f?;
            match f.number {
                1 => call.messages.push(Message::decode(f.bytes)?),
                2 => call.start(f.bytes)?,
                3 => {
                    let v = strings(f.bytes)?;
                    call.settings.push((name(v[0]), name(v[1])));
                }
                _ => {}
            }
        }
        Some(call)
    }
    fn start(&mut self, data: &'a [u8]) -> Option<()> {
        for f in Fields(data) {
            let f = f?;
            match f.number {
                2 => {
                    for b in Fields(f.bytes) {
                        let b = b?;
                        if (1..=5).contains(&b.number) {
                            self.budget[b.number as usize - 1] = b.value as i64;
                        }
                    }
                }
                9 => self.instructions = f.bytes,
                15 => self.no_recall = f.value != 0,
                _ => {}
            }
        }
        Some(())
    }
}

#[derive(Default)]
pub struct Message<'a> {
    pub id: &'a str,
    pub role: &'a str,
    pub kind: &'a str,
    pub parts: Vec<Part<'a>>,
    pub protected: bool,
    pub tokens: i64,
}

/// A part of a message. Texts are bytes, nearly always UTF-8.
pub enum Part<'a> {
    Text(&'a [u8]),
    ToolCall { id: &'a str, name: &'a str, args: &'a [u8] },
    ToolResult { call_id: &'a str, content: Vec<Part<'a>>, is_error: bool },
    /// An image, reasoning, or something of a later version: keep it or leave it out.
    Other,
}

impl<'a> Message<'a> {
    fn decode(data: &'a [u8]) -> Option<Message<'a>> {
        let mut m = Message::default();
        for f in Fields(data) {
            let f = f?;
            match f.number {
                1 => m.id = name(f.bytes),
                2 => m.role = name(f.bytes),
                3 => m.kind = name(f.bytes),
                4 => m.parts.push(Part::decode(f.bytes)?),
                6 => m.protected = f.value != 0,
                7 => m.tokens = f.value as i64,
                _ => {}
            }
        }
        Some(m)
    }
}

impl<'a> Part<'a> {
    fn decode(data: &'a [u8]) -> Option<Part<'a>> {
        for f in Fields(data) {
            let f = f?;
            match f.number {
                1 => return Some(Part::Text(f.bytes)),
                2 => {
                    let s = strings(f.bytes)?;
                    return Some(Part::ToolCall { id: name(s[0]), name: name(s[1]), args: s[2] });
                }
                3 => {
                    let (mut call_id, mut content, mut is_error) = ("", Vec::new(), false);
                    for r in Fields(f.bytes) {
                        let r = r?;
                        match r.number {
                            1 => call_id = name(r.bytes),
                            2 => content.push(Part::decode(r.bytes)?),
                            3 => is_error = r.value != 0,
                            _ => {}
                        }
                    }
                    return Some(Part::ToolResult { call_id, content, is_error });
                }
                _ => {}
            }
        }
        Some(Part::Other)
    }
}

/// The answer: what to change. Everything else stays.
#[derive(Default)]
pub struct Edit(Vec<u8>);

/// A part of a rewritten message.
pub enum NewPart {
    /// The original part with this index.
    Keep(usize),
    /// The tool result with this index, with other content.
    Result(usize, Vec<NewPart>),
    Text(Vec<u8>),
}

impl Edit {
    /// Hides the messages from first to last. Nothing is ever deleted.
    pub fn hide(&mut self, first: &str, last: &str) {
        let mut range = Vec::new();
        bytes(&mut range, 1, first.as_bytes());
        bytes(&mut range, 2, last.as_bytes());
        bytes(&mut self.0, 1, &range);
    }
    /// Replaces the parts of a message.
    pub fn rewrite(&mut self, id: &str, parts: &[NewPart]) {
        let mut rewrite = Vec::new();
        bytes(&mut rewrite, 1, id.as_bytes());
        for p in parts {
            bytes(&mut rewrite, 2, &p.encode());
        }
        bytes(&mut self.0, 2, &rewrite);
    }
    /// Adds a message, of the kind summary or marker, after another or, if that is empty, at the front.
    pub fn insert(&mut self, after: &str, role: &str, kind: &str, text: &[u8]) {
        let (mut insert, mut part) = (Vec::new(), Vec::new());
        bytes(&mut part, 1, text);
        for (n, s) in [(1, after), (2, role), (3, kind)] {
            bytes(&mut insert, n, s.as_bytes());
        }
        bytes(&mut insert, 4, &part);
        bytes(&mut self.0, 3, &insert);
    }
}

impl NewPart {
    fn encode(&self) -> Vec<u8> {
        let mut b = Vec::new();
        match self {
            NewPart::Keep(i) => number(&mut b, 1, *i as u64),
            NewPart::Result(i, content) => {
                let mut r = Vec::new();
                number(&mut r, 1, *i as u64);
                for p in content {
                    bytes(&mut r, 2, &p.encode());
                }
                bytes(&mut b, 2, &r);
            }
            NewPart::Text(text) => {
                let mut part = Vec::new();
                bytes(&mut part, 1, text);
                bytes(&mut b, 3, &part);
            }
        }
        b
    }
}

#[link(wasm_import_module = "condense")]
extern "C" {
    #[link_name = "log"]
    fn host_log(level: i32, text: *const u8, size: usize);
    #[link_name = "report"]
    fn host_report(step: *const u8, size: usize);
    #[link_name = "generate"]
    fn host_generate(request: *const u8, size: usize) -> u64;
    #[link_name = "fail"]
    fn host_fail(code: i32, text: *const u8, size: usize);
}

/// Writes to the host's log: -4 debug, 0 info, 4 warn, 8 error.
pub fn log(level: i32, text: &str) {
    unsafe { host_log(level, text.as_ptr(), text.len()) }
}

/// Adds a step to the report: its name, and the numbers of pieces that were examined and changed.
pub fn report(step: &str, looked: u64, changed: u64) {
    let mut b = Vec::new();
    bytes(&mut b, 1, step.as_bytes());
    number(&mut b, 2, looked);
    number(&mut b, 3, changed);
    unsafe { host_report(b.as_ptr(), b.len()) }
}

/// Asks a language model of the host: a name from the user's settings, or empty. The prompt is one message of the user.
pub fn generate(model: &str, system: &str, prompt: &str, max_tokens: u64) -> Result<String, String> {
    let (mut part, mut message, mut input, mut b) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    bytes(&mut part, 1, prompt.as_bytes());
    bytes(&mut message, 1, b"user");
    bytes(&mut message, 2, &part);
    bytes(&mut input, 2, &message);
    bytes(&mut b, 1, model.as_bytes());
    bytes(&mut b, 2, system.as_bytes());
    bytes(&mut b, 3, &input);
    number(&mut b, 4, max_tokens);
    let reply = unsafe {
        let at = host_generate(b.as_ptr(), b.len());
        std::slice::from_raw_parts((at >> 32) as *const u8, at as u32 as usize)
    };
    for f in Fields(reply) {
        match f {
            Some(f) if f.number == 3 => return Ok(String::from_utf8_lossy(strings(f.bytes).unwrap_or_default()[0]).into_owned()),
            Some(f) if f.number == 4 => return Err(name(strings(f.bytes).unwrap_or_default()[1]).to_string()),
            _ => {}
        }
    }
    Err("the host answered something else".to_string())
}

/// Ends the call with an error; code is a status of gRPC: 14 cannot work at the moment, 12 does not do this, 9 declines, 13 a bug.
pub fn fail(code: i32, text: &str) -> ! {
    unsafe { host_fail(code, text.as_ptr(), text.len()) }
    std::process::abort()
}

/// Makes the exports of a strategy.
#[macro_export]
macro_rules! export {
    ($strategy:expr) => {
        #[no_mangle]
        pub extern "C" fn alloc(size: usize) -> *mut u8 {
            condense::alloc(size)
        }
        #[no_mangle]
        pub extern "C" fn describe() -> u64 {
            condense::describe(&$strategy)
        }
        #[no_mangle]
        pub extern "C" fn condense(at: *const u8, size: usize) -> u64 {
            condense::serve(&$strategy, unsafe { std::slice::from_raw_parts(at, size) })
        }
    };
}

// An instance lives for one call, so nothing needs to be freed.
pub fn alloc(size: usize) -> *mut u8 {
    Box::leak(vec![0u8; size].into_boxed_slice()).as_mut_ptr()
}

fn export(b: Vec<u8>) -> u64 {
    let b = Box::leak(b.into_boxed_slice());
    (b.as_ptr() as u64) << 32 | b.len() as u64
}

pub fn describe(s: &Strategy) -> u64 {
    let mut b = Vec::new();
    for (n, text) in [(1, s.name), (2, s.version), (3, s.doc)] {
        bytes(&mut b, n, text.as_bytes());
    }
    for set in s.settings {
        let mut setting = Vec::new();
        for (n, text) in [(1, set.name), (2, set.kind), (3, set.default), (4, set.doc)] {
            bytes(&mut setting, n, text.as_bytes());
        }
        bytes(&mut b, 4, &setting);
    }
    for a in s.abilities {
        bytes(&mut b, 6, a.as_bytes());
    }
    export(b)
}

pub fn serve(s: &Strategy, data: &[u8]) -> u64 {
    std::panic::set_hook(Box::new(|p| fail(13, &p.to_string())));
    let call = match Call::decode(data) {
        Some(call) => call,
        None => fail(3, "the call cannot be decoded"),
    };
    match (s.condense)(&call) {
        Ok(edit) => export(edit.0),
        Err(text) => fail(9, &text),
    }
}

// The encoding of protobuf: fields of a number, with bytes or a value.
struct Field<'a> {
    number: u64,
    bytes: &'a [u8],
    value: u64,
}

struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<Field<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let f = self.field();
        if f.is_none() {
            self.0 = &[]; // not an encoding
        }
        Some(f)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<Field<'a>> {
        let tag = self.varint()?;
        let mut f = Field { number: tag >> 3, bytes: &[], value: 0 };
        match tag & 7 {
            0 => f.value = self.varint()?,
            1 => f.bytes = self.take(8)?,
            2 => {
                let n = self.varint()? as usize;
                f.bytes = self.take(n)?;
            }
            5 => f.bytes = self.take(4)?,
            _ => return None,
        }
        Some(f)
    }
    fn varint(&mut self) -> Option<u64> {
        let mut v = 0;
        for (i, b) in self.0.iter().take(10).enumerate() {
            v |= u64::from(b & 127) << (7 * i);
            if *b < 128 {
                self.0 = &self.0[i + 1..];
                return Some(v);
            }
        }
        None
    }
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let b = self.0.get(..n)?;
        self.0 = &self.0[n..];
        Some(b)
    }
}

// The fields 1, 2 and 3.
fn strings(data: &[u8]) -> Option<[&[u8]; 3]> {
    let mut s: [&[u8]; 3] = [&[], &[], &[]];
    for f in Fields(data) {
        let f = f?;
        if (1..=3).contains(&f.number) {
            s[f.number as usize - 1] = f.bytes;
        }
    }
    Some(s)
}

fn name(b: &[u8]) -> &str {
    std::str::from_utf8(b).unwrap_or("")
}

fn varint(b: &mut Vec<u8>, mut v: u64) {
    while v >= 128 {
        b.push(v as u8 | 128);
        v >>= 7;
    }
    b.push(v as u8);
}

fn number(b: &mut Vec<u8>, number: u64, value: u64) {
    varint(b, number << 3);
    varint(b, value);
}

fn bytes(b: &mut Vec<u8>, number: u64, value: &[u8]) {
    varint(b, number << 3 | 2);
    varint(b, value.len() as u64);
    b.extend_from_slice(value);
}
