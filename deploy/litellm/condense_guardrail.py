"""Condenses each request's conversation with `condense serve` before LiteLLM sends it. See docs/other-gateways.md."""

import asyncio
import hashlib
import json
import os
import urllib.error
import urllib.request

from litellm.integrations.custom_guardrail import CustomGuardrail

URL = os.environ.get("CONDENSE_URL", "http://127.0.0.1:8765").rstrip("/")
TIMEOUT = float(os.environ.get("CONDENSE_TIMEOUT", "60"))  # seconds; a condensation with a language model takes some
HEADERS = ("x-litellm-session-id", "x-claude-code-session-id", "session-id", "x-claude-code-agent-id")


def compress(body):
    """Returns the messages to send, or None: then the request goes on as it came."""
    headers = {"Content-Type": "application/json"}
    if os.environ.get("CONDENSE_TOKEN"):
        headers["Authorization"] = "Bearer " + os.environ["CONDENSE_TOKEN"]
    for _ in range(2):  # condense answers 503 if the next try can succeed
        try:
            request = urllib.request.Request(URL + "/v1/compress", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return json.load(answer).get("messages")
        except urllib.error.HTTPError as err:
            if err.code != 503:
                return None
        except (OSError, ValueError):
            return None
    return None


def session(data, caller):
    """Names the conversation: the same name for all its requests, and no other caller's."""
    metadata = data.get("metadata") or data.get("litellm_metadata") or {}
    headers = (data.get("proxy_server_request") or {}).get("headers") or {}
    names = [data.get("litellm_session_id"), metadata.get("session_id"), *(headers.get(h) for h in HEADERS)]
    names = [str(n) for n in names if n]
    key = str(getattr(caller, "api_key", None) or getattr(caller, "user_id", None) or "")
    return hashlib.sha256("\n".join([key, *names]).encode()).hexdigest() if names else None


class Condense(CustomGuardrail):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        if not data.get("messages"):
            return data
        body = {k: data[k] for k in ("model", "messages", "system", "tools") if data.get(k)}
        name = session(data, user_api_key_dict)
        if name:
            body["config"] = {"session_id": name}
        messages = await asyncio.to_thread(compress, body)
        if messages:
            data["messages"] = messages
        return data
