"""A small image service: real HTTP over a real socket, images in memory, failures on demand."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nova.clients import image_data
from nova.clients.glance import Glance
from nova.model.image.images import Image


@dataclass
class Knobs:
    """Failures of the service; each use decrements its count."""

    fail_next: int = 0
    fail_status: int = 503
    break_data_after: list[int] = field(default_factory=list)  # one entry per download: bytes until it is cut
    no_ranges: bool = False
    stall_s: float = 0.0
    flip_a_byte: bool = False
    token: str | None = None  # the only valid token
    no_locations: int = 0  # the status for requests of an image's locations


class FakeGlance:
    """``with FakeGlance() as glance: glance.add(b"...", disk_format="raw")``; ``glance.url`` is its address."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.address = address
        self.images: dict[str, dict[str, Any]] = {}
        self.data: dict[str, bytes] = {}
        self.locations: dict[str, list[str]] = {}  # of images, shown to services
        self.knobs = Knobs()
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.url = ""
        self.connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> FakeGlance:
        self.come_back()
        return self

    def __exit__(self, *exc: object) -> None:
        self.go_away()

    def come_back(self) -> None:
        """Listen: on a free port the first time, on the same port later."""
        fake = self

        class Handler(_Handler):
            glance = fake
        self._server = ThreadingHTTPServer((self.address, urlsplit(self.url).port or 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{self.address}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def go_away(self) -> None:
        """Refuse new connections and close the open ones."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def add(self, data: bytes = b"", **members: Any) -> str:
        """Add an image and return its id. ``members``: fields of Glance's JSON."""
        image_id = members.pop("id", None) or str(uuid.uuid4())
        self.data[image_id] = data
        self.images[image_id] = {
            "id": image_id, "name": "an image", "status": "active", "visibility": "public", "owner": "o",
            "disk_format": "raw", "container_format": "bare", "size": len(data), "virtual_size": None, "min_disk": 0,
            "min_ram": 0, "protected": False, "os_hidden": False, "tags": [], "checksum": hashlib.md5(data).hexdigest(),
            "os_hash_algo": "sha512", "os_hash_value": hashlib.sha512(data).hexdigest(),
            "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z", "stores": "local",
            "self": f"/v2/images/{image_id}", "file": f"/v2/images/{image_id}/file", "schema": "/v2/schemas/image",
            **members}
        return image_id

    def downloads(self) -> int:
        return sum(path.endswith("/file") for _method, path, _headers in self.requests)


class DirectImages:
    """Source of a host's images, for tests that do not test the proxy: it reads from the image service directly."""

    def __init__(self, glance: Glance) -> None:
        self.glance = glance

    def show(self, image_id: str) -> Image:
        return self.glance.show(image_id)

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        return image_data.download(self.glance, image, path, limit_bytes, image_data.Retries(3, 0.01))


class _Handler(BaseHTTPRequestHandler):
    glance: FakeGlance
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.glance.connections.add(self.request)
        super().setup()

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.glance.connections.discard(self.request)

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if not self._admitted():
            return
        if path == "/":
            return self._answer(300, {"versions": [{"id": "v2.9", "status": "CURRENT", "links": [
                {"rel": "self", "href": f"{self.glance.url}/v2/"}]}]})
        if path == "/v2/images":
            return self._list(query)
        image_id, tail = self._target(path)
        if image_id is None:
            return self._answer(404, {"message": "No image found"})
        if tail == "locations":
            return self._send_locations(image_id)
        return self._send_data(image_id) if tail == "file" else self._answer(200, self.glance.images[image_id])

    def do_DELETE(self) -> None:
        if not self._admitted():
            return
        image_id, _tail = self._target(self.path)
        if image_id is None:
            return self._answer(404, {"message": "No image found"})
        if self.glance.images[image_id]["protected"]:
            return self._answer(403, {"message": "Image is protected and cannot be deleted."})
        del self.glance.images[image_id], self.glance.data[image_id]
        self._answer(204, None)

    def do_POST(self) -> None:
        members = json.loads(self._body())
        if not self._admitted():
            return
        if self.path.endswith("/locations"):
            return self._take_location(members["url"])
        if not all(isinstance(value, str) for key, value in members.items() if key not in ("min_disk", "min_ram",
                                                                                             "protected", "tags")):
            return self._answer(400, {"message": "Provided object does not match schema 'image'"})
        if any(ord(letter) > 0xFFFF for letter in members.get("name", "")):  # utf8mb3 in its database
            return self._page(400, "Characters of more than 3 bytes are not supported &amp; refused.")
        if members.get("id") in self.glance.images:
            return self._answer(409, {"message": f"Image ID {members['id']} already exists!"})
        empty = {"status": "queued", "size": None, "checksum": None, "os_hash_algo": None, "os_hash_value": None,
                 "disk_format": None, "container_format": None, "visibility": "shared",
                 "owner": (self.headers.get("X-Auth-Token") or "o").rpartition(":")[2]}  # of USER:PROJECT
        image_id = self.glance.add(**{**empty, **members})
        self._answer(201, self.glance.images[image_id])

    def do_PUT(self) -> None:
        data = self._body()
        if len(data) < int(self.headers["Content-Length"]):  # the client has disconnected
            return
        if not self._admitted():
            return
        image_id, _tail = self._target(self.path)
        if image_id is None:
            return self._answer(404, {"message": "No image found"})
        image = self.glance.images[image_id]
        if image["status"] != "queued" or not (image["disk_format"] and image["container_format"]):
            return self._answer(409, {"message": f"Image status transition from {image['status']} to saving is not "
                                                 "allowed"})
        self.glance.data[image_id] = data
        image.update(status="active", size=len(data), checksum=hashlib.md5(data).hexdigest(), os_hash_algo="sha512",
                     os_hash_value=hashlib.sha512(data).hexdigest())
        self._answer(204, None)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def do_PATCH(self) -> None:
        changes = json.loads(self._body())
        if not self._admitted():
            return
        image_id, _tail = self._target(self.path)
        if image_id is None:
            return self._answer(404, {"message": "No image found"})
        image = self.glance.images[image_id]
        for change in changes:
            key = change["path"].removeprefix("/").replace("~1", "/").replace("~0", "~")
            if change["op"] == "remove":
                del image[key]
            else:
                assert (change["op"] == "replace") == (key in image)
                image[key] = change["value"]
        self._answer(200, image)

    def _admitted(self) -> bool:
        knobs = self.glance.knobs
        self.glance.requests.append((self.command, self.path, dict(self.headers)))
        if knobs.stall_s:
            time.sleep(knobs.stall_s)
        if knobs.token is not None and self.headers.get("X-Auth-Token") != knobs.token:
            self._answer(401, {"message": "This server could not verify that you are authorized"})
            return False
        if knobs.fail_next:
            knobs.fail_next -= 1
            self._answer(knobs.fail_status, {"message": "not now"})
            return False
        return True

    def _page(self, status: int, reason: str) -> None:
        """Send an error in Glance's form: a page of HTML."""
        page = (f"<html>\n <head>\n  <title>{status} Bad Request</title>\n </head>\n <body>\n  <h1>{status} Bad Request"
                f"</h1>\n  {reason}<br /><br />\n\n\n\n </body>\n</html>").encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=UTF-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def _target(self, path: str) -> tuple[str | None, str]:
        parts = path.removeprefix("/v2/images/").split("/")
        return (parts[0] if parts[0] in self.glance.images else None), (parts[1] if len(parts) > 1 else "")

    def _list(self, query: dict[str, list[str]]) -> None:
        limit = min(int(query.get("limit", ["25"])[0]), 25)
        ids = list(self.glance.images)
        for member in query.keys() - {"limit", "marker", "sort", "sort_key", "sort_dir"}:  # properties, too
            wanted = query[member][0]
            among = wanted[3:].split(",") if wanted.startswith("in:") else [wanted]
            ids = [one for one in ids if self.glance.images[one].get(member) in among]
        start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
        page = ids[start:start + limit]
        body: dict[str, Any] = {"images": [self.glance.images[one] for one in page]}
        if page and start + limit < len(ids):
            body["next"] = f"/v2/images?marker={page[-1]}&limit={limit}"
        self._answer(200, body)

    def _take_location(self, url: str) -> None:
        image_id, _tail = self._target(self.path)
        if image_id is None or self.glance.knobs.no_locations:
            return self._answer(self.glance.knobs.no_locations or 404, {"message": "no"})
        if self.glance.images[image_id]["status"] != "queued":
            return self._answer(409, {"message": "It's not allowed to add locations if image status is active."})
        self.glance.locations[image_id] = [url]
        self.glance.images[image_id]["status"] = "active"
        self._answer(202, None)

    def _send_locations(self, image_id: str) -> None:
        if status := self.glance.knobs.no_locations:
            return self._answer(status, {"message": "no"})
        self._answer(200, [{"url": url, "metadata": {}} for url in self.glance.locations.get(image_id, ())])

    def _send_data(self, image_id: str) -> None:
        data, knobs = self.glance.data[image_id], self.glance.knobs
        begin = 0
        if (wanted := self.headers.get("Range")) and not knobs.no_ranges:
            begin, last = (int(one or len(data)) for one in wanted.removeprefix("bytes=").split("-"))
        body = bytearray(data[begin:last + 1] if wanted and not knobs.no_ranges else data)
        if knobs.flip_a_byte and body:
            body[0] ^= 0xFF
        self.send_response(206 if wanted and not knobs.no_ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/octet-stream")
        self.end_headers()
        if knobs.break_data_after:
            self.wfile.write(body[:knobs.break_data_after.pop(0)])
            self.close_connection = True
            return
        self.wfile.write(body)

    def _answer(self, status: int, body: object) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass
