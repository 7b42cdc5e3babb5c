"""How a daemon that is not root has done what root alone may: its calls go to the helper.

A function that is :func:`forwarded` runs in the process where that is root's, as ever. Where a daemon has chosen a
helper (:func:`use`) the call is sent there by its name, with its arguments as data. The helper has a table of such
calls, and checks every argument itself (:mod:`nova.privileged.helper`): nothing here is what keeps it safe.
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

from nova import decoding, errors
from nova.privileged import wire

P = ParamSpec("P")
T = TypeVar("T")


class Helper(Protocol):
    """A way to the helper."""

    #: What the way is called in the log and by ``nova-manage doctor``.
    name: str

    def ask(self, request: bytes, call: str) -> bytes:
        """The answer to one request. host.NoHelper: it cannot be reached; host.HelperDied: it did not answer. What
        the caller's ``concurrency.while_wanted`` raises, when nobody wants the answer any more."""


_helper: Helper | None = None
_in_helper: ContextVar[bool] = ContextVar("nova_in_helper", default=False)


def use(helper: Helper | None) -> None:
    """From now on all forwarded calls of this process go there; None: they run in the process itself."""
    global _helper
    _helper = helper


def in_use() -> Helper | None:
    """What calls are sent to; None: they run here."""
    return None if _in_helper.get() else _helper


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """This is the helper: calls within the block run here."""
    token = _in_helper.set(True)
    try:
        yield
    finally:
        _in_helper.reset(token)


def forwarded(name: str, local: tuple[str, ...] = ()) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Mark a function or method as the privileged call ``name``. ``local``: parameters that the helper has of its own.
    Of a method, ``sent_along()`` of its object says which of its settings go along."""

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
    """The call's result, as ``kind``. The errors of the call itself; host.HelperRefused, and what ``Helper.ask``
    raises."""
    request = wire.HelperRequest(name, msgspec.Raw(msgspec.msgpack.encode(arguments, enc_hook=str)))
    answer = helper.ask(msgspec.msgpack.encode(request), name)
    try:
        reply = decoding.from_msgpack(answer, wire.HelperReply)
        if reply.error is not None:
            raise wire.raised(reply.error)
        if reply.os_error is not None:
            raise OSError(*reply.os_error)
        return decoding.from_msgpack(reply.result, kind)
    except msgspec.MsgspecError as error:
        raise errors.host.HelperDied(call=name, reason=f"its answer makes no sense ({error})") from error


@functools.cache
def _result_of(function: Callable[..., T]) -> type[T]:
    return typing.cast("type[T]", typing.get_type_hints(function)["return"])


__all__ = ["Helper", "ask", "forwarded", "in_use", "inside", "use"]
