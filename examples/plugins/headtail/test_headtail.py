"""python3 -m unittest"""

import random
import threading
import unittest

import headtail
from condense import Cancelled, pb
from condense.testing import rehearse

LOG = b"".join(b"line %d\n" % i for i in range(1, 101))
DEFAULTS = {s.name: s.default for s in headtail.STRATEGY.settings}


def call(id):
    return pb.Message(role="assistant", parts=[pb.Part(tool_call=pb.ToolCall(id=id, name="shell", args=b"{}"))])


def answer(id, *content, **kw):
    return pb.Message(role="user", parts=[pb.Part(tool_result=pb.ToolResult(call_id=id, content=content))], **kw)


def text(b):
    return pb.Part(text=b)


def ask(messages, **settings):
    return rehearse(headtail.STRATEGY, messages, {"head": 2, "tail": 2, "recent": 0, **settings})


def said(messages):
    return [c.text for m in messages for p in m.parts if p.HasField("tool_result") for c in p.tool_result.content]


CUT = b"line 1\nline 2\n[... 96 lines, 761 bytes left out ...]\nline 99\nline 100\n"


class Results(unittest.TestCase):
    def test_head_and_tail_are_kept(self):
        r = ask([call("c1"), answer("c1", text(LOG))])
        self.assertEqual(said(r.messages), [CUT])
        self.assertEqual([m.id for m in r.messages], ["m1", "m2"])
        self.assertEqual([(s.name, s.looked, s.changed) for s in r.steps], [("long results", 1, 1)])
        self.assertGreater(r.steps[0].saved["tool_result"], 100)

    def test_the_oldest_first_and_no_more_than_needed(self):
        messages = [m for c in "abcd" for m in (call(c), answer(c, text(LOG)))]
        self.assertEqual([s == LOG for s in said(ask(messages).messages)], [False, False, False, True])

    def test_a_conversation_on_target_is_unchanged(self):
        budget = pb.Budget(window=10**6, limit=10**6, target=10**6)
        r = rehearse(headtail.STRATEGY, [call("c1"), answer("c1", text(LOG))], {"recent": 0}, pb.Start(budget=budget))
        self.assertEqual(said(r.messages), [LOG])

    def test_recent_results_are_kept(self):
        messages = [m for c in "ab" for m in (call(c), answer(c, text(LOG)))]
        self.assertEqual(said(ask(messages, recent=1).messages), [CUT, LOG])
        self.assertEqual(said(ask(messages, recent=9).messages), [LOG, LOG])

    def test_protected_messages_are_kept(self):
        self.assertEqual(said(ask([call("c1"), answer("c1", text(LOG), protected=True)]).messages), [LOG])

    def test_an_image_next_to_it_is_kept(self):
        picture = pb.Part(image=pb.Image(media_type="image/png", data=b"AAAA"))
        r = ask([call("c1"), answer("c1", picture, text(LOG * 50))])
        content = r.messages[1].parts[0].tool_result.content
        self.assertEqual(content[0], picture)
        self.assertLess(len(content[1].text), 100)

    def test_a_result_that_would_not_get_smaller_is_kept(self):
        short = b"a\nb\nc\nd\ne\nf\n"
        self.assertEqual(said(ask([call("c1"), answer("c1", text(short))]).messages), [short])

    def test_no_messages(self):
        self.assertEqual(ask([]).messages, [])

    def test_cancelled(self):
        stopped = threading.Event()
        stopped.set()
        with self.assertRaises(Cancelled):
            rehearse(headtail.STRATEGY, [call("c1"), answer("c1", text(LOG))], cancelled=stopped)

    def test_invalid_settings_are_rejected_by_name(self):
        for settings, message in (
            ({"head": -1}, "head: must not be negative"),
            ({"head": "20"}, "head: want integer, have string"),
            ({"head": True}, "head: want integer, have boolean"),
            ({"max_bytes": 10}, "max_bytes: must be at least 400"),
            ({"lines": 3}, "lines: unknown; there are head, tail, max_bytes, recent"),
        ):
            with self.assertRaises(ValueError, msg=settings) as caught:
                rehearse(headtail.STRATEGY, [], settings)
            self.assertEqual(str(caught.exception), message)


class Cut(unittest.TestCase):
    def test_one_long_line(self):
        short = headtail.cut(b"x" * 10_000, {**DEFAULTS, "max_bytes": 500})
        self.assertEqual(short, b"x" * 200 + b"\n[... 1 lines, 9600 bytes left out ...]\n" + b"x" * 200)

    def test_unused_space_of_the_head_is_given_to_the_tail(self):
        short = headtail.cut(b"begin\n" + b"x" * 10_000, {"head": 1, "tail": 1, "max_bytes": 500})
        self.assertEqual(short, b"begin\n[... 1 lines, 9606 bytes left out ...]\n" + b"x" * 394)

    def test_characters_are_not_split(self):
        for character in "é", "漢", "🙂":
            for shift in range(4):
                short = headtail.cut(b"a" * shift + (character * 5000).encode(), {**DEFAULTS, "max_bytes": 500})
                self.assertNotIn("\ufffd", short.decode(errors="replace"))

    def test_it_is_small_enough_and_not_cut_again(self):
        """Random texts and settings, from a fixed seed, so that failures can be repeated."""
        random_ = random.Random(1)
        for _ in range(3000):
            pieces = [b"\n", b"\r\n", b"\r", b"x", "é".encode(), "🙂".encode(), b"\xff", b"word " * 20]
            content = b"".join(random_.choices(pieces, k=random_.randrange(400)))
            settings = {"head": random_.randrange(5), "tail": random_.randrange(5), "max_bytes": random_.randrange(400, 900)}
            short = headtail.cut(content, settings)
            if short is not None:
                self.assertLessEqual(len(short), settings["max_bytes"], (content, settings))
                self.assertIsNone(headtail.cut(short, settings), (content, settings, short))


if __name__ == "__main__":
    unittest.main()
