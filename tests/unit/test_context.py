from __future__ import annotations

import threading

import msgspec
import pytest

from nova import context
from nova.context import RequestContext

ALICE = RequestContext(request_id="req-1", user_id="alice", project_id="p", roles=("member",), token="secret")


def test_entered_when_nested_then_the_outer_one_comes_back():
    assert context.current_or_none() is None
    with context.entered(ALICE):
        with pytest.raises(ValueError), context.entered(context.internal("req-2")) as inner:
            assert context.current() is inner
            assert (inner.request_id, inner.is_admin, inner.user_id) == ("req-2", True, None)
            raise ValueError
        assert context.current() is ALICE
    assert context.current_or_none() is None


def test_current_when_nothing_was_entered_then_a_fresh_request_without_a_user():
    first, second = context.current(), context.current()
    assert first.request_id.startswith("req-") and first.request_id != second.request_id
    assert (first.user_id, first.is_admin, first.roles) == (None, False, ())


def test_entered_is_the_threads_own():
    seen = []
    with context.entered(ALICE):
        thread = threading.Thread(target=lambda: seen.append(context.current_or_none()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_context_shows_no_token():
    assert "secret" not in f"{ALICE} {ALICE!r}"


def test_context_cannot_be_changed():
    with pytest.raises(AttributeError):
        ALICE.is_admin = True


def test_context_over_the_wire_is_the_same():
    packed = msgspec.msgpack.encode(ALICE)
    assert msgspec.msgpack.decode(packed, type=RequestContext) == ALICE
