"""From ``Name.N.Member=text`` to an action's arguments, as its type says.

An action's arguments are a ``msgspec.Struct``: a field ``instance_id`` is the parameter InstanceId, in whichever case
it came; a tuple is a list (``InstanceId.1``, or one alone without a number), a struct is a structure
(``Placement.AvailabilityZone``). Numbers and flags are read as what the type says, and text stays text.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from nova.legacy.ec2.faults import Ec2Error, invalid, missing

#: What belongs to every request, and to no action.
COMMON = frozenset({"action", "version", "awsaccesskeyid", "signature", "signaturemethod", "signatureversion",
                    "timestamp", "expires", "securitytoken", "x-amz-algorithm", "x-amz-credential", "x-amz-date",
                    "x-amz-expires", "x-amz-signedheaders", "x-amz-signature", "x-amz-security-token",
                    "response-content-type"})
MOST = 5000  # parameters of a request
DEEPEST = 8
LONGEST_NUMBER = 4  # digits of N: AWS counts to some thousands
#: What no answer could show, and no database or message bus takes: control characters, and bytes that are no UTF-8.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Args = TypeVar("Args", bound=msgspec.Struct)


class AskedFilter(msgspec.Struct, frozen=True):
    """Values of one are alternatives; several must all hold."""

    name: str
    value: tuple[str, ...] = ()


class Ec2Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """What every action takes. ``dry_run``: only say whether it would be done."""

    dry_run: bool = False


class Ec2Listing(Ec2Arguments, frozen=True, kw_only=True):
    """What every list takes. ``max_results``: of a page; ``next_token``: where the page before ended."""

    filter: tuple[AskedFilter, ...] = ()
    max_results: int | None = None
    next_token: str | None = None


class _Node:
    """A name's text, or what stands below it. ``name``: as the client wrote it."""

    __slots__ = ("below", "name", "text")

    def __init__(self, name: str) -> None:
        self.name, self.text, self.below = name, None, {}  # type: str, str | None, dict[str, _Node]


def arguments(wanted: type[Args], pairs: Iterable[tuple[str, str]]) -> Args:
    """MissingParameter, UnknownParameter, InvalidParameterValue name the parameter as it was sent."""
    root = _Node("")
    for number, (name, text) in enumerate(pairs):
        if number == MOST:
            raise Ec2Error("InvalidParameterValue", f"A request may have {MOST} parameters at most.")
        if name.lower() not in COMMON:
            _check_unicode(name, text)
            _put(root, name, text)
    found = _struct(wanted, root)
    assert isinstance(found, wanted)
    return found


def _check_unicode(name: str, text: str) -> None:
    """Bytes that are no UTF-8 came as surrogates: nothing behind this takes them."""
    try:
        f"{name}{text}".encode()
    except UnicodeEncodeError:
        raise Ec2Error("InvalidParameterValue", f"The parameter {name[:200]} is no text in UTF-8.") from None


def _put(root: _Node, name: str, text: str) -> None:
    parts = name.split(".")
    if len(parts) > DEEPEST:
        raise Ec2Error("UnknownParameter", f"The parameter {name[:200]} is not recognized.")
    node, so_far = root, ""
    for part in parts:
        so_far = f"{so_far}.{part}" if so_far else part
        node = node.below.setdefault(part.lower(), _Node(so_far))
    if node.text is not None:
        raise Ec2Error("InvalidParameterCombination", f"The parameter {name[:200]} is given more than once.")
    if _NO_TEXT.search(text):
        raise Ec2Error("InvalidParameterValue", f"The parameter {name[:200]} has characters that are no text.")
    node.text = text


@functools.cache
def _fields(wanted: type[msgspec.Struct]) -> Mapping[str, tuple[msgspec.structs.FieldInfo, Any]]:
    """Name in lower case -> field and its type."""
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
    """``InstanceId`` of ``instance_id``."""
    return "".join(word.capitalize() for word in field.split("_"))


def _value(hint: object, node: _Node) -> object:
    hint = _bare(hint)
    if typing.get_origin(hint) is tuple:
        return _items(typing.get_args(hint)[0], node)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if node.text is not None:
            raise invalid(node.name, node.text, "It is a structure: give its members.")
        return _struct(hint, node)
    if node.text is None and list(node.below) == ["1"]:  # some clients number what there is one of
        node = node.below["1"]
    if node.below or node.text is None:
        raise Ec2Error("UnknownParameter", f"The parameter {_first_name(node)[:200]} is not recognized.")
    return _scalar(hint, node.name, node.text)


def _bare(hint: object) -> object:
    """The type beside None."""
    if isinstance(hint, types.UnionType):
        return next(one for one in typing.get_args(hint) if one is not type(None))
    return hint


def _items(hint: object, node: _Node) -> tuple[object, ...]:
    """By their numbers. One without a number is the only one."""
    if node.text is not None:
        if node.below:
            raise invalid(node.name, node.text, "It is given with a number and without.")
        return (_value(hint, node),) if node.text else ()
    numbered = []
    for key, below in node.below.items():
        if not re.fullmatch(f"[0-9]{{1,{LONGEST_NUMBER}}}", key):
            if key in ("item", "member"):  # some clients name a list's members
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
            raise invalid(name, text, "It must be a whole number.")
        return int(text)
    assert hint is bytes, hint
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise Ec2Error("InvalidParameterValue", f"The parameter {name} must be encoded in base64.") from None
