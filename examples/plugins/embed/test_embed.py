"""python3 -m unittest"""

import http.server
import json
import threading
import unittest

import embed
import wordserver
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


class TestEmbed(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), wordserver.Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def ask(self, path="/v1/embeddings"):
        start = pb.Start(budget=pb.Budget(target=120))
        return rehearse(embed.STRATEGY, conversation(), {"url": self.address + path, "recent": 1, "min_bytes": 100}, start=start)

    def test_near_paragraphs_stay(self):
        done = self.ask()
        text = done.messages[2].parts[0].tool_result.content[0].text.decode()
        self.assertIn("test test", text)
        self.assertIn("short", text)
        self.assertNotIn("rain", text)
        self.assertTrue(text.endswith("[1 paragraphs left out]"), text)
        self.assertEqual([(s.looked, s.changed) for s in done.steps], [(2, 1)])

    def test_answer_without_vectors(self):
        with self.assertRaises(Unavailable):
            self.ask("/other")

    def test_no_server(self):
        self.server.shutdown()
        self.server.server_close()
        with self.assertRaises(Unavailable):
            self.ask()

    def test_address(self):
        for url, ok in [("http://127.0.0.1:1/", True), ("https://example.com/", True), ("http://example.com/", False)]:
            _, problems = embed.STRATEGY.configure(json.dumps({"url": url}))
            self.assertEqual(not problems, ok, url)


if __name__ == "__main__":
    unittest.main()
