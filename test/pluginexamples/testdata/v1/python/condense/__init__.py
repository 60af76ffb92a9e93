"""What a plugin in Python needs to be started by condense.

Copy this folder next to your plugin and do not change it. Python 3.9 or later with grpcio,
protobuf and cryptography; on Debian and Ubuntu:

    apt-get install python3-grpcio python3-protobuf python3-cryptography

A plugin is a Strategy and a line that serves it:

    import condense

    def shorten(call, settings):
        ...

    STRATEGY = condense.Strategy(
        name="my_plugin",  # lower-case letters, digits, underscores
        version="0.1.0",
        doc="What it does. The first sentence appears in lists.",
        settings=[condense.Setting("keep", 10, "Messages to keep.")],
        condense=shorten,
    )

    if __name__ == "__main__":
        condense.main(STRATEGY)

The methods of a call are in call.py; tests without a host are in testing.py.
"""

import os
import sys

# The cookie is not a secret: it shows that a host, not a user, started the program.
HOSTED = os.environ.get("CONDENSE_PLUGIN_COOKIE") == "8e9d1f52-4c0b-4d77-9f6b-c3c2b1d7a6e0"

# A plugin is pinned by the digest of its folder, which running must not change.
sys.dont_write_bytecode = True

HANDSHAKE = None
if HOSTED:
    # Standard output is reserved for the handshake, its first line. Other output, from a
    # library for instance, is redirected to the host's log.
    HANDSHAKE = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

try:
    import cryptography  # noqa: F401
    import google.protobuf  # noqa: F401
    import grpc  # noqa: F401
except ImportError as err:
    sys.exit(
        f"{sys.executable} cannot import {err.name}, which plugins of condense need.\n"
        "On Debian and Ubuntu: apt-get install python3-grpcio python3-protobuf python3-cryptography\n"
        "Elsewhere: pip install grpcio protobuf cryptography, with the Python that the plugin's first line names"
    )

from . import condense_pb2 as pb  # noqa: E402
from .call import Call, Cancelled, HostError, InvalidRequest, Unavailable, Unsupported, groups  # noqa: E402
from .server import main  # noqa: E402
from .settings import Problem, Setting, Strategy  # noqa: E402

__all__ = [
    "Call", "Cancelled", "HostError", "InvalidRequest", "Problem", "Setting", "Strategy",
    "Unavailable", "Unsupported", "groups", "main", "pb",
]
