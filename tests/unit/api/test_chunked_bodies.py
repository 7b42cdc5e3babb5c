"""Bodies in chunks over HTTP: the API takes them like any other, up to the limit that the operator has set."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import msgspec
import pytest

from nova import client_bounds, http_server
from tests.fakes.api import ApiClient, configuration
from tests.unit.api.test_keypairs import SSH

LIMIT = 2000


class Served:
    def __init__(self) -> None:
        self.conf = configuration()
        ApiClient(conf=self.conf)  # the middleware brings its option
        self.conf.set_override("max_request_body_size", LIMIT, group="oslo_middleware")
        self.client = ApiClient(conf=self.conf)
        self.server = http_server.Server(http_server.bind("127.0.0.1", 0), self.client.application,
                                         http_server.ClientBounds(chunked_bytes=client_bounds.largest_body(self.conf)))
        self.server.start()

    def post(self, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self.server.sock.getsockname(), timeout=5)
        connection.request("POST", "/v2.1/os-keypairs", body=iter([body[:9], body[9:]]), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked", "Content-Type": "application/json",
                                    "X-Auth-Token": "demo:demo"})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.server.stop(1)
    made.server.sock.close()


def test_body_in_chunks_is_one_like_any_other(served: Served) -> None:
    status, said = served.post(msgspec.json.encode({"keypair": {"name": "key", "public_key": SSH}}))
    assert (status, msgspec.json.decode(said)["keypair"]["name"]) == (200, "key")
    assert served.client.conductor.keypairs[("demo", "key")].public_key == SSH


@pytest.mark.parametrize("body", [b"", b"{", b'{"keypair": {"name": 1}}'])
def test_body_in_chunks_that_is_none_of_ours_is_a_400(served: Served, body: bytes) -> None:
    assert served.post(body)[0] == 400


def test_body_in_chunks_above_the_operators_limit_is_a_413_that_names_it(served: Served) -> None:
    status, said = served.post(b" " * (LIMIT + 1))
    assert status == 413
    assert str(LIMIT).encode() in said


def test_largest_body_where_no_application_has_a_limit_is_the_servers() -> None:
    assert client_bounds.largest_body(configuration()) == http_server.BODY_BYTES
