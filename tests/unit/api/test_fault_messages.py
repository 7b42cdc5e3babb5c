"""What a client reads of an error: the message of one that is made for users, and no internals of others."""

from __future__ import annotations

import pytest

from nova import errors
from nova.api.faults import described

REQUEST = "req-1"


@pytest.mark.parametrize("error", [
    errors.Bug("row 7 of instances"), errors.HostRefused("host9 cannot read /var/lib/nova"), KeyError("secret"),
    errors.host.CouldNot(reason="host9 is full")], ids=lambda error: type(error).__name__)
def test_error_of_status_500_then_its_cause_is_in_the_log_alone(error: Exception) -> None:
    status, message = described(error, REQUEST)
    assert status == 500 and REQUEST in message and str(error) not in message


def test_attach_that_the_host_refused_then_the_reason_is_told() -> None:
    refused = errors.server.AttachFailed(server="uuid-1", reason="The volume has no target")
    over_the_wire = errors.from_wire(refused.kind, refused.code, refused.message, {})
    for error in (refused, over_the_wire):
        status, message = described(error, REQUEST)
        assert status == 500 and "uuid-1" in message and "The volume has no target" in message


def test_error_of_a_client_then_its_message_is_told() -> None:
    error = errors.server.NotFound(server="uuid-1")
    assert described(error, REQUEST) == (404, error.message)
