"""Policies for failures, by name; the page for contributors tells which to use, and when a plain ``except`` is right.

They are context managers (except one) without a generator, because they also stand on paths of every request. Other
exceptions than the policy's pass unchanged, and a killed green thread ends.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

from nova import errors

E = TypeVar("E", bound=BaseException)
P = ParamSpec("P")
Errors = type[BaseException] | tuple[type[BaseException], ...]
Extra = Mapping[str, object]


class _Policy:
    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing: only the end matters."""


class translated(_Policy, Generic[E]):
    """Raises the error that ``into`` makes of a caught one, which stays its cause."""

    __slots__ = ("_into", "_on")

    def __init__(self, on: type[E] | tuple[type[E], ...], into: Callable[[E], BaseException]) -> None:
        self._on, self._into = on, into

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(error, self._on):
            raise self._into(error) from error


class replaced(_Policy, Generic[E]):
    """Raises the error that ``by`` makes of a caught one, which is not its cause: in a traceback it would distract from
    the refusal, or reveal a secret."""

    __slots__ = ("_but", "_by", "_on")

    def __init__(self, on: type[E] | tuple[type[E], ...], by: Callable[[E], BaseException], *,
                 but: Errors = ()) -> None:
        self._on, self._by, self._but = on, by, but

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(error, self._on) and not isinstance(error, self._but):
            raise self._by(error) from None


class best_effort(_Policy):
    """Goes on after an expected failure: logs ``message`` with ``args`` and, as the last argument, the error."""

    __slots__ = ("_args", "_but", "_extra", "_level", "_log", "_message", "_on")

    def __init__(self, log: logging.Logger, message: str, *args: object, level: int = logging.WARNING,
                 on: Errors = errors.NovaError, but: Errors = (), extra: Extra | None = None) -> None:
        self._log, self._message, self._args, self._level = log, message, args, level
        self._on, self._but, self._extra = on, but, extra

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> bool:
        if not isinstance(error, self._on) or isinstance(error, self._but):
            return False
        self._log.log(self._level, self._message, *self._args, error, extra=self._extra, stacklevel=2)
        return True


class expected(_Policy):
    """Goes on after an error that is one of two normal outcomes: logs ``message`` with ``args``, without the error."""

    __slots__ = ("_args", "_extra", "_level", "_log", "_message", "_on")

    def __init__(self, log: logging.Logger, message: str, *args: object, on: Errors, level: int = logging.INFO,
                 extra: Extra | None = None) -> None:
        self._log, self._message, self._args = log, message, args
        self._on, self._level, self._extra = on, level, extra

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> bool:
        if not isinstance(error, self._on):
            return False
        self._log.log(self._level, self._message, *self._args, extra=self._extra, stacklevel=2)
        return True


class accepted(_Policy, Generic[E]):
    """Goes on after an error for which ``when`` is true, like ``contextlib.suppress`` with a condition: for libraries
    whose errors differ by a code."""

    __slots__ = ("_on", "_when")

    def __init__(self, on: type[E] | tuple[type[E], ...], when: Callable[[E], bool]) -> None:
        self._on, self._when = on, when

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> bool:
        return isinstance(error, self._on) and self._when(error)


class parked(_Policy, Generic[E]):
    """Goes on after an expected failure: passes it to ``park``, which keeps the rest of the work for later."""

    __slots__ = ("_but", "_on", "_park")

    def __init__(self, park: Callable[[E], object], *, on: type[E] | tuple[type[E], ...], but: Errors = ()) -> None:
        self._park, self._on, self._but = park, on, but

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> bool:
        if not isinstance(error, self._on) or isinstance(error, self._but):
            return False
        self._park(error)
        return True


class keep_running(_Policy):
    """Goes on after any exception, also a bug's: for what must not end or hide other work, such as periodic jobs,
    callbacks and the undoing of a failed order.

    Logs the message with the traceback; or with a ``level``, with the error as the last argument instead.
    """

    __slots__ = ("_args", "_but", "_extra", "_level", "_log", "_message")

    def __init__(self, log: logging.Logger, message: str, *args: object, level: int | None = None,
                 but: Errors = (), extra: Extra | None = None) -> None:
        self._log, self._message, self._args, self._level = log, message, args, level
        self._but, self._extra = but, extra

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> bool:
        # Any `Exception`, because no list of errors includes the bugs; the end of a green thread is none.
        if not isinstance(error, Exception) or isinstance(error, self._but):
            return False
        if self._level is None:
            self._log.exception(self._message, *self._args, extra=self._extra, stacklevel=2)
        else:
            self._log.log(self._level, self._message, *self._args, error, extra=self._extra, stacklevel=2)
        return True


class on_failure(_Policy):
    """Calls ``undo`` if the block fails, and raises the block's error again. An error of ``undo`` replaces it, or is
    dropped if ``quiet``: the first error is the one to report."""

    __slots__ = ("_on", "_quiet", "_undo")

    def __init__(self, undo: Callable[[], object], *,
                 on: type[BaseException] | tuple[type[BaseException], ...] = Exception, quiet: bool = False) -> None:
        self._undo, self._on, self._quiet = undo, on, quiet

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(error, self._on):
            # Any `Exception`, because no list tells which errors the undoing of a half-done step may raise.
            with contextlib.suppress(Exception) if self._quiet else contextlib.nullcontext():
                self._undo()


class reported_to(_Policy, Generic[E]):
    """Passes the block's error to ``take``, and raises it again: for threads that wait for the block's result."""

    __slots__ = ("_on", "_take")

    def __init__(self, take: Callable[[E], object], *, on: type[E] | tuple[type[E], ...]) -> None:
        self._take, self._on = take, on

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if isinstance(error, self._on):
            self._take(error)


def failure_of(act: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Exception | None:
    """Call ``act`` and return its error, also a bug's; None if it succeeded. For errors that are parts of results."""
    try:
        act(*args, **kwargs)
    except Exception as error:  # the caller reports it: no list of errors includes the bugs
        return error
    return None
