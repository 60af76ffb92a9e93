"""Tests of a strategy without a host: through the protocol, but in one process.

It does not check the rules: "condense plugin test" does.
"""

import dataclasses
import json
import threading

from . import condense_pb2 as pb
from .call import Call

FRAMING = 4


@dataclasses.dataclass
class Rehearsal:
    """The result of a rehearsal; messages after the edits."""

    messages: list
    logs: list
    progress: list
    usage: pb.Usage
    steps: list
    state: bytes
    later: str


def rehearse(strategy, messages, settings=None, start=None, cancelled=None, generate=None, answers=None):
    """Runs strategy on messages, a list of pb.Message.

    Missing IDs are m1, m2, …; missing sizes are counted, a token for every four bytes. start
    is a pb.Start, by default with a target of half the size; cancelled is a threading.Event;
    generate replaces the host's language models: a function from a pb.Generate to a str. answers
    has functions for other callbacks, by name: {"embed": f}, f being from a pb.Embed to a pb.Embedded.
    """
    values, problems = strategy.configure(json.dumps(settings or {}))
    if problems:
        raise ValueError("\n".join(f"{p.key}: {p.message}" for p in problems))
    before = []
    for i, m in enumerate(messages, 1):
        copy = pb.Message()
        copy.CopyFrom(m)
        copy.id = copy.id or f"m{i}"
        copy.tokens = copy.tokens or count(copy.parts) + FRAMING
        before.append(copy)
    host = _Host(before, start or _start(before), generate, answers or {})
    call = Call(host.requests(), host.receive, (cancelled or threading.Event()).is_set)
    strategy.condense(call, values)
    call.done()
    return Rehearsal(host.result(), host.logs, host.progress, host.usage, host.steps, host.state, host.later)


def count(parts):
    """Returns the tokens of parts: one for every four bytes of text, 1,000 for an image."""

    def size(b):
        return (len(b) + 3) // 4

    n = 0
    for p in parts:
        kind = p.WhichOneof("kind")
        if kind == "text":
            n += size(p.text)
        elif kind == "tool_call":
            n += size(p.tool_call.name) + size(p.tool_call.args)
        elif kind == "tool_result":
            n += count(p.tool_result.content)
        elif kind == "image":
            n += 1000
        elif kind == "reasoning":
            n += size(p.reasoning.text)
        elif kind == "opaque":
            n += size(p.opaque.json)
    return n


def _start(messages):
    tokens = sum(m.tokens for m in messages)
    budget = pb.Budget(window=tokens, limit=tokens // 2, target=tokens // 2)
    return pb.Start(trigger="manual", log_level="debug", budget=budget)


class _Host:
    """The host in a rehearsal."""

    def __init__(self, messages, start, generate, answers):
        self.logs = []
        self.progress = []
        self.usage = None
        self.state = b""
        self.later = ""
        self.steps = []
        self._messages = messages
        self._start = start
        self._generate = generate
        self._answers = answers
        self._at = {m.id: i for i, m in enumerate(messages)}
        self._replies = []
        self._hidden = set()
        self._rewritten = {}
        self._inserted = {}

    def requests(self):
        start = pb.Start()
        start.CopyFrom(self._start)
        start.message_count = len(self._messages)
        start.callbacks.extend(["schema", *self._answers])
        yield pb.CondenseRequest(start=start)
        for m in self._messages:
            yield pb.CondenseRequest(messages=pb.Messages(messages=[m]))
        while self._replies:
            yield pb.CondenseRequest(reply=self._replies.pop(0))

    def receive(self, response):
        kind = response.WhichOneof("kind")
        if kind == "callback":
            self._replies.append(self._reply(response.callback))
        elif kind == "log":
            fields = {f.key: f.value.decode() for f in response.log.fields}
            self.logs.append({"level": response.log.level, "message": response.log.message.decode(), **fields})
        elif kind == "progress":
            self.progress.append(response.progress)
        elif kind == "edit":
            self._take(response.edit)
        elif kind == "done":
            self.usage = response.done.usage
            self.steps = list(response.done.steps)
            self.state = response.done.state
            self.later = response.done.later
        else:
            raise ValueError(f"a {kind} is too large for a rehearsal")

    def result(self):
        out = list(self._inserted.get("", []))
        for m in self._messages:
            if m.id in self._rewritten:
                copy = pb.Message(id=m.id, role=m.role, kind=m.kind, protected=m.protected)
                copy.parts.extend(self._rewritten[m.id])
                out.append(copy)
            elif m.id not in self._hidden:
                out.append(m)
            out += self._inserted.get(m.id, [])
        return out

    def _reply(self, callback):
        if callback.HasField("generate") and self._generate:
            text = self._generate(callback.generate)
            return pb.Reply(id=callback.id, generated=pb.Generated(text=text.encode()))
        call = callback.WhichOneof("call")
        if call in self._answers:
            name = "embedded" if call == "embed" else call
            return pb.Reply(id=callback.id, **{name: self._answers[call](getattr(callback, call))})
        if call != "count_tokens":
            error = pb.CallbackError(code=pb.CallbackError.CODE_UNSUPPORTED, message="this host only counts")
            return pb.Reply(id=callback.id, error=error)
        tokens = [self._count(item) for item in callback.count_tokens.items]
        return pb.Reply(id=callback.id, token_counts=pb.TokenCounts(tokens=tokens, framing_tokens=FRAMING))

    def _count(self, item):
        kind = item.WhichOneof("kind")
        if kind == "messages":
            return sum(m.tokens for m in self._span(item.messages))
        if kind == "part":
            return count([self._message(item.part.message).parts[item.part.part]])
        return count(item.content.parts)

    def _take(self, edit):
        for hidden in edit.hide:
            for m in self._span(hidden):
                self._once(m.id)
                self._hidden.add(m.id)
        for r in edit.rewrite:
            self._once(r.id)
            self._rewritten[r.id] = _rewritten(self._message(r.id).parts, r.parts)
        for i in edit.insert:
            if i.after:
                self._message(i.after)
            self._inserted.setdefault(i.after, []).append(pb.Message(role=i.role, kind=i.kind, parts=i.parts))

    def _once(self, id):
        if id in self._hidden or id in self._rewritten:
            raise ValueError(f"message {id} is hidden or rewritten twice")

    def _message(self, id):
        if id not in self._at:
            raise ValueError(f"there is no message {id}")
        return self._messages[self._at[id]]

    def _span(self, r):
        self._message(r.first), self._message(r.last or r.first)
        return self._messages[self._at[r.first] : self._at[r.last or r.first] + 1]


def _rewritten(was, parts):
    """Returns the new parts of a message."""
    out = []
    for p in parts:
        kind = p.WhichOneof("kind")
        if kind == "put":
            out.append(p.put)
        elif kind == "keep":
            out.append(was[p.keep])
        else:
            old = was[p.result.part].tool_result
            content = _rewritten(old.content, p.result.content)
            out.append(pb.Part(tool_result=pb.ToolResult(call_id=old.call_id, content=content, is_error=old.is_error)))
    return out
