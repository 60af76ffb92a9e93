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

/// A setting.
pub struct Setting {
    /// Dots join the names of nested settings, as in mark.style; former names, which are read as well, follow after |.
    pub name: &'static str,
    /// A type of JSON (string, integer, number, boolean, array, object), or the texts that it may be: plain|fancy.
    pub kind: &'static str,
    /// In JSON.
    pub default: &'static str,
    pub doc: &'static str,
}

/// A conversation to shorten. Start in condense.proto describes the fields.
#[derive(Default)]
pub struct Call<'a> {
    pub messages: Vec<Message<'a>>,
    /// In tokens: window, reserve, overhead, limit, target. The messages should have at most target - overhead.
    pub budget: [i64; 5],
    pub instructions: &'a [u8],
    pub no_recall: bool,
    /// What Edit.state was in the newest answer that is still applied in this conversation; empty if there is none.
    pub state: &'a [u8],
    /// Edit::later is an answer: the conversation is below its limit.
    pub may_wait: bool,
    pub conversation: &'a str,
    pub trigger: &'a str,
    pub profile: &'a str,
    pub mode: &'a str,
    pub api: &'a str,
    pub model: &'a str,
    pub system: &'a [u8],
    pub environment: &'a [u8],
    pub files_read: Vec<&'a [u8]>,
    pub dir: &'a [u8],
    pub tools: &'a [u8],
    pub originals: &'a [u8],
    /// The most requests to models, and US dollars for them; 0 for no limit.
    pub quota: (i64, f64),
    /// How many messages the vendor's prompt cache has, and until when, in milliseconds since 1970.
    pub cached: (i64, i64),
    callbacks: Vec<&'a str>,
    settings: Vec<(&'a str, &'a str)>,
}

impl<'a> Call<'a> {
    /// A setting as its text, or as JSON if it is no string. The host has checked its type; mark.style is a nested one.
    pub fn text(&self, name: &str) -> &'a str {
        self.settings.iter().find(|s| s.0 == name).map_or("", |s| s.1)
    }
    /// A setting that is an integer; 0 if there is none.
    pub fn int(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }
    /// A setting that is a number; 0 if there is none.
    pub fn float(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
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
                2 => self.budget = values(f.bytes)?.map(|v| v as i64),
                3 => self.trigger = name(f.bytes),
                4 => self.profile = name(f.bytes),
                5 => self.mode = name(f.bytes),
                6 => self.system = f.bytes,
                7 => self.environment = f.bytes,
                8 => self.files_read.push(f.bytes),
                9 => self.instructions = f.bytes,
                11 => self.dir = f.bytes,
                12 => self.tools = f.bytes,
                13 => self.originals = f.bytes,
                15 => self.no_recall = f.value != 0,
                16 => self.api = name(f.bytes),
                18 => self.model = name(f.bytes),
                21 => self.conversation = name(f.bytes),
                22 => self.state = f.bytes,
                23 => self.may_wait = f.value != 0,
                24 => {
                    let q = values(f.bytes)?;
                    self.quota = (q[0] as i64, f64::from_bits(q[1]));
                }
                25 => self.callbacks.push(name(f.bytes)),
                26 => {
                    let c = values(f.bytes)?;
                    self.cached = (c[0] as i64, c[1] as i64);
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Asks a language model of the host.
    pub fn generate(&self, prompt: &Prompt) -> Result<Answer, HostError> {
        let new = !prompt.schema.is_empty() || !prompt.effort.is_empty() || prompt.temperature.is_some();
        let answer = self.ask(if new { "schema" } else { "" }, 3, &prompt.encode())?;
        let text = String::from_utf8_lossy(strings(answer).unwrap_or_default()[0]).into_owned();
        Ok(Answer { text, truncated: values(answer).unwrap_or_default()[2] != 0 })
    }
    /// The tokens of each item, by the host's counter. Count many at once.
    pub fn count(&self, items: &[Item]) -> Result<Vec<i64>, HostError> {
        let mut counts = Vec::new();
        for some in items.chunks(MOST) {
            let mut b = Vec::new();
            for i in some {
                bytes(&mut b, 1, &i.encode());
            }
            for f in Fields(self.ask("", 2, &b)?).flatten().filter(|f| f.number == 1) {
                let mut packed = Fields(f.bytes);
                while let Some(n) = packed.varint() {
                    counts.push(n as i64);
                }
            }
        }
        if counts.len() == items.len() {
            Ok(counts)
        } else {
            Err(lacks("count"))
        }
    }
    /// Messages that earlier condensations hid or rewrote, as they were; without IDs a list of all, without parts. Their IDs cannot
    /// stand in edits: insert what is worth reading again.
    pub fn hidden(&self, ids: &[&str]) -> Result<Vec<Message<'static>>, HostError> {
        let mut b = Vec::new();
        for id in ids {
            bytes(&mut b, 1, id.as_bytes());
        }
        let found = Fields(self.ask("hidden", 4, &b)?).flatten();
        Ok(found.filter(|f| f.number == 1).filter_map(|f| Message::decode(f.bytes)).collect())
    }
    /// Lets a built-in strategy shorten the messages in these ranges, from first to last; none for all of them. The target is in tokens
    /// of the whole conversation, 0 for that of the call.
    pub fn run(&self, strategy: &str, settings: &str, ranges: &[(&str, &str)], target: u64) -> Result<Ran, HostError> {
        let mut b = Vec::new();
        bytes(&mut b, 1, strategy.as_bytes());
        bytes(&mut b, 2, settings.as_bytes());
        for r in ranges {
            bytes(&mut b, 3, &range(r.0, r.1));
        }
        number(&mut b, 4, target);
        let mut ran = Ran::default();
        for f in Fields(self.ask("run", 5, &b)?).flatten() {
            match f.number {
                1 => ran.edit.encoded.extend_from_slice(f.bytes),
                2 => ran.tokens = f.value as i64,
                _ => {}
            }
        }
        Ok(ran)
    }
    /// A vector for each text, by the model of the user's configuration.
    pub fn embed(&self, texts: &[&[u8]]) -> Result<Vec<Vec<f32>>, HostError> {
        let mut vectors = Vec::new();
        for some in texts.chunks(MOST) {
            let mut b = Vec::new();
            for t in some {
                bytes(&mut b, 1, t);
            }
            for f in Fields(self.ask("embed", 6, &b)?).flatten().filter(|f| f.number == 1) {
                let floats = strings(f.bytes).unwrap_or_default()[0].chunks_exact(4);
                vectors.push(floats.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect());
            }
        }
        Ok(vectors)
    }
    /// The newest text of a file as the conversation shows it, hidden messages included; nothing if it does not.
    pub fn file(&self, path: &[u8]) -> Result<Vec<Piece>, HostError> {
        let mut b = Vec::new();
        bytes(&mut b, 1, path);
        let pieces = Fields(self.ask("file", 7, &b)?).flatten();
        Ok(pieces.filter(|f| f.number == 1).filter_map(|f| Piece::decode(f.bytes)).collect())
    }

    // Sends a Callback with the request in that field, and returns the answer in the Reply.
    fn ask(&self, needs: &str, field: u64, request: &[u8]) -> Result<&'static [u8], HostError> {
        if !needs.is_empty() && !self.callbacks.contains(&needs) {
            return Err(lacks(needs));
        }
        let (mut callback, mut count) = (Vec::new(), Vec::new());
        bytes(&mut callback, field, request);
        bytes(&mut count, 15, &callback);
        let reply = unsafe {
            let at = match field {
                2 => host_count(request.as_ptr(), request.len()),
                3 => host_generate(request.as_ptr(), request.len()),
                _ => host_count(count.as_ptr(), count.len()),
            };
            std::slice::from_raw_parts((at >> 32) as *const u8, at as u32 as usize)
        };
        let answer = if field < 4 { field } else { field + 1 };
        for f in Fields(reply).flatten() {
            if f.number == 4 {
                let text = name(strings(f.bytes).unwrap_or_default()[1]).to_string();
                return Err(HostError { code: values(f.bytes).unwrap_or_default()[0], text });
            }
            if f.number == answer {
                return Ok(f.bytes);
            }
        }
        Err(lacks(needs))
    }
}

// The most items and texts in a request.
const MOST: usize = 1024;

/// Why the host did not answer. An unhandled one is the error of the call.
#[derive(Debug)]
pub struct HostError {
    /// Of a CallbackError: 1 not supported, 2 over the quota, 3 invalid, 4 failed, 5 too long, 6 no text, 7 unavailable.
    pub code: u64,
    pub text: String,
}

impl std::fmt::Display for HostError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "host: {}", self.text)
    }
}

impl From<HostError> for String {
    fn from(e: HostError) -> String {
        e.to_string()
    }
}

fn lacks(callback: &str) -> HostError {
    HostError { code: 1, text: format!("{}: not supported by this host", callback) }
}

/// A question to a language model.
#[derive(Default)]
pub struct Prompt<'a> {
    /// A name from the user's settings, or empty.
    pub model: &'a str,
    pub system: &'a str,
    /// Ranges of messages of the conversation, from first to last, which the model reads first.
    pub messages: &'a [(&'a str, &'a str)],
    /// The last message, of the user; may be empty.
    pub text: &'a str,
    pub max_tokens: u64,
    /// The definitions of tools that the messages call, as in Call.tools.
    pub tools: &'a [u8],
    /// All but the last message was sent to this model before.
    pub cached: bool,
    /// A JSON schema that the answer must match; empty for text.
    pub schema: &'a str,
    pub temperature: Option<f64>,
    /// Of reasoning: low, medium, high; empty for the host's choice.
    pub effort: &'a str,
}

pub struct Answer {
    pub text: String,
    /// The model stopped at max_tokens.
    pub truncated: bool,
}

impl Prompt<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut b = Vec::new();
        bytes(&mut b, 1, self.model.as_bytes());
        bytes(&mut b, 2, self.system.as_bytes());
        for r in self.messages {
            let mut input = Vec::new();
            bytes(&mut input, 1, &range(r.0, r.1));
            bytes(&mut b, 3, &input);
        }
        if !self.text.is_empty() {
            let (mut message, mut input) = (Vec::new(), Vec::new());
            bytes(&mut message, 1, b"user");
            bytes(&mut message, 2, &text_part(self.text.as_bytes()));
            bytes(&mut input, 2, &message);
            bytes(&mut b, 3, &input);
        }
        number(&mut b, 4, self.max_tokens);
        bytes(&mut b, 5, self.tools);
        number(&mut b, 6, self.cached as u64);
        bytes(&mut b, 7, self.schema.as_bytes());
        if let Some(t) = self.temperature {
            varint(&mut b, 8 << 3 | 1);
            b.extend_from_slice(&t.to_le_bytes());
        }
        bytes(&mut b, 9, self.effort.as_bytes());
        b
    }
}

/// What to count: messages from first to last, a part of one, or a new text.
pub enum Item<'a> {
    Messages(&'a str, &'a str),
    Part(&'a str, usize),
    Text(&'a [u8]),
}

impl Item<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut b = Vec::new();
        match self {
            Item::Messages(first, last) => bytes(&mut b, 1, &range(first, last)),
            Item::Part(message, index) => {
                let mut part = Vec::new();
                bytes(&mut part, 1, message.as_bytes());
                number(&mut part, 2, *index as u64);
                bytes(&mut b, 2, &part);
            }
            Item::Text(text) => {
                let mut content = Vec::new();
                bytes(&mut content, 1, &text_part(text));
                bytes(&mut b, 3, &content);
            }
        }
        b
    }
}

/// What a strategy of the host did: Edit::add sends it on. Tokens are those of the conversation afterwards.
#[derive(Default)]
pub struct Ran {
    pub edit: Edit,
    pub tokens: i64,
}

/// Known lines of a file.
pub struct Piece {
    /// The number of the first one; 0 if unknown.
    pub first: i64,
    pub text: &'static [u8],
    /// The file was changed since, in a way that is not known.
    pub unsure: bool,
}

impl Piece {
    fn decode(data: &'static [u8]) -> Option<Piece> {
        let v = values(data)?;
        Some(Piece { first: v[0] as i64, text: strings(data)?[1], unsure: v[2] != 0 })
    }
}

#[derive(Default)]
pub struct Message<'a> {
    pub id: &'a str,
    pub role: &'a str,
    pub kind: &'a str,
    pub parts: Vec<Part<'a>>,
    /// In milliseconds since 1970; 0 if unknown.
    pub time_ms: i64,
    pub protected: bool,
    pub tokens: i64,
    /// Its place in the conversation as recorded, from 1; 0 if unknown.
    pub number: i64,
    /// The agent's program wrote it: the user typed nothing of it.
    pub program: bool,
    /// What is known about it: kept is why it must stay.
    pub labels: Vec<(&'a str, &'a str)>,
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
                5 => m.time_ms = f.value as i64,
                6 => m.protected = f.value != 0,
                7 => m.tokens = f.value as i64,
                8 => m.number = f.value as i64,
                9 => m.program = f.value != 0,
                10 => {
                    let s = strings(f.bytes)?;
                    m.labels.push((name(s[0]), name(s[1])));
                }
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
pub struct Edit {
    /// Comes back as Call.state in the next call about the conversation, if this answer is applied, and is undone with it. At most
    /// MAX_STATE bytes; empty keeps the state as it is.
    pub state: Vec<u8>,
    later: String,
    encoded: Vec<u8>,
}

/// The most bytes of a state: the host refuses an answer with more.
pub const MAX_STATE: usize = 64 << 10;

/// A part of a rewritten message.
pub enum NewPart {
    /// The original part with this index.
    Keep(usize),
    /// The tool result with this index, with other content.
    Result(usize, Vec<NewPart>),
    Text(Vec<u8>),
}

impl Edit {
    /// The answer that it is better not to condense yet, because of the reason, a line. The host asks again after the conversation has
    /// grown, or asks the next provider unless Call.may_wait is set.
    pub fn later(reason: &str) -> Edit {
        Edit { later: reason.to_string(), ..Edit::default() }
    }
    /// Hides the messages from first to last. Nothing is ever deleted.
    pub fn hide(&mut self, first: &str, last: &str) {
        bytes(&mut self.encoded, 1, &range(first, last));
    }
    /// Adds the changes of another, such as those of Call::run.
    pub fn add(&mut self, other: Edit) {
        self.encoded.extend(other.encoded);
    }
    /// Replaces the parts of a message.
    pub fn rewrite(&mut self, id: &str, parts: &[NewPart]) {
        let mut rewrite = Vec::new();
        bytes(&mut rewrite, 1, id.as_bytes());
        for p in parts {
            bytes(&mut rewrite, 2, &p.encode());
        }
        bytes(&mut self.encoded, 2, &rewrite);
    }
    /// Adds a message, of the kind summary or marker, after another or, if that is empty, at the front.
    pub fn insert(&mut self, after: &str, role: &str, kind: &str, text: &[u8]) {
        let mut insert = Vec::new();
        for (n, s) in [(1, after), (2, role), (3, kind)] {
            bytes(&mut insert, n, s.as_bytes());
        }
        bytes(&mut insert, 4, &text_part(text));
        bytes(&mut self.encoded, 3, &insert);
    }
    fn finish(mut self) -> Vec<u8> {
        let mut done = Vec::new();
        bytes(&mut done, 3, &self.state);
        bytes(&mut done, 4, self.later.as_bytes());
        bytes(&mut self.encoded, 15, &done);
        self.encoded
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
            NewPart::Text(text) => bytes(&mut b, 3, &text_part(text)),
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
    #[link_name = "progress"]
    fn host_progress(fraction: f64, text: *const u8, size: usize);
    #[link_name = "generate"]
    fn host_generate(request: *const u8, size: usize) -> u64;
    #[link_name = "count"]
    fn host_count(request: *const u8, size: usize) -> u64;
    #[link_name = "clock"]
    fn host_clock() -> i64;
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

/// Tells the user how far it is: 0 to 1, negative if unknown.
pub fn progress(fraction: f64, text: &str) {
    unsafe { host_progress(fraction, text.as_ptr(), text.len()) }
}

/// The time in milliseconds since 1970. A module that uses it asks for a clock, which users see before they approve it.
pub fn now() -> i64 {
    unsafe { host_clock() }
}

/// Asks a language model of the host: a name from the user's settings, or empty. Call::generate can do more.
pub fn generate(model: &str, system: &str, prompt: &str, max_tokens: u64) -> Result<String, String> {
    let prompt = Prompt { model, system, text: prompt, max_tokens, ..Prompt::default() };
    Ok(Call::default().generate(&prompt)?.text)
}

/// Ends the call with an error; code is a status of gRPC: 14 cannot work at the moment, 12 does not do this, 9 declines, 13 a bug.
pub fn fail(code: i32, text: &str) -> ! {
    unsafe { host_fail(code, text.as_ptr(), text.len()) }
    std::process::abort()
}

/// Makes the exports of a strategy, and of a function that checks values of settings: fn(&Call) -> Vec<(&'static str, String)> gives
/// the name of each wrong one, and what is wrong. The call has nothing but settings, whose types the host has checked.
#[macro_export]
macro_rules! export {
    ($strategy:expr, $check:expr) => {
        export!($strategy);
        #[no_mangle]
        pub extern "C" fn check_settings(at: *const u8, size: usize) -> u64 {
            condense::check_settings($check, unsafe { std::slice::from_raw_parts(at, size) })
        }
    };
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
    describe_settings(&mut b, 4, s.settings, "");
    for a in s.abilities {
        bytes(&mut b, 6, a.as_bytes());
    }
    export(b)
}

// Describes the settings whose names begin with prefix, in that field: those of one object come together.
fn describe_settings(b: &mut Vec<u8>, field: u64, all: &[Setting], prefix: &str) {
    let mut objects = Vec::new();
    for s in all {
        let mut names = match s.name.strip_prefix(prefix) {
            Some(names) => names.split('|'),
            None => continue,
        };
        let first = names.next().unwrap_or("");
        let mut setting = Vec::new();
        if let Some((object, _)) = first.split_once('.') {
            if objects.contains(&object) {
                continue;
            }
            objects.push(object);
            for (n, text) in [(1, object), (2, "object"), (3, "{}")] {
                bytes(&mut setting, n, text.as_bytes());
            }
            describe_settings(&mut setting, 6, all, &format!("{}{}.", prefix, object));
        } else {
            let kind = if s.kind.contains('|') { "string" } else { s.kind };
            for (n, text) in [(1, first), (2, kind), (3, s.default), (4, s.doc)] {
                bytes(&mut setting, n, text.as_bytes());
            }
            for text in s.kind.split('|').filter(|_| s.kind.contains('|')) {
                bytes(&mut setting, 5, text.as_bytes());
            }
            for was in names {
                bytes(&mut setting, 7, was.as_bytes());
            }
        }
        bytes(b, field, &setting);
    }
}

pub fn serve(s: &Strategy, data: &[u8]) -> u64 {
    match (s.condense)(&received(data)) {
        Ok(edit) => export(edit.finish()),
        Err(text) => fail(9, &text),
    }
}

pub fn check_settings(check: fn(&Call) -> Vec<(&'static str, String)>, data: &[u8]) -> u64 {
    let mut b = Vec::new();
    for (key, message) in check(&received(data)) {
        let mut problem = Vec::new();
        bytes(&mut problem, 1, key.as_bytes());
        bytes(&mut problem, 2, message.as_bytes());
        bytes(&mut b, 1, &problem);
    }
    export(b)
}

fn received(data: &[u8]) -> Call<'_> {
    std::panic::set_hook(Box::new(|p| fail(13, &p.to_string())));
    match Call::decode(data) {
        Some(call) => call,
        None => fail(3, "the call cannot be decoded"),
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
            1 => {
                f.bytes = self.take(8)?;
                f.value = f.bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
            }
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

// The values of the fields 1 to 5.
fn values(data: &[u8]) -> Option<[u64; 5]> {
    let mut v = [0; 5];
    for f in Fields(data) {
        let f = f?;
        if (1..=5).contains(&f.number) {
            v[f.number as usize - 1] = f.value;
        }
    }
    Some(v)
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

// A MessageRange.
fn range(first: &str, last: &str) -> Vec<u8> {
    let mut b = Vec::new();
    bytes(&mut b, 1, first.as_bytes());
    bytes(&mut b, 2, last.as_bytes());
    b
}

// A Part that is a text.
fn text_part(text: &[u8]) -> Vec<u8> {
    let mut b = Vec::new();
    bytes(&mut b, 1, text);
    b
}

fn bytes(b: &mut Vec<u8>, number: u64, value: &[u8]) {
    varint(b, number << 3 | 2);
    varint(b, value.len() as u64);
    b.extend_from_slice(value);
}
