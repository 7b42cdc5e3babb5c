"""Reads the contract's files, and judges JSON by its rows: written apart from ``nova.web.schema``, to check on it."""

from __future__ import annotations

import base64
import datetime
import functools
import ipaddress
import json
import pathlib
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared" / "contract"
needs_contract = pytest.mark.skipif(not SHARED.is_dir(), reason="the contract's files are not beside the checkout")
VERSIONS = range(1, 105)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def load(name: str) -> Any:
    """One YAML file of the contract; None when the contract is absent."""
    path = SHARED / name
    return yaml.load(path.read_text(), _LOADER) if path.exists() else None


@functools.cache
def operations() -> dict[str, dict[str, Any]]:
    """The operations of api.yaml by id; empty when the contract is absent."""
    return {entry["id"]: entry for entry in (load("api.yaml") or {"operations": []})["operations"]}


@functools.cache
def shapes(id: str) -> dict[str, Any]:
    """query, body, response, body_v2_0_differs rows of an operation."""
    entry = operations()[id]
    if "schema" not in entry and "same_as" in entry:
        entry = operations()[entry["same_as"]]
    if "schema" not in entry:
        return {}
    found = load(entry["schema"]).get(entry["id"], {})
    return shapes(found["same_as"]) if "same_as" in found else _corrected(id, found)


#: What a note in api.yaml says, and the rows don't: operation -> (field, since, what its row has too).
NOTES: dict[str, tuple[str, str, dict[str, Any]]] = {
    # "an empty object is not accepted"
    "POST /servers/{server_id}/action#unshelve": (
        "unshelve", "2.91", {"any_of": [{"requires": ["availability_zone"]}, {"requires": ["host"]}]}),
}


def _corrected(id: str, found: dict[str, Any]) -> dict[str, Any]:
    """The shapes with the note's row split off at its version."""
    if id not in NOTES:
        return found
    name, since, more = NOTES[id]
    body: list[dict[str, Any]] = []
    for row in found["body"]:
        if row["field"] == name and row.get("until") is None:
            body += [{**row, "until": f"2.{minor(since, 1) - 1}"}, {**row, **more, "since": since}]
        else:
            body.append(row)
    return {**found, "body": body}


def samples(entry: dict[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """(name, version, content) of an operation's samples that we have."""
    for name in entry.get("samples", []):
        path = SHARED / "samples" / name
        if path.exists():
            yield name, sample_version(name), json.loads(path.read_text())


def sample_version(name: str) -> int:
    found = re.search(r"/v2\.(\d+)/", name)
    return int(found[1]) if found else 1


def minor(text: str | None, default: int) -> int:
    return default if text is None else int(text.split(".")[1])


def holds(row: dict[str, Any], version: int) -> bool:
    return minor(row.get("since"), 1) <= version <= minor(row.get("until"), 104)


def at(rows: list[dict[str, Any]], version: int) -> dict[str, dict[str, Any]]:
    """The rows that hold at one version, by field (or name)."""
    return {row.get("field", row.get("name")): row for row in rows if holds(row, version)}


TRUE = {"TRUE", "True", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t"}
FALSE = {"FALSE", "False", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f"}


def _is(kind: str, value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"any": True, "null": value is None, "boolean": isinstance(value, bool), "string": isinstance(value, str),
            "object": isinstance(value, dict), "array": isinstance(value, list), "number": number,
            "integer": number and isinstance(value, int),
            "boolean_like": isinstance(value, bool) or (isinstance(value, str) and value in TRUE | FALSE)}[kind]


def _formatted(name: str, value: str) -> bool:
    try:
        if name == "uuid":
            uuid.UUID(value)
        elif name == "ipv4":
            ipaddress.IPv4Address(value)
        elif name == "ipv6":
            ipaddress.IPv6Address(value)
        elif name == "date-time":
            datetime.datetime.fromisoformat(value)
        elif name == "base64":
            base64.b64decode("".join(value.split()), validate=True)
        elif name == "regex":
            return bool(re.compile(value)) and value != ""
        elif name == "mac-address":
            return re.fullmatch("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", value) is not None
        elif name == "uri":
            return "://" in value
        elif name in ("name", "az_name"):
            return value.isprintable() and value == value.strip() != "" and not (name == "az_name" and ":" in value)
        elif name == "name_with_leading_trailing_spaces":
            return value.isprintable() and value.strip() != ""
        elif name == "printable":
            return value.isprintable()
    except (ValueError, re.error):
        return False
    return True


def problems(spec: dict[str, Any], value: Any, where: str = "") -> list[str]:
    """What is wrong with ``value`` by one row, or one alternative of it, leaving out what other rows say."""
    kinds = spec.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if not any(_is(kind, value) for kind in kinds) and value not in spec.get("also", []):
        return [f"{where}: {value!r} is not of {kinds}"]
    wrong = []
    if "allowed" in spec and value not in spec["allowed"]:
        wrong.append(f"{where}: {value!r} is not one of {spec['allowed']}")
    if isinstance(value, str):
        wrong += _text_problems(spec, value, where)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        wrong += _number_problems(spec, value, where)
    if isinstance(value, (list, dict)):
        wrong += _size_problems(spec, value, where)
    if isinstance(value, dict):
        wrong += [f"{where}: {name} is missing" for name in spec.get("requires", ()) if name not in value]
    if "fields" in spec and isinstance(value, dict):
        rows = [{**spec, "field": "(body)"}, *({"field": name, **row} for name, row in spec["fields"].items())]
        wrong += judge([{k: v for k, v in row.items() if k != "fields"} if row["field"] == "(body)" else row
                        for row in rows], value, 104, where)
    if "items" in spec and isinstance(value, list):
        wrong += [problem for item in value for problem in problems(spec["items"], item, f"{where}[]")]
    for key, count in (("one_of", 1), ("any_of", 1), ("all_of", None)):
        if key in spec:
            fits = sum(not problems(choice, value, where) for choice in spec[key])
            if fits < (len(spec[key]) if count is None else count):
                wrong.append(f"{where}: {value!r} fits {fits} of {key} {spec[key]}")
    return wrong


def _text_problems(spec: dict[str, Any], value: str, where: str) -> list[str]:
    wrong = []
    if len(value) < spec.get("min_length", 0) or len(value) > spec.get("max_length", 1 << 60):
        wrong.append(f"{where}: length {len(value)}")
    if "pattern" in spec and not re.search(spec["pattern"], value):
        wrong.append(f"{where}: {value!r} does not match {spec['pattern']}")
    if "format" in spec and not _formatted(spec["format"], value):
        wrong.append(f"{where}: {value!r} is no {spec['format']}")
    if ("min" in spec or "max" in spec or "above" in spec) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        wrong += _number_problems(spec, float(value), where)
    return wrong


def _number_problems(spec: dict[str, Any], value: float, where: str) -> list[str]:
    if value < spec.get("min", value) or value > spec.get("max", value):
        return [f"{where}: {value} out of range"]
    return [f"{where}: {value} is not above {spec['above']}"] if "above" in spec and value <= spec["above"] else []


def _size_problems(spec: dict[str, Any], value: list[Any] | dict[str, Any], where: str) -> list[str]:
    what = "items" if isinstance(value, list) else "keys"
    if not spec.get(f"min_{what}", 0) <= len(value) <= spec.get(f"max_{what}", 1 << 60):
        return [f"{where}: {len(value)} {what}"]
    if spec.get("unique_items") and isinstance(value, list):
        seen = [json.dumps(item, sort_keys=True) for item in value]
        return [f"{where}: items repeat"] if len(set(seen)) < len(seen) else []
    return []


def steps(field: str) -> list[str]:
    return re.findall(r"/.*?[^\\]/(?=$|[.\[])|\[\]|[^.\[\]]+", field) if field != "(body)" else []


def judge(rows: list[dict[str, Any]], value: Any, version: int, where: str = "") -> list[str]:
    """All that is wrong with a body or an answer at one version; empty when it passes."""
    return judge_by(tree_of(rows, version), value, where)


def tree_of(rows: list[dict[str, Any]], version: int) -> dict[str, Any]:
    """The rows of one version as a tree, for judging many values."""
    tree: dict[str, Any] = {}
    for field, row in at(rows, version).items():
        node = tree
        for step in steps(field):
            node = node.setdefault("in", {}).setdefault(step, {})
        node["row"] = row
    return tree


def judge_by(tree: dict[str, Any], value: Any, where: str = "") -> list[str]:
    return _judge(tree, value, where or "(body)")


def _judge(node: dict[str, Any], value: Any, where: str) -> list[str]:
    row, inner = node.get("row", {}), node.get("in", {})
    wrong = problems(row, value, where)
    if not wrong and isinstance(value, dict):
        wrong = _judge_keys(row, inner, value, where)
    elif not wrong and isinstance(value, list):
        order = row.get("items_in_order", [])
        for index, item in enumerate(value):
            if index < len(order):
                wrong += problems(order[index], item, f"{where}[{index}]")
            elif "[]" in inner:
                wrong += _judge(inner["[]"], item, f"{where}[{index}]")
    if wrong and any(not problems(other, value, where) for other in row.get("or", [])):
        return []
    return wrong


def _judge_keys(row: dict[str, Any], inner: dict[str, Any], value: dict[str, Any], where: str) -> list[str]:
    inner = {**inner, **{f"/{pattern}/": {"row": one} for pattern, one in row.get("keys_matching", {}).items()}}
    wrong = [f"{where}: {name} is missing" for name, child in inner.items()
             if child.get("row", {}).get("required") and name not in value and not name.startswith("/") and name != "*"]
    for key, item in value.items():
        child = inner.get(key) or next((found for name, found in inner.items() if name.startswith("/") and len(name) > 1
                                        and re.search(name[1:-1], key)), None) or inner.get("*")
        if child is not None:
            wrong += _judge(child, item, f"{where}.{key}")
        elif row.get("unknown_keys") == "refuse" and "fields" not in row:  # which problems() has judged
            wrong.append(f"{where}: unexpected {key}")
    return wrong
