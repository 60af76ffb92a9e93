#!/usr/bin/python3
"""tricks does what the instructions of a call say: whatever a plugin can do, right or wrong."""

import os
import time

import condense
from condense import pb

waiting = 0


def say(call, text):
    """Has text stand for everything."""
    call.hide(call.messages[0].id, call.messages[-1].id)
    call.insert([pb.Part(text=text if isinstance(text, bytes) else text.encode())])


def fail(call, settings):
    raise ValueError("boom")


def invalid(call, settings):
    raise condense.InvalidRequest("cannot be answered")


def unavailable(call, settings):
    raise condense.Unavailable("not today")


def unsupported(call, settings):
    raise condense.Unsupported("not my kind of work")


def wait(call, settings):
    global waiting
    waiting += 1
    try:
        while True:
            call.check()
            time.sleep(0.01)
    finally:
        waiting -= 1


def start(call, settings):
    s = call.start
    files = " ".join(f.decode() for f in s.files_read)
    say(call, f"{s.trigger} {s.profile} {s.mode} {s.system.decode()} {s.environment.decode()} {files} {s.budget.target} {int(s.no_recall)} {s.api}")


def about(call, settings):
    s = call.start
    say(call, f"{s.model} {s.price.input} {s.price.cache_read} {s.host} {settings['greeting']}")


def remember(call, settings):
    say(call, f"{call.start.conversation}: {call.state.decode()}")
    call.state += b"\xff"


def later(call, settings):
    call.later(f"not now, {str(call.start.may_wait).lower()}")


def estimate(call, settings):
    call.usage = pb.Usage(calls=1, input_tokens=sum(m.tokens for m in call.messages), usd=call.start.price.input)


def hide_rest(call, settings):
    first = next((i for i, m in enumerate(call.messages) if m.role != "system"), None)
    hidden = call.hide_unless(lambda m, i: i == first or m.role == "system")
    call.step("hidden", ",".join(f"{first} {last}" for first, last in hidden))


def ends(call, settings):
    n = len(call.messages)
    call.hide_unless(lambda m, i: i < 2 or i >= n - 100)


def longest(call, settings):
    size, most = lambda p: sum(len(c.text) for c in p.tool_result.content), -1
    for m in call.messages:
        for p in m.parts:
            if p.WhichOneof("kind") == "tool_result" and size(p) > most:
                found, most = m, size(p)
    call.rewrite(found.id, [pb.NewPart(result=pb.ResultEdit(part=0, content=[pb.NewPart(put=pb.Part(text=b"[long]"))]))])


def generate(call, settings):
    first = pb.MessageRange(first=call.messages[0].id)
    try:
        ask = pb.NewMessage(role="user", parts=[pb.Part(text=b"Summarize.")])
        question = [pb.GenerateInput(messages=first), pb.GenerateInput(message=ask)]
        answer = call.generate(pb.Generate(system=b"Be brief.", input=question))
        say(call, f"{answer.text.decode()} after {answer.usage.input_tokens}")
    except condense.HostError as err:
        say(call, pb.CallbackError.Code.Name(err.code))


def count(call, settings):
    first, second = call.messages[:2]
    sizes = call.count(
        [
            pb.CountItem(messages=pb.MessageRange(first=first.id, last=second.id)),
            pb.CountItem(part=pb.PartRef(message=second.id, part=0)),
            pb.CountItem(content=pb.Content(parts=[pb.Part(text=b"12345678")])),
        ]
    )
    say(call, " ".join(map(str, sizes)))


def count_many(call, settings):
    result = pb.ToolResult(call_id="c", content=[pb.Part(text=b"12345678")])
    item = pb.CountItem(content=pb.Content(parts=[pb.Part(tool_result=result)]))
    say(call, str(call.count([item] * 50_000).count(3)))


def keep_parts(call, settings):
    for m in call.messages:
        call.rewrite(m.id, [pb.NewPart(keep=i) for i in reversed(range(len(m.parts)))])


def tell(call, settings):
    print("to standard output")
    call.log("debug", "in detail")
    call.log("warn", "attention", n=7, greeting=settings["greeting"])
    call.progress(0.5, "half")
    call.step("first", "as said", {"user": 7}, looked=3, changed=2, tokens_before=9, tokens_after=2, ms=1.5)
    call.step("second")
    call.usage = pb.Usage(calls=1, input_tokens=10, output_tokens=2, usd=0.5)


def part(call, settings):
    """Smart for the middle, own words for the rest."""
    middle = pb.MessageRange(first=call.messages[2].id, last=call.messages[-3].id)
    done = call.run("smart", {"preset": "aggressive"}, [middle])
    call.edit(done.edit)
    call.insert([pb.Part(text=f"{done.tokens} tokens left".encode())], after=call.messages[-3].id)


def reopen(call, settings):
    """Brings a hidden message back."""
    first = call.hidden()[0]
    call.insert(call.hidden([first.id])[0].parts, after=call.messages[0].id)


def newest(call, settings):
    """A file as the conversation shows it, and what is said about the messages."""
    piece, cached = call.file("a.go")[0], call.start.cached
    unsure, other = str(piece.unsure).lower(), len(call.file("b.go"))
    say(call, f"{piece.first} {piece.text.decode()} {unsure} {other} {cached.messages} {cached.until_ms} {call.messages[0].labels['kept']}")


def vectors(call, settings):
    found = call.embed([f"text {i}" for i in range(2000)])
    say(call, f"{len(found)} {len(found[0])} {found[7][7]}")


def schema(call, settings):
    question = [pb.GenerateInput(messages=pb.MessageRange(first=call.messages[0].id))]
    say(call, call.generate(pb.Generate(input=question, schema=b'{"type":"object"}', temperature=0.5, effort="low")).text)


def lacking(call, settings):
    codes = []
    for ask in [call.hidden, lambda: call.run("smart"), lambda: call.embed(["x"]), lambda: call.file("x")]:
        try:
            ask()
        except condense.HostError as err:
            codes.append(f"{pb.CallbackError.Code.Name(err.code)} {err}")
    say(call, ", ".join(codes))


TRICKS = {
    "part": part,
    "reopen": reopen,
    "newest": newest,
    "vectors": vectors,
    "schema": schema,
    "lacking": lacking,
    "nothing": lambda call, settings: None,
    "fail": fail,
    "invalid": invalid,
    "unavailable": unavailable,
    "unsupported": unsupported,
    "exit": lambda call, settings: os._exit(3),
    "wait": wait,
    "waiting": lambda call, settings: say(call, f"{waiting} calls"),
    "ask": lambda call, settings: call.generate(pb.Generate(input=[pb.GenerateInput(messages=pb.MessageRange(first=call.messages[0].id))])),
    "echo": lambda call, settings: say(call, call.messages[0].parts[0].text),
    "start": start,
    "about": about,
    "hide_rest": hide_rest,
    "later": later,
    "remember": remember,
    "ends": ends,
    "longest": longest,
    "generate": generate,
    "count": count,
    "count_many": count_many,
    "keep_parts": keep_parts,
    "count_wrong": lambda call, settings: call.count([pb.CountItem(messages=pb.MessageRange(first="nobody"))]),
    "tell": tell,
}


def check(settings):
    if 0 <= settings["share"] <= 1:
        return []
    return [condense.Problem("share", "must be from 0 to 1")]


if __name__ == "__main__":
    condense.main(
        condense.Strategy(
            name="tricks",
            version="1.2.3",
            doc="Does what it is told.",
            settings=[
                condense.Setting("greeting", "hello", "What to say.", was=["hello", "word"]),
                condense.Setting("share", 0.5, "Between 0 and 1."),
                condense.Setting("style", "plain", "How.", enum=["plain", "fancy"]),
            ],
            check=check,
            estimate=estimate,
            condense=lambda call, settings: TRICKS[call.start.instructions.decode()](call, settings),
        )
    )
