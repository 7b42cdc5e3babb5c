"""Client of the helper, to which a daemon that is not root sends privileged calls.

A :func:`forwarded` function runs in the process itself if that is root. If a daemon has chosen a helper (:func:`use`),
the call is sent there by its name, with its arguments as data. The helper has a table of such calls, and validates
every argument itself (:mod:`nova.privileged.helper`); its safety does not depend on this module.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import ParamSpec, Protocol, TypeVar

import msgspec

from nova import decoding, errors, failures
from nova.privileged import wire

P = ParamSpec("P")
T = TypeVar("T")


class Helper(Protocol):
    """A connection to the helper."""

    #: Name of the connection in the log and in ``nova-manage doctor``.
    name: str

    def ask(self, request: bytes, call: str) -> bytes:
        """Return the answer to one request. Raises host.NoHelper if the helper cannot be reached; host.HelperDied if it
        did not answer; and the error of the caller's ``concurrency.cancellable`` if the answer is no longer wanted."""


_helper: Helper | None = None
_in_helper: ContextVar[bool] = ContextVar("nova_in_helper", default=False)


def use(helper: Helper | None) -> None:
    """Send all forwarded calls of this process to the helper from now on; None: run them in the process itself."""
    global _helper
    _helper = helper


def in_use() -> Helper | None:
    """Return the helper to which calls are sent; None if they run here."""
    return None if _in_helper.get() else _helper


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """Run forwarded calls within the block in this process, because it is the helper."""
    token = _in_helper.set(True)
    try:
        yield
    finally:
        _in_helper.reset(token)


def forwarded(name: str, local: tuple[str, ...] = ()) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Mark a function or method as the privileged call ``name``. ``local``: parameters for which the helper uses its
    own values. For a method, ``sent_along()`` of its object returns the settings to send."""

    def mark(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            helper = in_use()
            if helper is None:
                return function(*args, **kwargs)
            given = dict(signature.bind(*args, **kwargs).arguments)
            owner = given.pop("self", None)
            along = owner.sent_along() if owner is not None and hasattr(owner, "sent_along") else {}
            arguments = along | {key: value for key, value in given.items() if key not in local}
            return ask(helper, name, arguments, _result_of(function))

        call.forwarded_as = name  # type: ignore[attr-defined]
        return call

    return mark


def ask(helper: Helper, name: str, arguments: Mapping[str, object], kind: type[T]) -> T:
    """Return the result of the call as ``kind``. Raises the errors of the call itself; host.HelperRefused; and the
    errors of ``Helper.ask``."""
    request = wire.HelperRequest(name, msgspec.Raw(msgspec.msgpack.encode(arguments, enc_hook=str)))
    answer = helper.ask(msgspec.msgpack.encode(request), name)
    with failures.translated(msgspec.MsgspecError,
            lambda error: errors.host.HelperDied(call=name, reason=f"its answer cannot be decoded ({error})")):
        reply = decoding.from_msgpack(answer, wire.HelperReply)
        if reply.error is not None:
            raise wire.raised(reply.error)
        if reply.os_error is not None:
            raise OSError(*reply.os_error)
        return decoding.from_msgpack(reply.result, kind)


@functools.cache
def _result_of(function: Callable[..., T]) -> type[T]:
    return typing.cast("type[T]", typing.get_type_hints(function)["return"])


__all__ = ["Helper", "ask", "forwarded", "in_use", "inside", "use"]
