#!/usr/bin/python3
"""wordserver is an embedding server that counts words, to try embed without a language model: wordserver.py PORT"""

import http.server
import json
import re
import sys
import zlib

DIMENSIONS = 256


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        data = [{"index": i, "embedding": vector(t)} for i, t in enumerate(texts)]
        body = json.dumps({"data": data if self.path == "/v1/embeddings" else []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def vector(text):
    counts = [0] * DIMENSIONS
    for word in re.findall(r"\w{3,}", text.lower()):
        counts[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    return counts


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
