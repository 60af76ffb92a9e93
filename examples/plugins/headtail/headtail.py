#!/usr/bin/python3
"""headtail keeps the head and the tail of long tool results.

The beginning of an output shows what was done, the end shows the outcome. The oldest results are
cut first, and only as many as are needed to reach the target.
"""
# The first line names Debian's Python, which has the packages of python3-grpcio. If yours are
# in a virtual environment, name the Python in it.

import condense
from condense import pb


def shorten(call, settings):
    budget = call.start.budget
    excess = sum(m.tokens for m in call.messages) + budget.overhead - budget.target
    if excess <= 0:
        return  # on target: without edits nothing changes
    cuts = list(_cuts(call, settings))
    saved = done = 0
    rewrites = {}  # by index of a message: new content, by index of a part
    for (i, j, content), gain in zip(cuts, _gains(call, cuts)):
        if saved >= excess:
            break
        if gain > 0:
            rewrites.setdefault(i, {})[j] = content
            saved += gain
            done += 1
    for i, results in rewrites.items():
        message = call.messages[i]
        parts = []
        for j in range(len(message.parts)):
            if j in results:
                parts.append(pb.NewPart(result=pb.ResultEdit(part=j, content=results[j])))
            else:
                parts.append(pb.NewPart(keep=j))
        call.rewrite(message.id, parts)
    call.step("long results", looked=len(cuts), changed=done, saved={"tool_result": saved})


def _cuts(call, settings):
    """Yields what could be cut, oldest first: index of message, index of part, its new content."""
    results = [
        (i, j)
        for i, m in enumerate(call.messages)
        if not m.protected
        for j, p in enumerate(m.parts)
        if p.WhichOneof("kind") == "tool_result"
    ]
    recent = settings["recent"]
    for i, j in results[: max(0, len(results) - recent)]:
        call.check()
        content = []
        changed = False
        for k, part in enumerate(call.messages[i].parts[j].tool_result.content):
            short = cut(part.text, settings) if part.WhichOneof("kind") == "text" else None
            if short is None:  # unchanged: a short text, an image, a kind of a later version
                content.append(pb.NewPart(keep=k))
            else:
                content.append(pb.NewPart(put=pb.Part(text=short)))
                changed = True
        if changed:
            yield i, j, content


def _gains(call, cuts):
    """Returns the tokens that every cut saves. The host counts all in one request."""
    items = []
    for i, j, content in cuts:
        call.check()
        message = call.messages[i]
        was = message.parts[j].tool_result
        now = pb.Part(tool_result=pb.ToolResult(call_id=was.call_id, is_error=was.is_error))
        for part in content:
            now.tool_result.content.append(was.content[part.keep] if part.WhichOneof("kind") == "keep" else part.put)
        items.append(pb.CountItem(part=pb.PartRef(message=message.id, part=j)))
        items.append(pb.CountItem(content=pb.Content(parts=[now])))
    sizes = call.count(items)
    return [was - now for was, now in zip(sizes[::2], sizes[1::2])]


# The maximum size of the note, which is part of max_bytes, and the minimum of max_bytes.
NOTE_BYTES = 100
MIN_BYTES = 4 * NOTE_BYTES


def cut(text, settings):
    """Returns the head and the tail of text, in bytes, with a note between; None if it is short.

    It does not cut its own results again.
    """
    first, last, most = settings["head"], settings["tail"], settings["max_bytes"]
    lines = text.splitlines(keepends=True)
    if len(lines) <= first + last + 1 and len(text) <= most:
        return None
    room = most - NOTE_BYTES
    head = b"".join(lines[:first])
    tail = b"".join(lines[max(0, len(lines) - last) :])
    head_room = max(room // 2, room - len(tail))  # unused space of one is given to the other
    head = _whole(head[:head_room], at_end=len(head) > head_room)
    rest = text[len(head) :].splitlines(keepends=True)
    tail = b"".join(rest[max(0, len(rest) - last) :])
    tail_room = room - len(head)
    tail = _whole(tail[max(0, len(tail) - tail_room) :], at_start=len(tail) > tail_room)
    missing = text[len(head) : len(text) - len(tail)]
    note = b"[... %d lines, %d bytes left out ...]" % (len(missing.splitlines()), len(missing))
    newline = b"" if head.endswith(b"\n") or not head else b"\n"
    return head + newline + note + b"\n" + tail


def _whole(piece, at_start=False, at_end=False):
    """Returns piece without the remains of a split UTF-8 character."""
    if at_start:
        for i in range(min(4, len(piece))):
            if piece[i] & 0xC0 != 0x80:
                return piece[i:]
    if at_end:
        for i in range(1, min(4, len(piece)) + 1):
            lead = piece[-i]
            if lead & 0xC0 == 0x80:
                continue
            size = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return piece[:-i] if size > i else piece
    return piece


def check(settings):
    problems = [condense.Problem(key, "must not be negative") for key in ("head", "tail", "recent") if settings[key] < 0]
    if settings["max_bytes"] < MIN_BYTES:
        problems.append(condense.Problem("max_bytes", f"must be at least {MIN_BYTES}"))
    return problems


STRATEGY = condense.Strategy(
    name="headtail",
    version="0.1.0",
    doc="Keeps the head and the tail of long tool results. A note with the amount replaces the middle, oldest results "
    "first, until the conversation is on target; no message is hidden.",
    settings=[
        condense.Setting("head", 20, "Lines to keep at the beginning of a result."),
        condense.Setting("tail", 20, "Lines to keep at its end."),
        condense.Setting("max_bytes", 4096, "Maximum size of a result, for those with long lines."),
        condense.Setting("recent", 2, "Results at the end of the conversation that are not changed."),
    ],
    check=check,
    condense=shorten,
)

if __name__ == "__main__":
    condense.main(STRATEGY)
