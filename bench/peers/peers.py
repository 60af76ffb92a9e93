"""Runs a Python program's compaction without a model on a conversation, for `condense compare --peers`.

python3 peers.py headroom|litellm reads lines of {"messages", "tokens", "budget"} and answers each with {"messages"}; see
compact.mjs. The programs are installed into ./python, or their sources are in ./src/NAME.
"""

import json
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("python", "src/headroom", "src/litellm"):
    if os.path.isdir(os.path.join(HERE, folder)):
        sys.path.insert(0, os.path.join(HERE, folder))
STDOUT, sys.stdout = sys.stdout, sys.stderr


def absent(name, **members):
    """Puts a module without function in the place of one that is not installed."""
    try:
        __import__(name)
        return
    except ImportError:
        pass
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
        if i > 1:
            setattr(sys.modules[".".join(parts[: i - 1])], parts[i - 1], sys.modules[".".join(parts[:i])])
    for key, value in members.items():
        setattr(sys.modules[name], key, value)


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(b.get("text", "") for b in content or [] if isinstance(b, dict))


def blocks_of(content):
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def size(messages):
    n = 0
    for m in messages:
        for b in blocks_of(m["content"]):
            n += len(b.get("text") or "")
            if b["type"] == "tool_use":
                n += len(json.dumps(b["input"], ensure_ascii=False, separators=(",", ":")))
            if b["type"] == "tool_result":
                n += len(text_of(b.get("content")))
    return n


def most(run, room, low, high):
    """The result of the largest setting that fits, else of the smallest."""
    best = run(low)
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        left = run(middle)
        if size(left) <= room:
            low, best = middle, left or best
        else:
            high = middle
    return best


def litellm(messages, room):
    """litellm.compress(), BM25 without embeddings, with its token counter replaced by characters / 4."""
    from litellm.compression.compress import compress

    def openai():
        out = []
        for m in messages:
            text, calls = [], []
            for b in blocks_of(m["content"]):
                if b["type"] == "text":
                    text.append(b["text"])
                elif b["type"] == "tool_use":
                    function = {"name": b["name"], "arguments": json.dumps(b["input"])}
                    calls.append({"id": b["id"], "type": "function", "function": function})
                elif b["type"] == "tool_result":
                    out.append({"role": "tool", "tool_call_id": b["tool_use_id"], "content": text_of(b.get("content"))})
            if text or calls:
                own = {"role": m["role"], "content": "\n".join(text)}
                out.append({**own, "tool_calls": calls} if calls else own)
        return out

    def anthropic(left):
        out = []
        for m in left:
            if m["role"] == "tool":
                content = [{"type": "tool_result", "tool_use_id": m["tool_call_id"], "content": m["content"]}]
                out.append({"role": "user", "content": content})
                continue
            content = [{"type": "text", "text": m["content"]}] if m["content"] else []
            for c in m.get("tool_calls", []):
                f = c["function"]
                content.append({"type": "tool_use", "id": c["id"], "name": f["name"], "input": json.loads(f["arguments"])})
            if content:
                out.append({"role": m["role"], "content": content})
        return out

    given = openai()

    def run(target):
        return anthropic(compress(given, model="gpt-4o", compression_trigger=1, compression_target=target)["messages"])

    return most(run, room, 1, size(messages) // 4)


def headroom(messages, room):
    """headroom.compress.compress with the window as its setting, so that its own manager drops messages."""
    from headroom.compress import compress

    def run(limit):
        return compress(json.loads(json.dumps(messages)), model="claude-sonnet-4-5-20250929", model_limit=limit).messages

    return most(run, room, 1000, size(messages))


def prepare(name):
    if name == "litellm":
        counter = lambda model=None, messages=None, text=None, **_: (len(text or "") + sum(len(text_of(m.get("content"))) for m in messages or [])) // 4
        absent("litellm.litellm_core_utils.token_counter", token_counter=counter)
        __import__("litellm.compression.compress")
        return litellm

    class Nothing:
        """A value that does nothing, for telemetry."""

        def __getattr__(self, name):
            return self

        def __call__(self, *args, **kwargs):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *args):
            return False

        def __iter__(self):
            return iter(())

    class Idle(types.ModuleType):
        """A module that has every name."""

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Nothing()

    for module in ("opentelemetry", "opentelemetry.metrics", "opentelemetry.trace"):
        try:
            __import__(module)
        except ImportError:
            sys.modules[module] = Idle(module)
    __import__("headroom.compress")
    return headroom


def main():
    programs = ("headroom", "litellm")
    if len(sys.argv) < 2 or sys.argv[1] not in programs:
        sys.exit(f"usage: python3 peers.py {'|'.join(programs)}")
    try:
        run = prepare(sys.argv[1])
    except ImportError as err:
        sys.exit(f"not installed: {err}")
    for line in sys.stdin:
        try:
            q = json.loads(line)
            room = size(q["messages"]) * q["budget"] / max(1, q["tokens"])
            said = {"messages": run(q["messages"], room)}
        except Exception as err:  # the next question may be answered
            said = {"error": f"{type(err).__name__}: {err}"}
        STDOUT.write(json.dumps(said) + "\n")
        STDOUT.flush()


if __name__ == "__main__":
    main()
