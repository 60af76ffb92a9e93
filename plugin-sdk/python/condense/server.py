"""The plugin as a process: handshake, gRPC, the services that go-plugin expects."""

import base64
import concurrent.futures
import datetime
import json
import os
import platform
import queue
import shutil
import signal
import sys
import tempfile
import threading
import traceback

import grpc

from . import condense_pb2 as pb
from .call import Call, Cancelled, HostError, InvalidRequest, Unavailable, Unsupported

SDK = f"condense-python 0.1.0, Python {platform.python_version()}"

STATUS = [
    (InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (Unavailable, grpc.StatusCode.UNAVAILABLE),
    (Unsupported, grpc.StatusCode.UNIMPLEMENTED),
]

SDK_FOLDER = os.path.dirname(os.path.abspath(__file__))

# A call uses a thread of gRPC's and one of its own. By default a host makes four calls at a
# time, in addition to health checks.
MAX_CALLS = 64


def main(strategy):
    """Serves strategy to the host that started the program, and does not return.

    Started by hand the program prints what it is; with -debug it waits for a host to attach,
    so that it can run under a debugger: python3 -m pdb plugin.py -debug.
    """
    from . import HANDSHAKE, HOSTED

    args = [a.lstrip("-") for a in sys.argv[1:]]
    if HOSTED and not args:
        _serve(strategy, HANDSHAKE)
    elif args == ["debug"]:
        _serve(strategy, None)
    elif args == ["version"]:
        print(strategy.name, strategy.version)
    elif args in (["h"], ["help"]):
        print(_help(strategy))
    elif args:
        sys.exit(_usage(f"unknown argument {args[0]}; there are -h, -version and -debug"))
    else:
        sys.exit(_usage(_help(strategy)))


def _usage(text):
    print(text, file=sys.stderr)
    return 2


def _serve(strategy, handshake):
    """Serves until the host stops it. Without handshake it waits for a host to attach."""
    if os.name != "posix":
        sys.exit("plugins in Python need unix sockets, which gRPC has not on this system")
    stop = threading.Event()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(MAX_CALLS))
    server.add_generic_rpc_handlers((_provider_service(strategy), *_host_services(stop)))

    own = not os.environ.get("PLUGIN_UNIX_SOCKET_DIR")
    folder = tempfile.mkdtemp(prefix="condense-") if own else os.environ["PLUGIN_UNIX_SOCKET_DIR"]
    socket = os.path.join(folder, f"plugin{os.getpid()}")
    credentials, announced = _credentials() if handshake else (None, "")
    if credentials:
        server.add_secure_port("unix:" + socket, credentials)
    else:
        server.add_insecure_port("unix:" + socket)
    server.start()

    if handshake:
        # Ctrl-C at the terminal stops the host, which then stops its plugins.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.environ.get("CONDENSE_PLUGIN_EXIT_WITH_STDIN") == "1":
            threading.Thread(target=_exit_with_stdin, daemon=True).start()
        print(f"1|1|unix|{socket}|grpc|{announced}", file=handshake, flush=True)
    else:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        print(_attachment(strategy.name, socket), flush=True)
    stop.wait()
    server.stop(grace=0.5).wait()
    if own:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.flush()
    os._exit(0)  # even if threads of calls are running


def _exit_with_stdin():
    """Ends the process with the host, which holds the other end of standard input."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def _provider_service(strategy):
    state = {}  # settings, the ones in force; absent before Configure

    def describe(request, context):
        about = strategy.describe()
        about.sdk = SDK
        return about

    def configure(request, context):
        settings, problems = strategy.configure(request.settings)
        if not problems:
            state["settings"] = settings
        return pb.ConfigureResponse(
            problems=[pb.Problem(key=p.key, message=p.message) for p in problems],
            estimates=strategy.estimate is not None,
        )

    def condense(requests, context):
        if "settings" not in state:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not configured yet")
        # The strategy is a function that sends, but gRPC reads from an iterator: the strategy
        # runs in a thread of its own, with a queue between them.
        answers = queue.Queue(maxsize=64)
        cancelled = threading.Event()

        def send(answer):
            while not cancelled.is_set():
                try:
                    return answers.put(answer, timeout=0.2)
                except queue.Full:
                    pass
            raise Cancelled("the host does not wait any longer")

        def run(settings):
            try:
                call = Call(_until_cancelled(requests), send, cancelled.is_set)
                (strategy.estimate if call.start.estimate else strategy.condense)(call, settings)
                call.done()
                send(None)
            except Cancelled:
                pass
            except BaseException as err:  # the host gets any error
                _try(lambda: send(err))

        def wake():
            cancelled.set()
            _try(lambda: answers.put_nowait(None))

        context.add_callback(wake)  # when the call has ended for any reason
        threading.Thread(target=run, args=(state["settings"],), daemon=True).start()
        while not cancelled.is_set():
            answer = answers.get()
            if answer is None:
                return
            if isinstance(answer, BaseException):
                _fail(context, answer)
            yield answer

    return grpc.method_handlers_generic_handler(
        "condense.v1.ProviderService",
        {
            "Describe": grpc.unary_unary_rpc_method_handler(
                describe, pb.DescribeRequest.FromString, pb.DescribeResponse.SerializeToString
            ),
            "Configure": grpc.unary_unary_rpc_method_handler(
                configure, pb.ConfigureRequest.FromString, pb.ConfigureResponse.SerializeToString
            ),
            "Condense": grpc.stream_stream_rpc_method_handler(
                condense, pb.CondenseRequest.FromString, pb.CondenseResponse.SerializeToString
            ),
        },
    )


def _until_cancelled(requests):
    """Iterates over requests until the call ends for any reason."""
    try:
        yield from requests
    except grpc.RpcError:
        return


def _fail(context, err):
    """Ends the call with the status for err."""
    for kind, code in STATUS:
        if isinstance(err, kind):
            context.abort(code, str(err))
    if isinstance(err, HostError) and err.code not in (pb.CallbackError.CODE_UNSUPPORTED, pb.CallbackError.CODE_INVALID):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(err))  # a model failed, and not this code
    text = f"{type(err).__name__}: {err}{_place(err)}"
    _log("error", f"the strategy failed: {text}", error="".join(traceback.format_exception(type(err), err, _outside(err.__traceback__))))
    context.abort(grpc.StatusCode.UNKNOWN, text)


def _outside(trace):
    """Returns trace without the frames of this SDK at its beginning."""
    first = trace
    while trace and os.path.dirname(os.path.abspath(trace.tb_frame.f_code.co_filename)) == SDK_FOLDER:
        trace = trace.tb_next
    return trace or first


def _place(err):
    """Returns the line of the author's files that failed, as " at plugin.py:12"; "" if there is none."""
    home = os.path.dirname(os.path.abspath(sys.argv[0])) + os.sep
    for frame in reversed(traceback.extract_tb(err.__traceback__)):
        file = os.path.abspath(frame.filename)
        own = file.startswith(home) and "site-packages" not in file and os.path.dirname(file) != SDK_FOLDER
        if own and not frame.filename.startswith("<"):
            return f" at {file[len(home):]}:{frame.lineno}"
    return ""


def _try(f):
    try:
        f()
    except (Cancelled, queue.Full):
        pass


def _host_services(stop):
    """The services that go-plugin requires: health check and shutdown."""

    def check(request, context):
        return b"\x08\x01"  # HealthCheckResponse{status: SERVING}

    def shutdown(request, context):
        # The answer must be sent before the server stops.
        context.add_callback(stop.set)
        return b""

    return (
        grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)}
        ),
        grpc.method_handlers_generic_handler(
            "plugin.GRPCController", {"Shutdown": grpc.unary_unary_rpc_method_handler(shutdown)}
        ),
    )


def _credentials():
    """Returns credentials for mutual TLS and the certificate in the form of the handshake.

    The host trusts the certificate in the handshake, the plugin the one in its environment;
    both are made for this start only.
    """
    host = os.environ.get("PLUGIN_CLIENT_CERT")
    if not host:
        return None, ""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)  # clocks may differ
        .not_valid_after(now + 3650 * day)  # and a process may run for long
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    der = certificate.public_bytes(serialization.Encoding.DER)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    credentials = grpc.ssl_server_credentials(
        [(secret, pem)], root_certificates=host.encode(), require_client_auth=True
    )
    return credentials, base64.b64encode(der).decode().rstrip("=")  # go-plugin rejects padding


def _log(level, message, **fields):
    """Writes a log line to standard error in the format of go-plugin."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    line = {"@level": level, "@message": message, "@timestamp": now, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)


def _help(strategy):
    program = os.path.abspath(sys.argv[0])
    folder = os.path.dirname(program)
    lines = []
    for s in strategy.describe().settings:
        choice = f" One of {', '.join(s.enum)}." if s.enum else ""
        lines.append(f"        {s.name}: {s.default.decode()}   # {s.doc}{choice}\n")
    settings = "      settings:\n" + "".join(lines) if lines else ""
    return f"""{strategy.name} {strategy.version} is a plugin of condense, which shortens conversations with language models.

  {strategy.doc}

It does nothing by itself: condense starts it. Configure it in condense.yaml:

  providers:
    {strategy.name}:
      plugin: {program}
      folder: {folder}
{settings}
Test it with     condense plugin test {program} --folder {folder}
Debug it with    {program} -debug    which prints what to give to condense"""


def _attachment(name, socket):
    address = {"Network": "unix", "String": socket}
    attach = {name: {"Protocol": "grpc", "ProtocolVersion": 1, "Pid": os.getpid(), "Test": True, "Addr": address}}
    return f"""{name} waits for a host. It runs until it is interrupted; the connection is not encrypted.
If your condense.yaml has another name for the provider than "{name}", write that one into this
line, and put the line before your command:

CONDENSE_REATTACH='{json.dumps(attach)}' \\
  condense run conversation.jsonl"""
