"""A call: one conversation to be shortened."""

import collections

from . import condense_pb2 as pb

# A larger message travels in fragments; gRPC refuses 4 MiB and more.
MAX_ENVELOPE = 3 << 20
FRAGMENT = 1 << 20

# How large edits and questions get before they are sent. A host refuses more than 131,072
# list entries and messages in one, and each of those has at least two bytes.
BATCH = 128 << 10

LEVELS = ["debug", "info", "warn", "error"]


class InvalidRequest(Exception):
    """A strategy raises it if nobody could answer the request."""


class Unavailable(Exception):
    """A strategy raises it if it cannot work at the moment."""


class Unsupported(Exception):
    """A strategy raises it if it does not do this kind of work."""


class Cancelled(Exception):
    """The host does not wait for the answer any longer."""


class HostError(Exception):
    """The host refused a callback; code is a CallbackError.Code."""

    def __init__(self, error):
        super().__init__(f"host: {error.message}")
        self.code = error.code


class Call:
    """What a strategy works on, in one thread.

    messages are the conversation, oldest first, and start is what else the host says:
    budget, trigger, mode, instructions and so on. Both have the types of condense.proto:
    bytes where it says bytes, and part.WhichOneof("kind") says of what kind a part is.

    Nothing that the strategy says is applied before it has returned, and what it does not
    name stays as it is: a strategy that does nothing says that there is nothing to gain.
    """

    def __init__(self, requests, send, is_cancelled):
        """requests iterates over CondenseRequests, send takes a CondenseResponse."""
        self._requests = requests
        self._send_piece = send
        self._is_cancelled = is_cancelled
        self._edit = pb.Edit()
        self._edit_size = 0
        self._last_id = 0
        self.usage = pb.Usage()  # change it if the strategy called language models itself
        self.steps = []
        self.messages = []
        first = self._receive()
        if first.WhichOneof("kind") != "start":
            raise InvalidRequest("the call does not begin with start")
        self.start = first.start
        while len(self.messages) < self.start.message_count:
            self.messages.extend(self._receive().messages.messages)

    def hide(self, first, last=""):
        """Takes a message out of what is sent to the model, or those from first to last, by ID."""
        self._added(self._edit.hide.add(first=first, last=last))

    def hide_unless(self, keep):
        """Hides the messages for which keep(message, index) is false.

        Those that must stay, stay: protected ones, the system's, calls whose result is still to come, and
        what belongs to a call or result that stays. A conversation that begins with a user
        message must go on to do so: keep sees to that, or insert a summary at the front.
        """
        for first, last, is_open in groups(self.messages):
            group = self.messages[first : last + 1]
            if not is_open and not any(m.protected or m.role == "system" or keep(m, i) for i, m in enumerate(group, first)):
                self.hide(group[0].id, group[-1].id)

    def rewrite(self, id, parts):
        """Gives a message other parts, a list of NewPart.

        Prefer keep and result to put: they need no bytes, and keep what the plugin could not
        see.
        """
        self._added(self._edit.rewrite.add(id=id, parts=parts))

    def insert(self, parts, after="", role="user", kind="summary"):
        """Puts a message, a list of Part, behind the one with the ID after, or to the front."""
        self._added(self._edit.insert.add(after=after, role=role, kind=kind, parts=parts))

    def count(self, items):
        """Asks the host for the size in tokens of CountItems and returns a list of numbers.

        Ask once for many: each question takes some 0.3 ms.
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
        """Asks a language model of the host; request is a Generate, the answer a Generated.

        A HostError says with its code why there is none: CODE_TOO_LONG, CODE_UNAVAILABLE and
        so on. The host knows what it cost.
        """
        return self._ask(pb.Callback(generate=request)).generated

    def log(self, level, message, **fields):
        """Writes to the host's log, under this call. Levels: debug, info, warn, error."""
        if LEVELS.index(level) < LEVELS.index(self.start.log_level or "info"):
            return
        line = pb.Log(level=level, message=_bytes(message))
        for key, value in fields.items():
            line.fields.add(key=key, value=_bytes(value))
        self._send(pb.CondenseResponse(log=line))

    def progress(self, fraction=None, text=""):
        """Tells whoever waits how far the call is, from 0 to 1; None if unknown."""
        self._send(pb.CondenseResponse(progress=pb.Progress(fraction=fraction, text=text)))

    def step(self, name, note="", saved=None, **numbers):
        """Says in the report what was done, for people.

        saved is a dict of tokens by kind of content; numbers are looked, changed,
        tokens_before, tokens_after and ms, as Step in condense.proto has them.
        """
        self.steps.append(pb.Step(name=name, note=_bytes(note), saved=saved or {}, **numbers))

    def check(self):
        """Raises Cancelled if the host does not wait any longer. Call it now and then."""
        if self._is_cancelled():
            raise Cancelled("the host does not wait any longer")

    def done(self):
        """Sends the edits and ends the answer. For server.py and testing.py."""
        self.check()
        self._flush()
        self._send(pb.CondenseResponse(done=pb.Done(usage=self.usage, steps=self.steps)))

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
                continue  # something that came later
            if reply.HasField("error"):
                raise HostError(reply.error)
            return reply

    def _receive(self):
        """Returns the next request, put together if it came in fragments."""
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
    """Cuts messages into the smallest runs that keep every tool call with its result.

    Returns triples: the indexes of the first and the last message, and whether a call in
    them was not answered. Where an ID is used twice, a result answers the oldest call before
    it that is still open.
    """
    reach = list(range(len(messages)))
    calls = collections.defaultdict(collections.deque)
    for i, message in enumerate(messages):
        for part in message.parts:
            kind = part.WhichOneof("kind")
            if kind == "tool_call":
                calls[part.tool_call.id].append(i)
            elif kind == "tool_result" and calls[part.tool_result.call_id]:
                caller = calls[part.tool_result.call_id].popleft()
                reach[caller] = max(reach[caller], i)
    unanswered = {i for waiting in calls.values() for i in waiting}
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


def _bytes(value):
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")
