"""Conversion of request parameters ``Name.N.Member=text`` to an action's typed arguments.

An action's arguments are a ``msgspec.Struct``: a field ``instance_id`` is the parameter InstanceId, in any case; a
tuple is a list (``InstanceId.1``, or a single one without a number), a struct is a structure
(``Placement.AvailabilityZone``). The field's type decides how integers, flags and text are parsed.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from nova import failures
from nova.legacy.ec2.faults import Ec2Error, invalid, missing

#: Parameters of every request, which are not arguments of an action.
COMMON = frozenset({"action", "version", "awsaccesskeyid", "signature", "signaturemethod", "signatureversion",
                    "timestamp", "expires", "securitytoken", "x-amz-algorithm", "x-amz-credential", "x-amz-date",
                    "x-amz-expires", "x-amz-signedheaders", "x-amz-signature", "x-amz-security-token",
                    "response-content-type"})
MOST = 5000  # parameters of a request
DEEPEST = 8
LONGEST_NUMBER = 4  # digits of N: AWS allows a few thousand
#: Text that no response can show and no database or message bus accepts: control characters, bytes that are not UTF-8.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Args = TypeVar("Args", bound=msgspec.Struct)


class AskedFilter(msgspec.Struct, frozen=True):
    """A filter of a request: matches any of its values. An item must match all filters."""

    name: str
    value: tuple[str, ...] = ()


class Ec2Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """The common base of all actions' arguments. ``dry_run``: only check whether the request would succeed."""

    dry_run: bool = False


class Ec2Listing(Ec2Arguments, frozen=True, kw_only=True):
    """The arguments of every list. ``max_results``: size of a page; ``next_token``: end of the previous page."""

    filter: tuple[AskedFilter, ...] = ()
    max_results: int | None = None
    next_token: str | None = None


class _Node:
    """A node of the parameter tree: its text, or the nodes below it. ``name``: as the client wrote it."""

    __slots__ = ("below", "name", "text")

    def __init__(self, name: str) -> None:
        self.name, self.text, self.below = name, None, {}  # type: str, str | None, dict[str, _Node]


def arguments(wanted: type[Args], pairs: Iterable[tuple[str, str]]) -> Args:
    """Parse the parameters into the type ``wanted``.

    Raises MissingParameter, UnknownParameter and InvalidParameterValue, with the parameter's name as it was sent.
    """
    root = _Node("")
    for number, (name, text) in enumerate(pairs):
        if number == MOST:
            raise Ec2Error("InvalidParameterValue", f"The request has more than {MOST} parameters.")
        if name.lower() not in COMMON:
            _check_unicode(name, text)
            _put(root, name, text)
    found = _struct(wanted, root)
    assert isinstance(found, wanted)
    return found


def _check_unicode(name: str, text: str) -> None:
    """Refuse bytes that are not UTF-8, which arrive as surrogates: no later layer accepts them."""
    with failures.replaced(UnicodeEncodeError, lambda _: Ec2Error("InvalidParameterValue",
            f"The parameter {name[:200]} is not valid UTF-8.")):
        f"{name}{text}".encode()


def _put(root: _Node, name: str, text: str) -> None:
    parts = name.split(".")
    if len(parts) > DEEPEST:
        raise Ec2Error("UnknownParameter", f"The parameter {name[:200]} is not recognized.")
    node, so_far = root, ""
    for part in parts:
        so_far = f"{so_far}.{part}" if so_far else part
        node = node.below.setdefault(part.lower(), _Node(so_far))
    if node.text is not None:
        raise Ec2Error("InvalidParameterCombination", f"The parameter {name[:200]} occurs more than once.")
    if _NO_TEXT.search(text):
        raise Ec2Error("InvalidParameterValue", f"The parameter {name[:200]} contains invalid characters.")
    node.text = text


@functools.cache
def _fields(wanted: type[msgspec.Struct]) -> Mapping[str, tuple[msgspec.structs.FieldInfo, object]]:
    """Map lower-case parameter names to the struct's fields and their types."""
    hints = typing.get_type_hints(wanted)
    return {field.name.replace("_", ""): (field, hints[field.name]) for field in msgspec.structs.fields(wanted)}


def _struct(wanted: type[msgspec.Struct], node: _Node) -> msgspec.Struct:
    fields, values = _fields(wanted), {}
    for key, below in node.below.items():
        if key not in fields:
            raise Ec2Error("UnknownParameter", f"The parameter {_first_name(below)[:200]} is not recognized.")
        field, hint = fields[key]
        values[field.name] = _value(hint, below)
    for field, _hint in fields.values():
        if field.required and field.name not in values:
            raise missing(f"{node.name}.{public_name(field.name)}" if node.name else public_name(field.name))
    return wanted(**values)


def _first_name(node: _Node) -> str:
    while node.text is None and node.below:
        node = next(iter(node.below.values()))
    return node.name


def public_name(field: str) -> str:
    """Return the parameter name of a field: ``InstanceId`` for ``instance_id``."""
    return "".join(word.capitalize() for word in field.split("_"))


def _value(hint: object, node: _Node) -> object:
    hint = _bare(hint)
    if typing.get_origin(hint) is tuple:
        return _items(typing.get_args(hint)[0], node)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if node.text is not None:
            raise invalid(node.name, node.text, "It is a structure; specify its members.")
        return _struct(hint, node)
    if node.text is None and list(node.below) == ["1"]:  # some clients number a parameter that is not a list
        node = node.below["1"]
    if node.below or node.text is None:
        raise Ec2Error("UnknownParameter", f"The parameter {_first_name(node)[:200]} is not recognized.")
    return _scalar(hint, node.name, node.text)


def _bare(hint: object) -> object:
    """Return the type of an optional field, without None."""
    if isinstance(hint, types.UnionType):
        return next(one for one in typing.get_args(hint) if one is not type(None))
    return hint


def _items(hint: object, node: _Node) -> tuple[object, ...]:
    """Return a list's values in the order of their numbers. A value without a number must be the only one."""
    if node.text is not None:
        if node.below:
            raise invalid(node.name, node.text, "It is specified both with and without a number.")
        return (_value(hint, node),) if node.text else ()
    numbered = []
    for key, below in node.below.items():
        if not re.fullmatch(f"[0-9]{{1,{LONGEST_NUMBER}}}", key):
            if key in ("item", "member"):  # some clients insert "item" or "member" before the number
                return _items(hint, below)
            raise Ec2Error("UnknownParameter", f"The parameter {_first_name(below)[:200]} is not recognized.")
        numbered.append((int(key), below))
    return tuple(_value(hint, below) for _number, below in sorted(numbered, key=lambda one: one[0]))


def _scalar(hint: object, name: str, text: str) -> object:
    if hint is str:
        return text
    if hint is bool:
        if text.lower() not in _FLAGS:
            raise invalid(name, text, "It must be true or false.")
        return _FLAGS[text.lower()]
    if hint is int:
        if not re.fullmatch("-?[0-9]{1,10}", text):
            raise invalid(name, text, "It must be an integer.")
        return int(text)
    assert hint is bytes, hint
    with failures.replaced((binascii.Error, ValueError), lambda _: Ec2Error("InvalidParameterValue",
            f"The parameter {name} must be encoded in base64.")):
        return base64.b64decode("".join(text.split()), validate=True)
