//! tricks does what the instructions of a call say: whatever a plugin can do, right or wrong. With others it shortens old results,
//! counts in its state how often that was applied, and waits at first if it may.
mod condense;

use condense::{Call, Edit, Item, NewPart, Part, Prompt, Setting, Strategy};

static STRATEGY: Strategy = Strategy {
    name: "tricks",
    version: "1.2.3",
    doc: "Does what it is told.",
    abilities: &[],
    settings: &[
        Setting { name: "greeting|word", kind: "string", default: "\"hello\"", doc: "What to say." },
        Setting { name: "share", kind: "number", default: "0.5", doc: "Between 0 and 1." },
        Setting { name: "style", kind: "plain|fancy", default: "\"plain\"", doc: "How." },
        Setting { name: "mark.text|sign", kind: "string", default: "\"gone\"", doc: "Of the note." },
        Setting { name: "mark.many", kind: "integer", default: "1", doc: "How often." },
    ],
    condense: act,
};

export!(STRATEGY, check);

fn check(call: &Call) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    if !(0.0..=1.0).contains(&call.float("share")) {
        problems.push(("share", "must be from 0 to 1".to_string()));
    }
    if call.int("mark.many") < 1 {
        problems.push(("mark.many", "must be positive".to_string()));
    }
    problems
}

// say has text stand for everything.
fn say(call: &Call, text: &str) -> Edit {
    let mut edit = Edit::default();
    edit.hide(call.messages[0].id, call.messages[call.messages.len() - 1].id);
    edit.insert("", "user", "summary", text.as_bytes());
    edit
}

fn utf8(b: &[u8]) -> String {
    String::from_utf8_lossy(b).into_owned()
}

fn act(call: &Call) -> Result<Edit, String> {
    let (m, last) = (&call.messages, call.messages.len() - 1);
    Ok(match utf8(call.instructions).as_str() {
        "boom" => panic!("boom"),
        "start" => {
            let files: Vec<String> = call.files_read.iter().map(|f| utf8(f)).collect();
            let what = [call.trigger, call.profile, call.mode, &utf8(call.system), &utf8(call.environment), &files.join(" ")].join(" ");
            say(call, &format!("{} {} {} {}", what, call.budget[4], call.no_recall as i32, call.api))
        }
        "settings" => say(call, &["greeting", "share", "style", "mark.text", "mark.many"].map(|s| call.text(s)).join(" ")),
        "remember" => {
            let mut edit = say(call, &format!("{}: {}", call.conversation, utf8(call.state)));
            edit.state = [call.state, &[0xff]].concat();
            edit
        }
        "too much" => {
            let mut edit = say(call, "");
            edit.state = vec![b'x'; condense::MAX_STATE + 1];
            edit
        }
        "later" => Edit::later(&format!("not now, {}", call.may_wait)),
        "part" => {
            let last = m[last - 2].id;
            let ran = call.run("smart", r#"{"preset": "aggressive"}"#, &[(m[2].id, last)], 0)?;
            let mut edit = ran.edit;
            edit.insert(last, "user", "summary", format!("{} tokens left", ran.tokens).as_bytes());
            edit
        }
        "reopen" => {
            let all = call.hidden(&[])?;
            let mut edit = Edit::default();
            for was in call.hidden(&[all[0].id])? {
                if let Part::Text(text) = was.parts[0] {
                    edit.insert(m[0].id, "user", "summary", text);
                }
            }
            edit
        }
        "newest" => {
            let (a, b) = (call.file(b"a.go")?, call.file(b"b.go")?);
            let kept = m[0].labels.iter().find(|l| l.0 == "kept").map_or("", |l| l.1);
            let (n, until) = call.cached;
            say(call, &format!("{} {} {} {} {} {} {}", a[0].first, utf8(a[0].text), a[0].unsure, b.len(), n, until, kept))
        }
        "vectors" => {
            let texts: Vec<String> = (0..2000).map(|i| format!("text {}", i)).collect();
            let found = call.embed(&texts.iter().map(|t| t.as_bytes()).collect::<Vec<_>>())?;
            say(call, &format!("{} {} {:.1}", found.len(), found[0].len(), found[7][7]))
        }
        "schema" => {
            let prompt = Prompt {
                messages: &[(m[0].id, "")],
                schema: r#"{"type":"object"}"#,
                temperature: Some(0.5),
                effort: "low",
                ..Prompt::default()
            };
            say(call, &call.generate(&prompt)?.text)
        }
        "generate" => {
            let prompt = Prompt { system: "Be brief.", messages: &[(m[0].id, "")], text: "Summarize.", ..Prompt::default() };
            match call.generate(&prompt) {
                Ok(answer) => say(call, &answer.text),
                Err(e) => say(call, &e.code.to_string()),
            }
        }
        "lacking" => {
            let faults = [
                call.hidden(&[]).err(),
                call.run("smart", "", &[], 0).err(),
                call.embed(&[b"x"]).err(),
                call.file(b"x").err(),
            ];
            let told: Vec<String> = faults.into_iter().flatten().map(|e| format!("{} {}", e.code, e)).collect();
            say(call, &told.join(", "))
        }
        "count" => {
            let items = [Item::Messages(m[0].id, m[1].id), Item::Part(m[1].id, 0), Item::Text(b"12345678")];
            let counts: Vec<String> = call.count(&items)?.iter().map(|n| n.to_string()).collect();
            say(call, &counts.join(" "))
        }
        "count_many" => {
            let items: Vec<Item> = (0..50_000).map(|_| Item::Text(b"12345678")).collect();
            say(call, &call.count(&items)?.iter().filter(|n| **n == 2).count().to_string())
        }
        "count_wrong" => say(call, &call.count(&[Item::Messages("nobody", "")])?[0].to_string()),
        "tell" => {
            condense::log(4, "attention");
            condense::progress(0.5, "half");
            Edit::default()
        }
        _ => return shorten(call),
    })
}

fn shorten(call: &Call) -> Result<Edit, String> {
    if call.may_wait && call.state.is_empty() {
        return Ok(Edit::later("a task is half done"));
    }
    let mut edit = Edit::default();
    let mut shortened = 0;
    for m in call.messages.iter().rev().skip(2).filter(|m| !m.protected) {
        let parts: Vec<NewPart> = m.parts.iter().enumerate().map(|(i, p)| note(call, p, i)).collect();
        if parts.iter().any(|p| matches!(p, NewPart::Result(..))) {
            edit.rewrite(m.id, &parts);
            shortened += 1;
        }
    }
    condense::log(0, &format!("{} strokes", call.state.len()));
    condense::report("results", call.messages.len() as u64, shortened);
    edit.state = [call.state, b"|"].concat();
    Ok(edit)
}

fn note(call: &Call, part: &Part, i: usize) -> NewPart {
    match part {
        Part::ToolResult { content, .. } => match content[..] {
            [Part::Text(text)] if text.len() > 200 => {
                let note = format!("[{} bytes are {}{}]", text.len(), call.text("mark.text"), utf8(call.state));
                NewPart::Result(i, vec![NewPart::Text(note.into_bytes())])
            }
            _ => NewPart::Keep(i),
        },
        _ => NewPart::Keep(i),
    }
}
