"""One request adds a bounded number of bytes to the log, whatever it holds (OSSA-2012-003)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nova.api import app
from nova.logs import LONGEST, OneLine, OneObject
from tests.fakes.api import DEMO, ApiClient, configuration

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
LONG = "long" * 16384
MOST_BYTES, MOST_OF_AN_ACCIDENT = 4096, 2 * LONGEST
REQUESTS: dict[str, dict[str, Any]] = {
    "name": {"body": {"server": {"name": LONG, "flavorRef": "1", "imageRef": UUID}}},
    "field that nobody knows": {"body": {"server": {LONG: LONG}}},
    "action that nobody knows": {"path": f"/servers/{UUID}/action", "body": {LONG: None}},
    "hints": {"body": {"server": {"name": "vm", "flavorRef": "1", "imageRef": UUID},
                       "os:scheduler_hints": {"a": LONG}}},
    "metadata": {"path": f"/servers/{UUID}/metadata", "body": {"metadata": {LONG: LONG}}},
    "no JSON": {"raw": LONG.encode()},
    "path": {"method": "GET", "path": f"/servers/{LONG}"},
    "path that leads nowhere": {"method": "GET", "path": f"/{LONG}"},
    "query": {"method": "GET", "path": f"/servers?name={LONG}"},
    "query that nobody knows": {"method": "GET", "path": f"/servers?{LONG}=1"},
    "headers": {"method": "GET", "path": "/servers", "headers": {
        "User-Agent": LONG, "X-OpenStack-Request-ID": f"req-{LONG}", "X-Forwarded-For": LONG, "Referer": LONG}},
    "version": {"method": "GET", "path": "/servers", "version": LONG},
    "media type": {"raw": b"{}", "headers": {"Content-Type": LONG}}}


class Broken:
    """A conductor that has accidents, with what it was asked in its words."""

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any) -> Any:
            raise RuntimeError(f"{name}{args}")
        return fail


class Counting(logging.Handler):
    """Bytes of all lines, as either form of the log has them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.bytes, self.forms = 0, (OneLine(), OneObject())

    def emit(self, record: logging.LogRecord) -> None:
        self.bytes += max(len(form.format(record).encode()) for form in self.forms)


def logged(client: ApiClient, method: str = "POST", path: str = "/servers", **options: Any) -> int:
    """Bytes that a request adds to a log at DEBUG."""
    counting, root = Counting(), logging.getLogger()
    before = root.level
    root.addHandler(counting)
    root.setLevel(logging.DEBUG)
    try:
        client.request(method, path, **options)
    finally:
        root.removeHandler(counting)
        root.setLevel(before)
    return counting.bytes


@pytest.mark.parametrize("what", REQUESTS)
def test_request_when_a_part_of_it_is_huge_then_the_log_grows_by_little(what: str) -> None:
    assert 0 < logged(ApiClient(token=DEMO), **REQUESTS[what]) < MOST_BYTES


@pytest.mark.parametrize("what", REQUESTS)
def test_request_when_it_ends_in_an_accident_then_the_log_grows_by_little(what: str) -> None:
    client = ApiClient(token=DEMO)
    client.application = app.from_conf(Broken(), Broken(), Broken(), configuration())  # type: ignore[arg-type]
    assert 0 < logged(client, **REQUESTS[what]) < MOST_OF_AN_ACCIDENT
