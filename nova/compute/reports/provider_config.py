"""Files in which operators give this host's resource provider additional inventories and traits.

Source: the public guide on managing resource providers by configuration files (schema 1.0).
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import yaml

from nova import decoding, errors, failures
from nova.model.host.hosts import Node
from nova.model.placement.providers import ClassInventory

T = TypeVar("T")

LOG = logging.getLogger(__name__)

SUFFIX, THIS_NODE = ".yaml", "$COMPUTE_NODE"
CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]{1,248}")
MAJOR = "1"
MOST = 2147483647
LONGEST_CLASS = 64
AMOUNTS: Mapping[str, tuple[type, float]] = {  # inventory field -> its type and minimum
    "total": (int, 1), "reserved": (int, 0), "min_unit": (int, 1), "max_unit": (int, 1), "step_size": (int, 1),
    "allocation_ratio": (float, 0.0)}


class ProviderConfig(NamedTuple):
    """Additions of a file to one provider. ``provider``: its UUID, its name, or ``$COMPUTE_NODE``."""

    provider: str
    inventories: tuple[ClassInventory, ...] = ()
    traits: tuple[str, ...] = ()
    source: str = ""


def load(directory: str) -> tuple[ProviderConfig, ...]:
    """Return the additions of all files of the directory, by name; empty if it does not exist. Raises config.Provider
    with file and key."""
    folder, found = Path(directory), []
    for path in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else ():
        try:
            text = yaml.safe_load(path.read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise errors.config.Provider(path=path, key="the file", reason=f"cannot be read ({error})") from error
        found += list(_File(str(path)).providers(text))
    _check_unique(found)
    return tuple(found)


def with_additions(nodes: Iterable[Node], configs: tuple[ProviderConfig, ...]) -> tuple[Node, ...]:
    """Return the nodes with the additions of files. Additions for a named node take precedence over those for every
    node. Raises config.Provider for a class that the host reports itself."""
    return tuple(_added(node, configs) for node in nodes)


def strangers(nodes: Iterable[Node], configs: Iterable[ProviderConfig]) -> tuple[ProviderConfig, ...]:
    """Return additions that match none of the nodes."""
    known = {THIS_NODE} | {name for node in nodes for name in (node.uuid, node.name)}
    return tuple(one for one in configs if one.provider not in known)


def _added(node: Node, configs: tuple[ProviderConfig, ...]) -> Node:
    named = [one for one in configs if one.provider in (node.uuid, node.name)]
    mine = named or [one for one in configs if one.provider == THIS_NODE]
    if not mine:
        return node
    own = {one.resource_class for one in node.inventories}
    for config in mine:
        for inventory in config.inventories:
            if inventory.resource_class in own:
                raise errors.config.Provider(path=config.source, key=inventory.resource_class,
                                             reason="is already reported by the host")
    return msgspec.structs.replace(
        node, inventories=(*node.inventories, *(one for config in mine for one in config.inventories)),
        traits=tuple(sorted({*node.traits, *(trait for config in mine for trait in config.traits)})))


def _check_unique(found: Iterable[ProviderConfig]) -> None:
    seen: dict[str, str] = {}
    for one in found:
        if one.provider in seen:
            raise errors.config.Provider(path=one.source, key=f"provider {one.provider}",
                                         reason=f"is defined in {seen[one.provider]}, too")
        seen[one.provider] = one.source


class _File:
    def __init__(self, path: str) -> None:
        self._path = path

    def _wrong(self, key: str, reason: str) -> errors.Invalid:
        return errors.config.Provider(path=self._path, key=key, reason=reason)

    def _must(self, value: object, kind: type[T], key: str, word: str) -> T:
        if not isinstance(value, kind):
            raise self._wrong(key, f"must be {word}")
        return value

    def providers(self, content: object) -> Iterator[ProviderConfig]:
        whole = self._must(content, dict, "the file", "an object")
        self._no_others(whole, {"meta", "providers"}, "")
        meta = self._must(whole.get("meta"), dict, "meta", "an object with schema_version")
        version = str(meta.get("schema_version", ""))
        if not re.fullmatch(r"\d+\.\d+", version) or version.partition(".")[0] != MAJOR:
            raise self._wrong("meta.schema_version", f"must be {MAJOR}.0, but is {version or 'missing'}")
        for at, one in enumerate(self._must(whole.get("providers", []), list, "providers", "a list")):
            yield self._provider(self._must(one, dict, f"providers[{at}]", "an object"), f"providers[{at}]")

    def _provider(self, given: dict[str, object], key: str) -> ProviderConfig:
        self._no_others(given, {"identification", "inventories", "traits"}, f"{key}.")
        return ProviderConfig(
            self._identification(given.get("identification"), f"{key}.identification"),
            tuple(self._inventory(one, where)
                  for one, where in self._additional(given, "inventories", key)),
            tuple(self._custom(one, where) for one, where in self._additional(given, "traits", key)), self._path)

    def _identification(self, given: object, key: str) -> str:
        found = self._must(given, dict, key, "an object with uuid or name")
        if len(found) != 1 or set(found) - {"uuid", "name"}:
            raise self._wrong(key, "must have either uuid or name")
        ((kind, value),) = found.items()
        text = self._must(value, str, f"{key}.{kind}", "a string")
        if kind == "name" or text == THIS_NODE:
            return text
        with failures.replaced(ValueError, lambda _: self._wrong(f"{key}.uuid", f"must be a UUID or {THIS_NODE}")):
            return str(uuid.UUID(text))

    def _additional(self, given: dict[str, object], what: str, key: str) -> Iterator[tuple[object, str]]:
        found = self._must(given.get(what, {}), dict, f"{key}.{what}", "an object")
        self._no_others(found, {"additional"}, f"{key}.{what}.")
        where = f"{key}.{what}.additional"
        for at, one in enumerate(self._must(found.get("additional", []), list, where, "a list")):
            yield one, f"{where}[{at}]"

    def _inventory(self, given: object, key: str) -> ClassInventory:
        found = self._must(given, dict, key, "an object")
        if len(found) != 1:
            raise self._wrong(key, "must have one resource class")
        ((name, amounts),) = found.items()
        if len(self._custom(name, key)) > LONGEST_CLASS:
            raise self._wrong(key, f"must be a name with at most {LONGEST_CLASS} characters, but is {name!r}")
        where = f"{key}.{name}"
        given_amounts = self._must(amounts, dict, where, "an object")
        self._no_others(given_amounts, set(AMOUNTS), f"{where}.")
        if "total" not in given_amounts:
            raise self._wrong(where, "must have a total")
        values = {each: self._amount(value, each, f"{where}.{each}") for each, value in given_amounts.items()}
        return decoding.convert({"resource_class": name, "max_unit": values["total"], **values}, ClassInventory)

    def _amount(self, value: object, name: str, key: str) -> int | float:
        kind, least = AMOUNTS[name]
        if (not isinstance(value, int | float) or isinstance(value, bool) or (kind is int and isinstance(value, float))
                or not least <= value <= MOST):  # (.nan is in no range)
            raise self._wrong(key, f"must be {'a number' if kind is float else 'an integer'} between {least} and "
                                   f"{MOST}, inclusive")
        return float(value) if kind is float else int(value)

    def _custom(self, name: object, key: str) -> str:
        if not isinstance(name, str) or not CUSTOM.fullmatch(name):
            raise self._wrong(key, f"must be a name like CUSTOM_GOLD, but is {name!r}")
        return name

    def _no_others(self, given: Mapping[str, object], known: set[str], prefix: str) -> None:
        others = sorted(str(name) for name in set(given) - known)
        if others:
            raise self._wrong(f"{prefix}{others[0]}", f"is not a known key (known keys: {', '.join(sorted(known))})")
