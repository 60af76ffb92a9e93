"""python3 -m unittest"""

import unittest

import account
from condense import pb
from condense.testing import rehearse


def says(role, text, **kw):
    return pb.Message(role=role, parts=[pb.Part(text=text.encode())], tokens=100, **kw)


class Account(unittest.TestCase):
    def setUp(self):
        self.asked = []

    def ask(self, messages, state=b""):
        def generate(request):
            self.asked.append(request.input[0].message.parts[0].text.decode())
            return f"account {len(self.asked)}"

        start = pb.Start(conversation="c", state=state, budget=pb.Budget(window=1000, limit=900, target=100))
        return rehearse(account.STRATEGY, messages, {"recent": 1, "words": 50}, start, generate=generate)

    def test_only_what_is_new_is_read(self):
        first = self.ask([says("user", "build it"), says("assistant", "rule", protected=True), says("assistant", "built"), says("user", "test it")])
        self.assertEqual(self.asked, ["Account:\n\n\nMessages since:\nuser: build it\nassistant: rule\nassistant: built"])
        self.assertEqual([p.text for m in first.messages for p in m.parts], [b"account 1", b"rule", b"test it"])
        for i, m in enumerate(first.messages):
            m.id = m.id or f"new{i}"
        more = [*first.messages, says("assistant", "tested", id="m5"), says("user", "thanks", id="m6")]
        second = self.ask(more, first.state)
        self.assertEqual(self.asked[1], "Account:\naccount 1\n\nMessages since:\nuser: test it\nassistant: tested")
        self.assertEqual([p.text for m in second.messages for p in m.parts], [b"account 2", b"rule", b"thanks"])

    def test_after_an_undo_everything_is_read_again(self):
        self.ask([says("user", "build it"), says("assistant", "built"), says("user", "test it")], b"")
        self.assertEqual(self.asked, ["Account:\n\n\nMessages since:\nuser: build it\nassistant: built"])

    def test_nothing_is_new(self):
        r = self.ask([says("user", "build it")], b'{"account": "a", "read": []}')
        self.assertEqual((self.asked, len(r.messages), r.state), ([], 1, b'{"account": "a", "read": []}'))

    def test_the_state_is_small(self):
        messages = [says("user", "x" * 9000, id=f"a-rather-long-id-{i}") for i in range(2000)] + [says("user", "end", id="end")]
        self.assertLess(len(self.ask(messages).state), 64 << 10)


if __name__ == "__main__":
    unittest.main()
