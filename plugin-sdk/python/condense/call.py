"""A call: one conversation to shorten."""

import collections
import json

from . import condense_pb2 as pb

# Larger messages are sent in fragments; gRPC rejects 4 MiB and more.
MAX_ENVELOPE = 3 << 20
FRAGMENT = 1 << 20

# The size at which edits and count requests are sent. A host rejects more than 131,072 list
# entries and messages in one, and each of those has at least two bytes.
BATCH = 128 << 10

# How many texts are sent in one request for vectors.
TEXTS = 1024

LEVELS = ["debug", "info", "warn", "error"]


class InvalidRequest(Exception):
    """Raised by a strategy: the request is invalid, for any provider."""


class Unavailable(Exception):
    """Raised by a strategy: it cannot work at the moment."""


class Unsupported(Exception):
    """Raised by a strategy: it does not do this kind of work."""


class Cancelled(Exception):
    """The host has cancelled the call, or its deadline has passed."""


class HostError(Exception):
    """The host rejected a callback; code is a CallbackError.Code."""

    def __init__(self, error):
        super().__init__(f"host: {error.message}")
        self.code = error.code


class Call:
    """One request to a strategy. Use it in one thread.

    messages are the conversation, oldest first; start has the budget, trigger, mode,
    instructions and so on. Both have the types of condense.proto: bytes where it says bytes;
    part.WhichOneof("kind") is the kind of a part.

    Edits are applied after the strategy has returned. Messages that no edit names are
    unchanged; a call without edits means that there is nothing to gain.

    state is what the strategy left there in its last applied answer about this conversation,
    start.conversation; what is there at the end comes back in the next call, if this answer is
    applied: at most 64 KiB.
    """

    def __init__(self, requests, send, is_cancelled):
        """requests iterates over CondenseRequests, send takes a CondenseResponse."""
        self._requests = requests
        self._send_piece = send
        self._is_cancelled = is_cancelled
        self._edit = pb.Edit()
        self._edit_size = 0
        self._last_id = 0
        self.usage = pb.Usage()  # set it if the strategy called language models itself
        self.steps = []
        self.messages = []
        first = self._receive()
        if first.WhichOneof("kind") != "start":
            raise InvalidRequest("the call does not begin with start")
        self.start = first.start
        self.state = self.start.state
        self._later = ""
        while len(self.messages) < self.start.message_count:
            self.messages.extend(self._receive().messages.messages)

    def hide(self, first, last=""):
        """Hides the messages from first to last, by ID; without last, first alone."""
        self._added(self._edit.hide.add(first=first, last=last))

    def hide_unless(self, keep):
        """Hides the messages for which keep(message, index) is false, and returns the IDs that it gave to hide, in pairs.

        It never hides protected messages, system messages, the user's newest request, calls whose
        result is still to come, or the rest of a tool group that is kept. A conversation that begins with a user
        message must still do so: keep the first user message, or insert a summary at the front.
        """
        asked, hidden, after = requests(self.messages), [], None
        for first, last, stays in groups(self.messages):
            for i in range(first, last + 1):
                m = self.messages[i]
                stays = stays or i in asked or m.protected or m.role == "system" or keep(m, i)
            if stays:
                continue
            if first == after:  # one range
                hidden[-1][1] = last
            else:
                hidden.append([first, last])
            after = last + 1
        hidden = [(self.messages[first].id, self.messages[last].id) for first, last in hidden]
        for ids in hidden:
            self.hide(*ids)
        return hidden

    def rewrite(self, id, parts):
        """Replaces the parts of a message by a list of NewPart.

        Prefer keep and result to put: they need no bytes, and keep content that the plugin
        cannot see.
        """
        self._added(self._edit.rewrite.add(id=id, parts=parts))

    def insert(self, parts, after="", role="user", kind="summary"):
        """Inserts a message, a list of Part, after the one with the ID after, or at the front.

        The host gives it an ID; later calls have it with this kind, to be known by its text.
        """
        self._added(self._edit.insert.add(after=after, role=role, kind=kind, parts=parts))

    def later(self, reason):
        """Says why it is better not to condense yet, in a line; without edits.

        If start.may_wait is set, nothing is condensed, and the host asks again once the
        conversation has grown. Otherwise it asks the next provider.
        """
        self._later = reason

    def count(self, items):
        """Returns the sizes of CountItems in tokens, counted by the host.

        Count many items at once: each request takes about 0.3 ms.
        """
        sizes = []
        question = pb.CountTokens()
        size = 0
        for item in items:
            question.items.append(item)
            size += 2 + item.ByteSize()
            if size >= BATCH:
                sizes += self._ask(pb.Callback(count_tokens=question)).token_counts.tokens
                question, size = pb.CountTokens(), 0
        if size > 0:
            sizes += self._ask(pb.Callback(count_tokens=question)).token_counts.tokens
        return sizes

    def generate(self, request):
        """Calls a language model of the host; request is a Generate, the result a Generated.

        Raises HostError with the reason as its code: CODE_TOO_LONG, CODE_UNAVAILABLE and so
        on. The host counts the cost. With a schema the text is JSON.
        """
        if request.schema or request.effort or request.HasField("temperature"):
            self._answered("schema")
        return self._ask(pb.Callback(generate=request)).generated

    def hidden(self, ids=()):
        """Returns Messages that earlier condensations hid or rewrote, as they were; without ids all, without parts.

        Their IDs cannot stand in edits: insert what is worth reading again. Like run, embed and file it
        raises HostError with CODE_UNSUPPORTED if the host does not answer it.
        """
        self._answered("hidden")
        return list(self._ask(pb.Callback(hidden=pb.Hidden(ids=ids))).hidden.messages)

    def run(self, strategy, settings=None, messages=(), target=0):
        """Lets a built-in strategy, such as smart, shorten a part of the conversation.

        messages are MessageRanges that it may change, by default all; target is the size of the
        whole conversation, by default that of the call. The result is a RunResult: edit sends
        its edit on, and nothing is changed without.
        """
        self._answered("run")
        ask = pb.Run(strategy=strategy, settings=json.dumps(settings or {}).encode(), messages=messages, target=target)
        return self._ask(pb.Callback(run=ask)).run

    def edit(self, edit):
        """Adds everything in an Edit."""
        for r in edit.hide:
            self.hide(r.first, r.last)
        for r in edit.rewrite:
            self.rewrite(r.id, r.parts)
        for i in edit.insert:
            self.insert(i.parts, i.after, i.role, i.kind)

    def embed(self, texts):
        """Returns a vector, a list of floats, for each text, by the model of the user's configuration."""
        self._answered("embed")
        vectors = []
        for i in range(0, len(texts), TEXTS):
            ask = pb.Embed(texts=[_bytes(t) for t in texts[i : i + TEXTS]])
            vectors += [list(v.values) for v in self._ask(pb.Callback(embed=ask)).embedded.vectors]
        return vectors

    def file(self, path):
        """Returns the newest text of a file, a list of FilePieces, as the conversation shows it: empty if it shows nothing."""
        self._answered("file")
        return list(self._ask(pb.Callback(file=pb.File(path=_bytes(path)))).file.pieces)

    def log(self, level, message, **fields):
        """Writes to the host's log, with the ID of this call. Levels: debug, info, warn, error."""
        if LEVELS.index(level) < LEVELS.index(self.start.log_level or "info"):
            return
        line = pb.Log(level=level, message=_bytes(message))
        for key, value in fields.items():
            line.fields.add(key=key, value=_bytes(value))
        self._send(pb.CondenseResponse(log=line))

    def progress(self, fraction=None, text=""):
        """Reports progress to the user: a fraction from 0 to 1, None if unknown."""
        self._send(pb.CondenseResponse(progress=pb.Progress(fraction=fraction, text=text)))

    def step(self, name, note="", saved=None, **numbers):
        """Adds a line to the report.

        saved is a dict of tokens by kind of content; numbers are looked, changed,
        tokens_before, tokens_after and ms, as Step in condense.proto has them.
        """
        self.steps.append(pb.Step(name=name, note=_bytes(note), saved=saved or {}, **numbers))

    def check(self):
        """Raises Cancelled if the call is cancelled or late. Call it every few milliseconds."""
        if self._is_cancelled():
            raise Cancelled("the host does not wait any longer")

    def done(self):
        """Sends the edits and ends the answer. For server.py and testing.py."""
        self.check()
        self._flush()
        self._send(pb.CondenseResponse(done=pb.Done(usage=self.usage, steps=self.steps, state=_bytes(self.state), later=self._later)))

    def _answered(self, name):
        if name not in self.start.callbacks:
            raise HostError(pb.CallbackError(code=pb.CallbackError.CODE_UNSUPPORTED, message=f"{name}: not supported by this host"))

    def _added(self, op):
        self._edit_size += 2 + op.ByteSize()
        if self._edit_size >= BATCH:
            self._flush()

    def _flush(self):
        if self._edit_size > 0:
            self._send(pb.CondenseResponse(edit=self._edit))
        self._edit, self._edit_size = pb.Edit(), 0

    def _send(self, response):
        if response.ByteSize() <= MAX_ENVELOPE:
            self._send_piece(response)
            return
        data = response.SerializeToString()
        for i in range(0, len(data), FRAGMENT):
            piece = pb.Fragment(data=data[i : i + FRAGMENT], last=i + FRAGMENT >= len(data))
            self._send_piece(pb.CondenseResponse(fragment=piece))

    def _ask(self, callback):
        self._last_id += 1
        callback.id = self._last_id
        self._send(pb.CondenseResponse(callback=callback))
        while True:
            reply = self._receive().reply
            if reply.id != callback.id:
                continue  # a kind of a later version
            if reply.HasField("error"):
                raise HostError(reply.error)
            return reply

    def _receive(self):
        """Returns the next request, joining fragments."""
        pieces = []
        while True:
            self.check()
            try:
                request = next(self._requests)
            except StopIteration:
                raise Cancelled("the host ended the call") from None
            if request.WhichOneof("kind") != "fragment":
                return request
            pieces.append(request.fragment.data)
            if request.fragment.last:
                return pb.CondenseRequest.FromString(b"".join(pieces))


def groups(messages):
    """Divides messages into the smallest runs that keep every tool call with its result.

    Returns triples: the indexes of the first and the last message, and whether a call in
    them has no result. If an ID is used twice, a result answers the oldest open call with it.
    """
    reach = list(range(len(messages)))
    calls, more = {}, collections.defaultdict(collections.deque)  # the oldest open call with an ID, and those after it
    for i, message in enumerate(messages):
        for part in message.parts:
            kind = part.WhichOneof("kind")
            if kind == "tool_call":
                id = part.tool_call.id
                if id in calls:
                    more[id].append(i)
                else:
                    calls[id] = i
            elif kind == "tool_result":
                id = part.tool_result.call_id
                caller = calls.pop(id, None)
                if caller is not None:
                    reach[caller] = i
                if id in more and more[id]:
                    calls[id] = more[id].popleft()
    unanswered = set(calls.values()).union(*more.values())
    out = []
    first = 0
    while first < len(messages):
        last, i, is_open = reach[first], first, False
        while i <= last:
            last = max(last, reach[i])
            is_open = is_open or i in unanswered
            i += 1
        out.append((first, last, is_open))
        first = last + 1
    return out


def requests(messages):
    """Returns the indexes of the user's messages that no answer follows: their newest request.

    It stays, verbatim but for tool results in it.
    """
    out = set()
    for i in reversed(range(len(messages))):
        m = messages[i]
        if m.role == "assistant" and not m.kind:
            break
        said = any(p.WhichOneof("kind") in ("image", "opaque") or p.text.strip() for p in m.parts)
        if m.role == "user" and not m.kind and not m.program and said:
            out.add(i)
    return out


def _bytes(value):
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")
