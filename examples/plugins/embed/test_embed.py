"""python3 -m unittest"""

import unittest

import embed
from condense import Unavailable, pb
from condense.testing import rehearse


def conversation():
    about_tests = "test " * 60
    about_rain = "rain " * 60
    result = pb.ToolResult(call_id="c", content=[pb.Part(text=f"{about_rain}\n\n{about_tests}\n\nshort".encode())])
    return [
        pb.Message(role="user", parts=[pb.Part(text=b"Hello")]),
        pb.Message(role="assistant", parts=[pb.Part(tool_call=pb.ToolCall(id="c", name="read", args=b"{}"))]),
        pb.Message(role="user", parts=[pb.Part(tool_result=result)]),
        pb.Message(role="user", parts=[pb.Part(text=b"Which test fails?")]),
    ]


def count_words(ask):
    """Answers an Embed with how often two words are in each text."""
    return pb.Embedded(vectors=[pb.Vector(values=[t.count(b"test"), t.count(b"rain")]) for t in ask.texts])


class TestEmbed(unittest.TestCase):
    def ask(self, answers):
        start = pb.Start(budget=pb.Budget(target=120))
        return rehearse(embed.STRATEGY, conversation(), {"recent": 1, "min_bytes": 100}, start=start, answers=answers)

    def test_near_paragraphs_stay(self):
        done = self.ask({"embed": count_words})
        text = done.messages[2].parts[0].tool_result.content[0].text.decode()
        self.assertIn("test test", text)
        self.assertIn("short", text)
        self.assertNotIn("rain", text)
        self.assertTrue(text.endswith("[1 paragraphs left out]"), text)
        self.assertEqual([(s.looked, s.changed) for s in done.steps], [(2, 1)])

    def test_no_model(self):
        with self.assertRaises(Unavailable):
            self.ask({})


if __name__ == "__main__":
    unittest.main()
