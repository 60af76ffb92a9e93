#!/usr/bin/python3
"""embed keeps the paragraphs of old tool results that are near to the user's newest question.

Nearness is the cosine of embeddings, which a server on this machine computes: Ollama, llama.cpp, vLLM or
any other with OpenAI's /v1/embeddings. Without the server the call fails, and the next provider is asked.
"""

import json
import math
import os
import urllib.error
import urllib.request

import condense
from condense import pb

BATCH = 64  # texts in one request


def shorten(call, settings):
    budget = call.start.budget
    excess = sum(m.tokens for m in call.messages) + budget.overhead - budget.target
    pieces = list(_pieces(call, settings))
    question = _question(call)
    if excess <= 0 or not pieces or not question:
        return
    texts = [question[:2000]] + [p[3][:2000] for p in pieces]
    vectors = []
    for i in range(0, len(texts), BATCH):
        call.check()
        vectors += embed(texts[i : i + BATCH], settings)
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


def embed(texts, settings):
    """Returns a vector for each text. Nothing but this address is called."""
    body = json.dumps({"model": settings["model"], "input": texts}).encode()
    headers = {"Content-Type": "application/json"}
    if os.environ.get("EMBED_KEY"):  # needs env: [EMBED_KEY] in the configuration
        headers["Authorization"] = "Bearer " + os.environ["EMBED_KEY"]
    try:
        request = urllib.request.Request(settings["url"], body, headers)
        with urllib.request.urlopen(request, timeout=settings["seconds"]) as answer:
            data = json.load(answer)["data"]
        vectors = [d["embedding"] for d in sorted(data, key=lambda d: d["index"])]
    except (urllib.error.URLError, TimeoutError, OSError) as err:
        raise condense.Unavailable(f"{settings['url']}: {err}") from None
    if len(vectors) != len(texts):
        raise condense.Unavailable(f"{settings['url']} answered {len(vectors)} of {len(texts)} texts")
    return vectors


def _cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    size = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return dot / size if size else 0.0


def check(settings):
    if not settings["url"].startswith(("http://127.0.0.1", "http://localhost", "https://")):
        return [condense.Problem("url", "must be on this machine, or https: conversations are sent there")]
    return []


STRATEGY = condense.Strategy(
    name="embed",
    version="0.1.0",
    doc="Keeps the paragraphs of old tool results that are near to the newest question. An embedding server on this machine says which.",
    abilities=["rewrites"],
    settings=[
        condense.Setting("url", "http://127.0.0.1:11434/v1/embeddings", "Address of the server, in OpenAI's form."),
        condense.Setting("model", "nomic-embed-text", "Its model."),
        condense.Setting("seconds", 20.0, "The longest wait for an answer."),
        condense.Setting("recent", 4, "Messages at the end that are not changed."),
        condense.Setting("min_bytes", 200, "Shorter paragraphs are not changed."),
    ],
    check=check,
    condense=shorten,
)

if __name__ == "__main__":
    condense.main(STRATEGY)
