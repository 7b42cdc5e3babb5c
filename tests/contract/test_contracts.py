"""Contracts and wire values against their golden files: what peers of any age rely on does not change by accident."""

from __future__ import annotations

import copy
import enum
import json

import msgspec
import pytest

from nova import errors
from nova.model.base import WireEnum
from nova.model.server.states import PowerState
from nova.rpc import codec
from nova.rpc.interface import parse_version
from tests.golden import minors, regenerate, shapes

REGENERATE = "then run tests/golden/regenerate.py"

by_name = {"ids": lambda cls: cls.__name__}
each_contract = pytest.mark.parametrize("contract", shapes.contracts(), **by_name)
each_value = pytest.mark.parametrize("kind", shapes.values(), **by_name)


@each_contract
def test_contract_when_it_changed_then_its_version_did(contract):
    files, name = shapes.contract_files(contract.__name__), f"{contract.__name__} {contract.version}"
    assert contract.version in files, f"{name} has no golden file: {REGENERATE}"
    golden, shape = shapes.read_contract(files[contract.version]), shapes.shape_of_contract(contract)
    changed = shapes.differences({**golden, "added": None}, {**shape, "added": None})
    methods = minors.differing(*(minors.hashes(one, contract.version) for one in (golden, shape)))
    assert not changed, (f"{contract.__name__} changed: bump the version, which is {contract.version}, {REGENERATE}:\n"
                         + "\n".join([*(f"{name}: {line}" for line in methods), *changed]))
    assert list(files)[-1] == contract.version, "a golden file is newer than the contract"


@each_contract
def test_contract_without_what_later_minor_versions_added_is_what_it_was(contract):
    goldens = {parse_version(version)[0]: shapes.read_contract(path)
               for version, path in shapes.contract_files(contract.__name__).items()}
    wrong = [f"{contract.__name__} {version}: {line}"
             for version, old in shapes.older().get(contract.__name__, {}).items()
             for line in minors.differing(old, minors.hashes(goldens[parse_version(version)[0]], version))]
    assert not wrong, "older peers would stumble, it needs a new major version:\n" + "\n".join(wrong)


@each_contract
def test_contract_says_what_each_method_does_and_since_when(contract):
    for name, method in contract.methods.items():
        assert getattr(contract, name).__doc__, f"{name} has no docstring"
        assert (1, 0) <= parse_version(method.since) <= parse_version(contract.version)
        if contract.addressed_by:
            assert contract.addressed_by in method.signature.parameters, f"{name} does not say which server"
        if contract.topic.endswith("-host"):
            assert list(method.signature.parameters)[1] == "host", f"{name} does not say who asks"


def test_golden_files_are_only_those_of_what_there_is():
    names = {contract.__name__ for contract in shapes.contracts()}
    files = [path.stem.rpartition("-") for path in shapes.CONTRACTS.glob("*") if path.name != shapes.OLDER]
    assert sorted((name, parse_version(version)[0]) for name, _, version in files) == sorted(
        (contract.__name__, major) for contract in shapes.contracts()
        for major in range(1, parse_version(contract.version)[0] + 1))
    assert shapes.older().keys() <= names
    assert {path.name for path in shapes.VALUES.glob("*")} == {kind.__name__ for kind in shapes.values()}


# values

@each_value
def test_value_when_its_shape_changed_then_its_golden_file_is_new(kind):
    files = shapes.value_files(kind.__name__)
    now = json.loads(msgspec.json.encode(shapes.example(kind)))
    assert files and json.loads(files[-1].read_text()) == now, f"{kind.__name__} changed: bump the version of the " \
                                                               f"contracts that use it, {REGENERATE}"


@each_value
def test_value_of_any_age_is_read_as_it_was_meant(kind):
    for path in shapes.value_files(kind.__name__):
        old = json.loads(path.read_text())
        read = json.loads(msgspec.json.encode(msgspec.json.decode(path.read_text(), type=kind)))
        assert all(line.endswith(": added") for line in shapes.differences(old, read)), path.name


@each_value
def test_value_over_the_wire_is_the_same(kind):
    value = shapes.example(kind)
    assert codec.unpack(codec.from_text(codec.to_text(codec.pack(value))), kind) == value


@each_value
def test_value_when_every_optional_field_is_left_out_then_it_is_read(kind):
    example, required = shapes.example(kind), [field for field in msgspec.structs.fields(kind) if field.required]
    sent = {field.encode_name: getattr(example, field.name) for field in required}
    assert codec.unpack(codec.pack(sent), kind) == kind(**{one.name: getattr(example, one.name) for one in required})


@each_value
def test_value_from_a_newer_peer_is_read_without_what_is_unknown(kind):
    value = shapes.example(kind)
    newer = with_more(value)
    assert newer["a_field_of_tomorrow"] == [1, {"two": None}]
    assert codec.unpack(codec.pack(newer), kind) == value


@each_value
def test_value_when_a_field_has_another_type_then_it_is_malformed(kind):
    for field in msgspec.structs.fields(kind):
        if shapes.text_of(field.type) == "any":
            continue
        wrong = {**msgspec.to_builtins(shapes.example(kind)), field.encode_name: [[[1.5]]]}
        with pytest.raises(errors.daemon.RpcMalformed):
            codec.unpack(codec.pack(wrong), kind)


def with_more(value):
    """The value as plain data, each struct in it with one more field."""
    if isinstance(value, msgspec.Struct):
        fields = {field.encode_name: with_more(getattr(value, field.name)) for field in msgspec.structs.fields(value)}
        return {**fields, "a_field_of_tomorrow": [1, {"two": None}]}
    if isinstance(value, tuple):
        return [with_more(member) for member in value]
    if isinstance(value, dict):
        return {key: with_more(member) for key, member in value.items()}
    return value


def enums():
    return sorted((kind for kind in shapes.reached(shapes.values()).values() if issubclass(kind, enum.Enum)),
                  key=lambda kind: kind.__name__)


def test_enums_on_the_wire_are_found():
    assert {PowerState, *(kind for kind in enums() if issubclass(kind, WireEnum))} == set(enums())


@pytest.mark.parametrize("kind", enums(), **by_name)
def test_enum_when_the_member_is_unknown_then_it_falls_back(kind):
    fallback = PowerState.NOSTATE if kind is PowerState else kind["UNKNOWN"]
    of_tomorrow = 99 if issubclass(kind, int) else "of tomorrow"
    assert codec.unpack(codec.pack(of_tomorrow), kind) is fallback
    assert [codec.unpack(codec.pack(member), kind) for member in kind] == list(kind)


# the judge itself

OLD = {
    "topic": "t", "version": "1.0", "addressed_by": None,
    "methods": {"ask": {"since": "1.0", "timeout": "short", "wants_answer": True, "fanout": False, "result": "Answer",
                        "arguments": {"what": {"type": "str", "required": True}}}},
    "types": {"Answer": {"fields": {"text": {"type": "str", "required": True}}},
              "Mood": {"members": {"GOOD": "good", "UNKNOWN": "unknown"}}}}


def changed(path, value=None):
    new = copy.deepcopy(OLD)
    *parents, last = path.split("/")
    place = new
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return new


@pytest.mark.parametrize(("path", "value", "breaking"), [
    ("version", "1.1", False),
    ("topic", "other", True),
    ("methods/ask/timeout", "long", False),
    ("methods/ask/result", "str", True),
    ("methods/ask/wants_answer", False, True),
    ("methods/ask", None, True),
    ("methods/tell", {**OLD["methods"]["ask"], "since": "1.1"}, False),
    ("methods/tell", OLD["methods"]["ask"], True),  # says that it was there in 1.0
    ("methods/ask/arguments/why", {"type": "str", "required": False}, False),
    ("methods/ask/arguments/why", {"type": "str", "required": True}, True),
    ("methods/ask/arguments/what/type", "int", True),
    ("types/Answer/fields/more", {"type": "str", "required": False}, False),
    ("types/Answer/fields/more", {"type": "str", "required": True}, True),
    ("types/Answer/fields/text", None, True),
    ("types/Answer/fields/text/required", False, True),
    ("types/Mood/members/BAD", "bad", False),
    ("types/Mood/members/GOOD", None, True),
    ("types/Mood/members/GOOD", "fine", True),
    ("types/More", {"fields": {}}, False),
])
def test_breaks_finds_what_an_older_peer_would_stumble_over(path, value, breaking):
    new = changed(path, value)
    assert shapes.differences(OLD, new)
    assert bool(shapes.breaks(OLD, new)) is breaking


def test_shape_of_contract_reaches_into_values():
    shape = {contract.__name__: shapes.shape_of_contract(contract) for contract in shapes.contracts()}["ComputeRPC"]
    assert shape["methods"]["build_guests"]["arguments"]["orders"] == {"type": "[BuildOrder, ...]", "required": True}
    assert shape["types"]["BuildOrder"]["fields"]["image"] == {"type": "Image | null", "required": False}
    assert shape["types"]["Image"]["fields"]["properties"] == {"type": "{str: str}", "required": False}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder of contracts' golden files, as they would be written now."""
    monkeypatch.setattr(shapes, "HERE", tmp_path)  # the script's only outside: where it writes
    monkeypatch.setattr(shapes, "CONTRACTS", tmp_path / "contracts")
    monkeypatch.setattr(shapes, "VALUES", tmp_path / "values")
    assert regenerate.main([]) == 0
    return tmp_path / "contracts"


def compute_rpc(folder):
    [path] = folder.glob("ComputeRPC-*.json")
    return path


def test_regenerate_when_a_contract_changed_without_its_version_then_it_refuses(written, capsys):
    path = compute_rpc(written)
    good = path.read_text()
    path.write_text(good.replace('"short"', '"long"'))
    assert regenerate.main([]) == 1
    assert "ComputeRPC changed: bump the version" in capsys.readouterr().out
    assert path.read_text() != good
    assert regenerate.main(["--same-version"]) == 0
    assert path.read_text() == good
    assert regenerate.main(["--force"]) == 2


def as_minor_0(folder, change):
    """ComputeRPC's golden file is what 1.0 was, and was another one then."""
    path = compute_rpc(folder)
    shape = minors.as_of(shapes.read_contract(path), "1.0")
    path.unlink()
    change(shape)
    old = {**shape, "version": "1.0", "added": {}}
    (folder / "ComputeRPC-1.0.json").write_text(shapes.to_json(old))
    return old


def test_regenerate_when_the_minor_version_grew_then_the_one_before_is_kept_as_hashes(written):
    old = as_minor_0(written, lambda shape: shape["types"]["BuildOrder"]["fields"].pop("packing"))
    assert regenerate.main([]) == 0
    new = shapes.read_contract(compute_rpc(written))
    assert new["version"] != "1.0" and new["added"] == {"types/BuildOrder/fields/packing": new["version"]}
    kept = shapes.older()["ComputeRPC"]["1.0"]
    assert kept == minors.hashes(old, "1.0") == minors.hashes(new, "1.0")
    assert "build_guests" in kept and "pause_guests" not in kept
    assert regenerate.main([]) == 0 and shapes.read_contract(compute_rpc(written)) == new


def test_regenerate_when_a_new_minor_version_breaks_the_one_before_then_it_refuses(written, capsys):
    as_minor_0(written, lambda shape: shape["types"]["BuildOrder"]["fields"].update(gone={
        "type": "str", "required": False}))
    assert regenerate.main([]) == 1
    said = capsys.readouterr().out
    assert "needs a new major version" in said and "/types/BuildOrder/gone: removed" in said


@pytest.mark.parametrize(("path", "value", "who"), [
    ("methods/ask/timeout", "long", []),
    ("methods/ask/arguments/what/type", "int", ["ask has changed"]),
    ("types/Answer/fields/text/type", "int", ["ask has changed"]),
    ("types/Mood/members/BAD", "bad", []),  # no method reaches it
    ("methods/ask", None, ["ask is gone"]),
    ("methods/tell", OLD["methods"]["ask"], ["tell was not there"]),
    ("topic", "other", ["ask has changed"]),
])
def test_hashes_tell_which_method_a_peer_would_not_understand(path, value, who):
    assert minors.differing(minors.hashes(OLD, "1.0"), minors.hashes(changed(path, value), "1.0")) == who


def test_hashes_when_a_class_has_another_name_then_they_are_the_same():
    renamed = json.loads(json.dumps(OLD).replace('"Answer', '"Reply').replace("Answer |", "Reply |"))
    assert "Answer" not in json.dumps(renamed["methods"]) and "Reply" in renamed["types"]
    assert minors.hashes(renamed, "1.0") == minors.hashes(OLD, "1.0")


def test_minor_version_is_the_next_one_without_what_that_added():
    new = changed("methods/ask/arguments/why", {"type": "Mood", "required": False})
    new = {**new, "version": "1.1", "methods": {**new["methods"], "tell": {**OLD["methods"]["ask"], "since": "1.1"}}}
    new["types"]["Answer"]["fields"]["more"] = {"type": "str", "required": False}
    new["added"] = minors.added(OLD, new)
    assert new["added"] == {"methods/ask/arguments/why": "1.1", "types/Answer/fields/more": "1.1"}
    assert minors.hashes(new, "1.0") == minors.hashes(OLD, "1.0")
    assert minors.differing(minors.hashes(OLD, "1.0"), minors.hashes(new, "1.1")) == [
        "ask has changed", "tell was not there"]
