#!/usr/bin/python3
"""account keeps an account of the conversation, and reads only what is new since it was written.

The account is the state of the provider for each conversation: the host brings it back in the next
call, and takes it back when the condensation that it belongs to is undone.
"""

import json

import condense
from condense import pb

PROMPT = b"""You keep the account of a conversation between a user and a coding agent. Below are the account so far and the messages
since. Write the account anew, with everything that the work still needs: the user's wishes, decisions with their reasons, changed
files, open tasks. Only the account, in at most %d words."""

FRAME = 40  # tokens of a message and of the host's line above its text, at most
MOST = 2000  # bytes of a message that the model reads
MOST_NEW = 200_000  # characters of all of them; of more, the newest


def shorten(call, settings):
    known = json.loads(call.state) if call.state else {"account": "", "read": []}
    cut = len(call.messages) - settings["recent"]
    read = set(known["read"])
    new = [m for m in call.messages[: max(0, cut)] if not m.kind and m.id not in read]
    if not new:
        return
    text = "Account:\n%s\n\nMessages since:\n%s" % (known["account"], "\n".join(map(told, new))[-MOST_NEW:])
    answer = call.generate(
        pb.Generate(
            system=PROMPT % settings["words"],
            input=[pb.GenerateInput(message=pb.NewMessage(role="user", parts=[pb.Part(text=text.encode())]))],
            max_output_tokens=3 * settings["words"],
        )
    )
    if sum(m.tokens for m in _hidden(call, cut)) <= call.count([pb.CountItem(content=pb.Content(parts=[pb.Part(text=answer.text)]))])[0] + FRAME:
        return  # the account is no smaller
    call.hide_unless(lambda m, i: i >= cut)
    call.insert([pb.Part(text=answer.text)])
    # Protected messages stay in sight, and are not read again.
    stay = [m.id for m in call.messages[:cut] if m.protected or m.role == "system"]
    call.state = json.dumps({"account": answer.text.decode(errors="replace"), "read": stay})
    call.step("account", looked=len(new), note="of %d messages" % len(call.messages))


def _hidden(call, cut):
    """Yields the messages that hide_unless hides, or a few less."""
    for first, last, is_open in condense.groups(call.messages[:cut]):
        group = call.messages[first : last + 1]
        if not is_open and not any(m.protected or m.role == "system" for m in group):
            yield from group


def told(message):
    """Returns a message as a line: who said what."""
    words = []
    for part in message.parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            words.append(part.text)
        elif kind == "tool_call":
            words.append(b"calls %s %s" % (part.tool_call.name.encode(), part.tool_call.args))
        elif kind == "tool_result":
            words += [c.text for c in part.tool_result.content]
    return message.role + ": " + b" ".join(words)[:MOST].decode(errors="replace")


STRATEGY = condense.Strategy(
    name="account",
    version="0.1.0",
    doc="Replaces old messages by an account of a language model, which it continues from condensation to condensation.",
    settings=[
        condense.Setting("recent", 20, "Messages at the end that are not changed."),
        condense.Setting("words", 400, "The most words of the account."),
    ],
    abilities=["hides", "inserts", "asks_models"],
    condense=shorten,
)

if __name__ == "__main__":
    condense.main(STRATEGY)
