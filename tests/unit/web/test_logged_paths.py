"""What of a request's path and query comes into a log."""

from __future__ import annotations

import pytest

from nova.web.paths import logged


@pytest.mark.parametrize(("query", "shown"), [
    ("X-Amz-Date=1&X-Amz-Signature=deadbeef&x=1", "X-Amz-Date=1&X-Amz-Signature=***&x=1"),
    ("Signature=dead%2Bbeef%3D&Expires=1", "Signature=***&Expires=1"),
    ("X-Amz-Security-Token=dead&MySignature=shown", "X-Amz-Security-Token=***&MySignature=shown"),
    ("X-Auth-Token=gAAAA&limit=1&x-subject-token=b", "X-Auth-Token=***&limit=1&x-subject-token=***"),
    ("token=dead&password=word&auth_token=x", "token=***&password=***&auth_token=***"),
    ("SignatureVersion=2&marker=a", "SignatureVersion=2&marker=a")])
def test_query_when_it_has_a_secret_then_the_log_has_none(query: str, shown: str) -> None:
    assert logged({"PATH_INFO": "/bucket/key", "QUERY_STRING": query}) == f"/bucket/key?{shown}"
