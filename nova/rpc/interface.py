"""How a contract is written: a class of annotated methods, from which the client is derived and servers are checked.

    class ComputeRPC(Interface):
        topic, version, addressed_by = "compute", "1.0", "host"

        @call(timeout=Timeout.LONG, since="1.0")
        def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]: ...
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from nova.model.base import Json

F = typing.TypeVar("F", bound=Callable[..., Any])


class Timeout(enum.Enum):
    """Classes of patience. Choose by what the callee may have to do, never by what it usually takes.

    SHORT   memory only, or one indexed read: 15 s.
    NORMAL  a few database statements or calls to services next door: ``rpc_response_timeout`` (60 s).
    LONG    work on a host: ``long_rpc_timeout`` (1800 s), with heartbeats, so a dead peer is noticed in 30 s.
    """

    SHORT = "short"
    NORMAL = "normal"
    LONG = "long"


class Method(typing.NamedTuple):
    """One call of a contract, as its decorator and annotations say."""

    name: str
    timeout: Timeout
    since: str
    wants_answer: bool
    fanout: bool
    arguments: type[msgspec.Struct]  # one field a parameter
    result: Any
    signature: inspect.Signature
    sensitive: bool  # arguments are never logged, whatever the level
    introduces: bool  # a host that has no secret yet may call it
    reads: bool = False  # it changes nothing, so it may be asked again; only its client knows
    repeatable: bool = False  # conductors take it as often as it comes; what is not, all of them together take once


def call(timeout: Timeout = Timeout.NORMAL, since: str = "1.0", sensitive: bool = False,
         introduces: bool = False, reads: bool = False, repeatable: bool = False) -> Callable[[F], F]:
    """Ask and wait for the answer. One that ``reads`` changes nothing: when no answer comes soon, another server is
    asked (``nova/rpc/transport.py``). ``repeatable``: a host's call that harms nobody when somebody else sends it again
    within a minute; what reads is."""
    return _mark(timeout=timeout, since=since, wants_answer=True, fanout=False, sensitive=sensitive,
                 introduces=introduces, reads=reads, repeatable=repeatable or reads)


def cast(since: str = "1.0", fanout: bool = False, repeatable: bool = False) -> Callable[[F], F]:
    """Tell and go on. ``fanout`` tells every server of the topic. Only for what may be lost without harm.
    ``repeatable`` as of a call."""
    return _mark(timeout=Timeout.SHORT, since=since, wants_answer=False, fanout=fanout, sensitive=False,
                 introduces=False, repeatable=repeatable)


def _mark(**marks: object) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        setattr(function, "rpc_marks", marks)  # noqa: B010
        return function
    return decorate


class Contract:
    """Base of contracts; a large one has parts, plain classes that it inherits. ``addressed_by`` names the parameter
    that picks one server of the topic. ``carries_token``: the servers act as the user who asks; to all others the
    user's token is not sent. ``with_hosts``: spoken between hosts and conductors, with proofs. ``part_of``: the
    contract that has all of its methods too, and more than its callers may ask; servers of the release before serve
    that alone."""

    topic: ClassVar[str]
    version: ClassVar[str]
    addressed_by: ClassVar[str | None] = None
    carries_token: ClassVar[bool] = False
    with_hosts: ClassVar[bool] = False
    part_of: ClassVar[type[Contract] | None] = None
    methods: ClassVar[dict[str, Method]]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.methods = {name: _method(cls, name, function) for part in reversed(cls.__mro__)
                       for name, function in vars(part).items() if hasattr(function, "rpc_marks")}


def _method(cls: type, name: str, function: Json) -> Method:
    hints = typing.get_type_hints(function)
    signature = inspect.signature(function)
    fields: list[Any] = []
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hints[parameter.name]))
        else:
            fields.append((parameter.name, hints[parameter.name], parameter.default))
    arguments = msgspec.defstruct(f"{cls.__name__}_{name}", fields, frozen=True, kw_only=True, omit_defaults=True)
    marks = function.rpc_marks
    return Method(name=name, arguments=arguments, result=hints.get("return", type(None)), signature=signature, **marks)


def parse_version(version: str) -> tuple[int, int]:
    """``"1.3"`` -> (1, 3), which compare as versions do. ValueError: it is no such text."""
    major, minor = version.split(".")
    return int(major), int(minor)
