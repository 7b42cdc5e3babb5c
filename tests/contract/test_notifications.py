"""Events and payloads against the reference: every class and field, every event, and every sample of what we tell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from nova.notifications import versioned
from nova.notifications.kinds import ACTIONS, NOT_SENT, TASKS, TYPES
from nova.notifications.message import Event
from nova.notifications.payloads import resources, scheduling, servers
from nova.notifications.payloads.fields import Payload
from tests.fakes import notifications as fakes

CONTRACT = Path(__file__).resolve().parents[3] / "shared" / "contract"
SAMPLES = CONTRACT / "notification_samples"
pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason="the contract is not beside the checkout")

REFERENCE: dict[str, Any] = yaml.safe_load((CONTRACT / "notifications.yaml").read_text()) if SAMPLES.exists() else {}
EVENTS = {one["event_type"]: one for one in REFERENCE.get("events", ())}
CLASSES = {payload.name: payload for module in (resources, scheduling, servers) for payload in vars(module).values()
           if isinstance(payload, Payload)}
#: Told by the reference's field list, and in none of its samples.
NEVER_SENT = {"RequestSpecPayload": {"image_meta"}}
#: About events of what this cloud does not tell (see NOT_TOLD): no samples of theirs are tried.
NOT_TRIED = {f"{name.replace('.', '-')}.json" for name in NOT_SENT}


def events() -> list[str]:
    return sorted(TYPES)


def samples() -> list[str]:
    return sorted(path.name for path in SAMPLES.glob("*.json") if path.name not in NOT_TRIED)


# -- the table of events

def test_events_when_compared_with_the_reference_then_all_are_told_or_named_as_not_told() -> None:
    assert set(EVENTS) == set(TYPES) | set(NOT_SENT)
    assert not set(TYPES) & set(NOT_SENT)


@pytest.mark.parametrize("kind", events())
def test_event_has_the_references_payload_publisher_and_priority(kind: str) -> None:
    row, wanted = TYPES[kind], EVENTS[kind]
    assert wanted["payload"] == [row.payload.name]
    assert row.source in wanted["publisher"] or kind in ("aggregate.cache_images.progress",)
    name, phase = _parts(kind)
    assert [versioned.priority(Event(name, phase, None, "h"), "INFO")] == wanted["priority"]


def test_actions_when_together_then_every_event_of_servers_belongs_to_one() -> None:
    """But those that the API tells by itself: they are about no operation."""
    by_api = {"instance.update", "instance.exists", "instance.lock", "instance.unlock"}
    sent = {one.name for row in ACTIONS.values() for one in row}
    assert {name for kind in TYPES for name, _ in [_parts(kind)] if name.startswith("instance.")} - sent == by_api
    assert {one.rpartition(".")[0] for one in TYPES if one.startswith("compute_task.")} == set(TASKS.values())


# -- payloads

@pytest.mark.parametrize("name", sorted(CLASSES))
def test_payload_has_the_references_version_and_fields(name: str) -> None:
    wanted = REFERENCE["payloads"][name]
    assert CLASSES[name].version == wanted["version"]
    assert {one.name for one in CLASSES[name].fields} == set(wanted["fields"]) - NEVER_SENT.get(name, set())


def test_image_properties_when_typed_then_as_the_reference_says() -> None:
    wanted = {name: spec["type"] for name, spec in REFERENCE["payloads"]["ImageMetaPropsPayload"]["fields"].items()}
    assert wanted.keys() - {"traits_required"} == _structured(wanted) | {
        name for name in wanted if scheduling.properties({name: "1"})["nova_object.data"].get(name) is not None}
    for name, kind in wanted.items():
        shown = scheduling.properties({name: "1"})["nova_object.data"].get(name)
        assert shown is None or type(shown) is {"integer": int, "boolean": bool}.get(kind, str), name
    assert REFERENCE["payloads"]["ImageMetaPropsPayload"]["version"] == scheduling.PROPS_VERSION


def _structured(wanted: dict[str, str]) -> set[str]:
    """Lists of things, which images keep as JSON text for others: none of ours to tell."""
    return {name for name, kind in wanted.items() if kind.startswith("list of")} - {"traits_required"}


@pytest.mark.parametrize("kind", events())
def test_message_when_everything_is_set_then_every_field_has_the_references_type(kind: str) -> None:
    payload = build(kind).payload
    assert json.loads(json.dumps(payload)) == payload
    assert problems_of(payload, kind) == []


def problems_of(value: Any, where: str) -> list[str]:
    """What in a payload is not as its class says."""
    name, data = value["nova_object.name"], value["nova_object.data"]
    if name not in REFERENCE["payloads"]:
        return [f"{where}: {name} is no class of the reference"]
    found = []
    for field, spec in REFERENCE["payloads"][name]["fields"].items():
        if field in NEVER_SENT.get(name, ()) or (name == "ImageMetaPropsPayload" and field not in data):
            continue
        one = data[field]
        if one is None and not spec.get("nullable"):
            found.append(f"{where}.{field} is null")
        elif one is not None and not _fits(one, spec["type"], spec.get("allowed")):
            found.append(f"{where}.{field} is {one!r}, not {spec['type']}")
        for inner in one if isinstance(one, list) else [one]:
            if isinstance(inner, dict) and "nova_object.name" in inner:
                found += problems_of(inner, f"{where}.{field}")
    return found


_SCALARS: dict[str, Any] = {
    "integer": lambda one: type(one) is int, "boolean": lambda one: type(one) is bool,
    "float": lambda one: type(one) is float, "string": lambda one: isinstance(one, str),
    "uuid": lambda one: re.fullmatch(r"[0-9a-f-]{36}", one) is not None,
    "datetime": lambda one: re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one) is not None,
    "mac address": lambda one: re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", one) is not None,
    "IPV4AndV6Address": lambda one: "." in one or ":" in one}


def _fits(value: Any, kind: str, allowed: list[str] | None) -> bool:
    if kind.startswith("enum"):
        return value in (allowed or ())
    if kind.startswith("object:"):
        return bool(value["nova_object.name"] == kind.removeprefix("object:"))
    if kind.startswith("list of "):
        return isinstance(value, list) and all(_fits(one, kind.removeprefix("list of "), None) for one in value)
    if kind.startswith("map of "):
        return isinstance(value, dict) and all(_fits(one, kind.removeprefix("map of "), None)
                                               for one in value.values())
    return bool(_SCALARS[kind](value))


# -- samples

@pytest.mark.parametrize("file", samples())
def test_sample_when_built_from_a_server_then_it_has_the_same_shape(file: str) -> None:
    sample = json.loads((SAMPLES / file).read_text())
    made = build(sample["event_type"])
    assert made.priority == sample["priority"]
    assert made.publisher.partition(":")[0] in EVENTS[sample["event_type"]]["publisher"]
    assert sample["publisher_id"].partition(":")[0] in EVENTS[sample["event_type"]]["publisher"]
    wanted = resolved(sample["payload"], SAMPLES)
    if wanted is None:
        own = sample["payload"].get("nova_object.data", {})  # a part is set aside: its class is judged, and the rest
        assert problems_of(made.payload, file) == []
        assert own.keys() <= made.payload["nova_object.data"].keys()
        return
    assert differences(made.payload, wanted, file) == []


def resolved(node: Any, folder: Path) -> Any:
    """The sample with what its references point to; None when a file of it is not there."""
    if isinstance(node, list):
        made = [resolved(one, folder) for one in node]
        return None if any(one is None and other is not None for one, other in zip(made, node, strict=True)) else made
    if not isinstance(node, dict):
        return node
    base: Any = {}
    if "$ref" in node:
        path = folder / node["$ref"].rstrip("#")
        base = resolved(json.loads(path.read_text()), path.parent) if path.exists() else None
        if base is None:
            return None
    for key, value in node.items():
        if key == "$ref":
            continue
        inner = resolved(value, folder)
        if inner is None and value is not None:
            return None
        base[key] = {**base.get(key, {}), **inner} if key == "nova_object.data" else inner
    return base


def differences(made: Any, wanted: Any, where: str) -> list[str]:
    """In keys, types, classes and versions. Null stands for any type; values differ."""
    if made is None or wanted is None:
        return []
    if type(made) is not type(wanted):
        return [f"{where}: {type(made).__name__}, not {type(wanted).__name__}"]
    if isinstance(wanted, list):
        return [problem for one, other in zip(made, wanted, strict=False)
                for problem in differences(one, other, f"{where}[]")]
    if not isinstance(wanted, dict) or ("nova_object.name" not in wanted and not where.endswith("nova_object.data")):
        return []  # maps of the user's own keys
    found = [f"{where}: {key} {'is missing' if key in wanted else 'is too much'}"
             for key in sorted(made.keys() ^ wanted.keys())]
    found += [f"{where}.{key}: {made[key]}, not {wanted[key]}" for key in
              ("nova_object.name", "nova_object.version", "nova_object.namespace") if made.get(key) != wanted.get(key)]
    return found + [problem for key in made.keys() & wanted.keys()
                    for problem in differences(made[key], wanted[key], f"{where}.{key}")]


def _parts(kind: str) -> tuple[str, str]:
    """(name, phase) of an event type."""
    what, action, *phase = kind.split(".")
    return f"{what}.{action}", phase[0] if phase else ""


def build(kind: str) -> Any:
    name, phase = _parts(kind)
    subject = fakes.IMAGES if kind == "aggregate.cache_images.progress" else fakes.subject(name)
    return versioned.message(Event(name, phase, subject, "compute", who=fakes.WHO), "INFO")
