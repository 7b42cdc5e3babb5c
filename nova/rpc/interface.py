"""Definition of contracts: a contract is a class of annotated methods. Clients are derived from it, and servers are
checked against it::

    class ComputeRPC(Interface):
        topic, version, addressed_by = "compute", "1.0", "host"

        @call(timeout=Timeout.LONG, since="1.0")
        def build_guests(self, host: HostName, orders: tuple[BuildOrder, ...]) -> tuple[Outcome, ...]: ...
"""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

F = typing.TypeVar("F", bound=Callable[..., object])


class Timeout(enum.Enum):
    """Timeout classes. Choose one by the longest work that the callee may have to do, not by the usual time.

    SHORT   memory only, or one indexed read: 15 s.
    NORMAL  a few database statements or calls to peer services: ``rpc_response_timeout`` (60 s).
    LONG    work on a host: ``long_rpc_timeout`` (1800 s), with heartbeats, so a dead peer is noticed in 30 s.
    """

    SHORT = "short"
    NORMAL = "normal"
    LONG = "long"


class Method(typing.NamedTuple):
    """A call of a contract, with the properties from its decorator and annotations."""

    name: str
    timeout: Timeout
    since: str
    wants_answer: bool
    fanout: bool
    arguments: type[msgspec.Struct]  # one field per parameter
    result: Any
    signature: inspect.Signature
    sensitive: bool  # arguments are never logged, at any level
    introduces: bool  # a host without a registered secret may call it
    reads: bool = False  # it changes nothing, so a client may repeat it; only clients use this
    repeatable: bool = False  # conductors accept duplicates; of any other message, only one conductor accepts one copy

    def named(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return a call's arguments by name, as ``signature.bind``, which takes four times as long. Raises TypeError
        if there are too many, or one is given twice; ``arguments`` raises it for missing or unknown ones."""
        names = self.arguments.__struct_fields__
        if len(args) > len(names) or not kwargs.keys().isdisjoint(names[:len(args)]):
            raise TypeError(f"{self.name} takes ({', '.join(names)})")
        return {**dict(zip(names, args, strict=False)), **kwargs}


def call(timeout: Timeout = Timeout.NORMAL, since: str = "1.0", sensitive: bool = False,
         introduces: bool = False, reads: bool = False, repeatable: bool = False) -> Callable[[F], F]:
    """Mark a method that sends a message and waits for the reply. ``reads``: it changes nothing, so without a reply
    soon, another server is called (``nova/rpc/transport.py``). ``repeatable``: a host's call that does no harm if
    another sender repeats it within a minute; calls with ``reads`` are repeatable."""
    return _mark(timeout=timeout, since=since, wants_answer=True, fanout=False, sensitive=sensitive,
                 introduces=introduces, reads=reads, repeatable=repeatable or reads)


def cast(since: str = "1.0", fanout: bool = False, repeatable: bool = False) -> Callable[[F], F]:
    """Mark a method that sends a message without a reply. ``fanout`` sends it to every server of the topic. Use it only
    for messages that may be lost without harm. ``repeatable`` as in :func:`call`."""
    return _mark(timeout=Timeout.SHORT, since=since, wants_answer=False, fanout=fanout, sensitive=False,
                 introduces=False, repeatable=repeatable)


def _mark(**marks: object) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        setattr(function, "rpc_marks", marks)  # noqa: B010
        return function
    return decorate


class Contract:
    """Base of contracts; a large one inherits its parts, which are plain classes. ``addressed_by`` names the parameter
    that selects one server of the topic. ``carries_token``: the servers act as the calling user; all other contracts
    omit the user's token. ``with_hosts``: used between hosts and conductors, with proofs. ``part_of``: the contract
    that has all of its methods and more than its callers may use; servers of the previous release serve only that
    one."""

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


def _method(cls: type, name: str, function: Callable[..., object]) -> Method:
    hints = typing.get_type_hints(function)
    signature = inspect.signature(function)
    fields: list[Any] = []
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hints[parameter.name]))
        else:
            fields.append((parameter.name, hints[parameter.name], parameter.default))
    arguments = msgspec.defstruct(f"{cls.__name__}_{name}", fields, frozen=True, kw_only=True, omit_defaults=True)
    marks = vars(function)["rpc_marks"]
    return Method(name=name, arguments=arguments, result=hints.get("return", type(None)), signature=signature, **marks)


def parse_version(version: str) -> tuple[int, int]:
    """Return the two numbers of a version, for comparison: ``"1.3"`` -> (1, 3). Raises ValueError for any other
    text."""
    major, minor = version.split(".")
    return int(major), int(minor)
