"""HTTP server of the small volume service: versions, tokens, and network failures."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fakes.cinder_rules import Answer, Asked, Refusal, Rules

if TYPE_CHECKING:
    from tests.fakes.cinder import FakeCinder, Trouble

OURS = "0" * 31 + "1"  # the project of an administrator, for unknown tokens
PROJECT = re.compile(r"[0-9a-f-]{32,36}")  # in a path; other values give 404


class Listener:
    """Server that runs until ``end`` is called."""

    def __init__(self, fake: FakeCinder, port: int) -> None:
        self._connections: set[socket.socket] = set()
        handler = type("Handler", (_Handler,), {"fake": fake, "connections": self._connections})
        self._server = ThreadingHTTPServer((fake.address, port), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def end(self) -> None:
        """Stop the server and close open connections; may be called twice."""
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeCinder
    connections: set[socket.socket]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.connections.add(self.request)
        super().setup()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.connections.discard(self.request)

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fake, path = self.fake, self.path.removeprefix("/v3")
        with fake.turn:
            fake.requests.append((self.command, path))
            fake.headers.append(dict(self.headers))
            trouble = next((one for one in fake.troubles if one.meets(self.command, path)), None)
            if trouble is not None:
                trouble.left -= 1
        self._answer_in(trouble, body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def _answer_in(self, trouble: Trouble | None, body: bytes) -> None:
        how = trouble.how if trouble else ""
        if isinstance(how, int):
            return self._send(how, {"computeFault": {"code": how, "message": "Not now."}})
        if how == "slow" and trouble:
            time.sleep(trouble.seconds)
        answer = self._answer(body) if how != "refused" else None
        if answer is None or how == "lost":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._send(*answer)

    def _answer(self, body: bytes) -> Answer:
        fake, parts = self.fake, urlsplit(self.path)
        if fake.instead:
            return 200, fake.instead[0]
        if parts.path == "/":
            newest = "{}.{}".format(*fake.newest)
            return 300, {"versions": [{"id": "v3.0", "status": "CURRENT", "version": newest, "min_version": "3.0"}]}
        try:
            with fake.turn:
                return Rules(fake).answer(self._asked(parts.path, dict(parse_qsl(parts.query)), body))
        except Refusal as no:
            return no.status, no.body

    def _asked(self, path: str, query: dict[str, str], body: bytes) -> Asked:
        words = [unquote(one) for one in path.removeprefix("/v3/").split("/")]
        project = self.fake.tokens.get(self.headers.get("X-Auth-Token") or "")
        if PROJECT.fullmatch(words[0]) and words.pop(0) != (project or OURS):
            raise Refusal(400, "Malformed request url")
        said = re.fullmatch(r"volume (\d+)\.(\d+)", self.headers.get("OpenStack-API-Version") or "volume 3.0")
        assert said is not None
        proof, accepted = self.headers.get("X-Service-Token"), self.fake.service_tokens
        return Asked(self.command, tuple(words), query, json.loads(body) if body else None,
                     (int(said[1]), int(said[2])), project, project or OURS,
                     proof is not None and (accepted is None or proof in accepted))

    def _send(self, status: int, body: Any) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        with contextlib.suppress(OSError):  # the client may have disconnected
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Content-Type", "application/json")
            self.send_header("x-openstack-request-id", f"req-{len(self.fake.requests)}")
            self.end_headers()
            self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass
