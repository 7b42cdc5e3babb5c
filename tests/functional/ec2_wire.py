"""What clients of Amazon's and the EC2 API said to each other: a server between them that passes on and writes down.

``faults_of`` judges an answer by the service's own model in botocore: what that would drop, or stumble over.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import botocore.parsers
import botocore.session
from defusedxml import ElementTree

#: In answers, and in no model: every one has the first, and an answer with nothing to say the second.
OUR_OWN = ("requestId", "return")
TYPED = ("timestamp", "integer", "long", "float", "double", "boolean")
OURS_ALONE = ("DescribeInstancesV6", "UpdateImage")


class Call(NamedTuple):
    """``agent``: the client's name for itself; ``params`` without those of its signature's headers."""

    agent: str
    method: str
    params: dict[str, str]
    status: int
    body: bytes

    @property
    def action(self) -> str:
        return self.params.get("Action", "")

    @property
    def version(self) -> str:
        return self.params.get("Version", "")

    @property
    def tree(self) -> Any:
        """The answer's root, its namespace taken off every name."""
        root = ElementTree.fromstring(self.body)
        for one in root.iter():
            one.tag = one.tag.rpartition("}")[2]
        return root


class Wire:
    """Listens at ``port`` and asks ``host:behind``, with all headers as they came: a signature covers them."""

    def __init__(self, behind: int) -> None:
        self.calls: list[Call] = []
        handler = type("Handler", (_Handler,), {"wire": self, "behind": behind})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def last(self) -> Call:
        return self.calls[-1]

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    wire: Wire
    behind: int
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "expect"):
                connection.putheader(name, value)
        connection.putheader("Connection", "close")
        with contextlib.suppress(BrokenPipeError):  # too much, and it is answered already
            connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        said = parse_qsl(urlsplit(self.path).query, True) + parse_qsl(body.decode("latin-1"), True)
        self.wire.calls.append(Call(self.headers.get("User-Agent", ""), self.command, dict(said), answer.status,
                                    content))
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = _pass_on

    def log_message(self, format: str, *args: Any) -> None:
        pass


# -- an answer, judged by the model


@functools.cache
def model() -> Any:
    return botocore.session.get_session().get_service_model("ec2")


def faults_of(call: Call) -> list[str]:
    """Of an answer in today's shape, or of an error: what a client made of the model would lose or refuse."""
    if call.status >= 300:
        parsed = _parsed(call, None)
        wanted = (parsed.get("Error", {}).get("Code"), parsed.get("Error", {}).get("Message"),
                  parsed["ResponseMetadata"].get("RequestId"))
        return [] if all(wanted) else [f"{call.action}: an error without {wanted}"]
    if call.action in OURS_ALONE:
        return []
    shape = model().operation_model(call.action).output_shape
    if shape is None:
        return []
    _parsed(call, shape)  # raises where a value cannot be read
    return list(_orphans(call.tree, shape, call.action, OUR_OWN))


def _parsed(call: Call, shape: Any) -> dict[str, Any]:
    answer = {"body": call.body, "headers": {}, "status_code": call.status}
    return dict(botocore.parsers.create_parser("ec2").parse(answer, shape))


def _orphans(element: Any, shape: Any, path: str, allowed: tuple[str, ...] = ()) -> Iterator[str]:
    if shape.type_name == "structure":
        members = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for child in element:
            if child.tag in members:
                yield from _orphans(child, members[child.tag], f"{path}.{child.tag}")
            elif child.tag not in allowed:
                yield f"{path}.{child.tag} is not in the model"
    elif shape.type_name == "list":
        item = shape.member.serialization.get("name", "item")
        for child in element:
            if child.tag != item:
                yield f"{path}.{child.tag} should be {item}"
            yield from _orphans(child, shape.member, f"{path}.{child.tag}")
    elif len(element):
        yield f"{path} has elements, and should be text"
    elif shape.type_name in TYPED and not (element.text or "").strip():
        yield f"{path} is empty, and should be a {shape.type_name}"
    elif shape.type_name == "boolean" and element.text not in ("true", "false"):
        yield f"{path} is {element.text}"
