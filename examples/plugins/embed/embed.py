#!/usr/bin/python3
"""embed keeps the paragraphs of old tool results that are near to the user's newest question.

Nearness is the cosine of embeddings, which the model of the user's configuration with embeddings: true
computes. Without one the call fails, and the next provider is asked.
"""

import math

import condense
from condense import pb


def shorten(call, settings):
    budget = call.start.budget
    excess = sum(m.tokens for m in call.messages) + budget.overhead - budget.target
    pieces = list(_pieces(call, settings))
    question = _question(call)
    if excess <= 0 or not pieces or not question:
        return
    try:
        vectors = call.embed([question[:2000]] + [p[3][:2000] for p in pieces])
    except condense.HostError as err:
        raise condense.Unavailable(str(err)) from None
    near = [_cosine(vectors[0], v) for v in vectors[1:]]
    sizes = call.count([pb.CountItem(content=pb.Content(parts=[pb.Part(text=p[3].encode())])) for p in pieces])
    dropped = set()
    saved = 0
    for k in sorted(range(len(pieces)), key=lambda k: near[k]):
        if saved >= excess:
            break
        dropped.add(pieces[k][:3] + (pieces[k][4],))
        saved += sizes[k]
    _rewrite(call, settings, dropped)
    call.step("far paragraphs", looked=len(pieces), changed=len(dropped), saved={"tool_result": saved})


def _pieces(call, settings):
    """Yields the paragraphs of old results: indexes of message, part and content, the text, and its index."""
    old = max(0, len(call.messages) - settings["recent"])
    for i, m in enumerate(call.messages[:old]):
        if m.protected:
            continue
        for j, p in enumerate(m.parts):
            if p.WhichOneof("kind") != "tool_result":
                continue
            for k, c in enumerate(p.tool_result.content):
                if c.WhichOneof("kind") == "text":
                    for n, text in enumerate(paragraphs(c.text)):
                        if len(text) >= settings["min_bytes"]:
                            yield i, j, k, text, n


def paragraphs(text):
    return text.decode(errors="replace").split("\n\n")


def _question(call):
    for m in reversed(call.messages):
        if m.role == "user":
            text = b" ".join(p.text for p in m.parts if p.WhichOneof("kind") == "text").decode(errors="replace").strip()
            if text:
                return text
    return ""


def _rewrite(call, settings, dropped):
    for i, m in enumerate(call.messages):
        touched = {d[1] for d in dropped if d[0] == i}
        if not touched:
            continue
        parts = []
        for j, p in enumerate(m.parts):
            if j not in touched:
                parts.append(pb.NewPart(keep=j))
                continue
            content = []
            for k, c in enumerate(p.tool_result.content):
                gone = {d[3] for d in dropped if d[:3] == (i, j, k)}
                if not gone:
                    content.append(pb.NewPart(keep=k))
                    continue
                kept = [t for n, t in enumerate(paragraphs(c.text)) if n not in gone]
                kept.append(f"[{len(gone)} paragraphs left out]")
                content.append(pb.NewPart(put=pb.Part(text="\n\n".join(kept).encode())))
            parts.append(pb.NewPart(result=pb.ResultEdit(part=j, content=content)))
        call.rewrite(m.id, parts)


def _cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    size = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return dot / size if size else 0.0


STRATEGY = condense.Strategy(
    name="embed",
    version="0.1.0",
    doc="Keeps the paragraphs of old tool results that are near to the newest question, by the user's embedding model.",
    abilities=["rewrites", "asks_models"],
    settings=[
        condense.Setting("recent", 4, "Messages at the end that are not changed."),
        condense.Setting("min_bytes", 200, "Shorter paragraphs are not changed."),
    ],
    condense=shorten,
)

if __name__ == "__main__":
    condense.main(STRATEGY)
