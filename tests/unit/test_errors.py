from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nova import errors
from nova.errors import kinds
from nova.rpc import codec
from tests.docs_parts.errors import by_noun

SOURCES = sorted((Path(errors.__file__).parents[1]).rglob("*.py"))
ROWS = [row for rows in by_noun().values() for row in rows]
NoSuchCake = errors.NotFound.row("cake.no_such_cake", "There is no cake {name}.")


def test_error_fills_its_template_with_data():
    error = NoSuchCake(name="Linzer")
    assert (str(error), error.message, error.code, error.data) == (
        "There is no cake Linzer.", "There is no cake Linzer.", "cake.no_such_cake", {"name": "Linzer"})


def test_error_when_a_message_is_given_then_it_is_not_a_template():
    error = NoSuchCake("No {cake} at 100%", name="x")
    assert (error.message, error.data) == ("No {cake} at 100%", {"name": "x"})


@pytest.mark.parametrize("kind", errors.KINDS)
def test_from_wire_when_the_kind_is_known_then_it_is_raised_as_it(kind):
    error = errors.from_wire(kind, "some.code", "words", {"a": 1})
    assert type(error) is errors.KINDS[kind]
    assert (error.kind, error.code, error.message, error.data) == (kind, "some.code", "words", {"a": 1})
    assert errors.KINDS[kind].code != "some.code"  # the class keeps its own


@pytest.mark.parametrize(("former", "code"), kinds.FORMER_CODES.items())
def test_from_wire_when_the_code_is_of_the_former_release_then_it_is_todays(former, code):
    assert former not in {row.code for row in ROWS} and code in {row.code for row in ROWS}
    assert errors.from_wire("not_found", former, "words", {}).code == code


@pytest.mark.parametrize(("former", "code"), kinds.FORMER_CODES.items())
def test_error_to_wire_when_the_former_release_had_another_code_then_its_peers_get_that(former, code):
    [row] = [row for row in ROWS if row.code == code]
    sent = codec.error_to_wire(row("words"))
    assert sent[1] == former and errors.from_wire(*sent).code == code


def test_from_wire_when_the_kind_is_unknown_then_it_is_a_bug_with_the_message():
    error = errors.from_wire("of_tomorrow", "some.code", "words", {})
    assert (type(error), str(error), error.status) == (errors.Bug, "words", 500)


@pytest.mark.parametrize("data", [{"message": "x"}, {"self": "x"}, {"a b": 1}])
def test_from_wire_when_a_peer_names_its_data_oddly_then_it_is_still_that_error(data):
    assert errors.from_wire("not_found", "c", "words", data).data == data


def test_every_kind_is_known_by_its_name_once():
    def below(cls):
        return {cls, *(each for sub in cls.__subclasses__() for each in below(sub))}

    ours = [cls for cls in below(errors.NovaError) if cls.__module__ == kinds.__name__ and cls is not errors.NovaError]
    assert sorted(cls.kind for cls in ours) == sorted(errors.KINDS)
    assert all(400 <= cls.status < 600 for cls in ours)


def test_row_then_it_is_a_class_named_by_its_code():
    assert (NoSuchCake.__name__, NoSuchCake.__module__, NoSuchCake.status) == ("NoSuchCake", "nova.errors.cake", 404)
    assert NoSuchCake.cure == errors.NotFound.cure
    with pytest.raises(errors.NotFound):
        raise NoSuchCake(name="Linzer")


def test_row_when_it_says_more_than_its_kind_then_that_counts():
    row = errors.Conflict.row("cake.eaten", "Gone.", "Bake another.", status=422)
    assert (row.status, row.cure, row.kind) == (422, "Bake another.", "conflict")


def test_catalogues_then_a_code_means_one_thing():
    assert [code for code, count in Counter(row.code for row in ROWS).items() if count > 1] == []
    assert len(ROWS) > 400


def test_catalogues_then_a_name_is_its_code():
    for noun in (one for one in vars(errors).values() if isinstance(one, ModuleType) and one is not kinds):
        wrong = [row.code for name, row in vars(noun).items() if name[0].isupper() and not name.endswith(row.__name__)]
        assert wrong == []


def test_classes_then_errors_are_rows_of_catalogues():
    """Few errors are more than a row: they hold what must not cross the wire."""
    made = [f"{path.name}: {node.name}" for path in SOURCES if path.parent.name != "errors"
            for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
            for base in node.bases if ast.unparse(base).startswith("errors.")]
    assert sorted(made) == ["engine.py: DatabaseUnavailable", "faults.py: Ec2Error", "target.py: TargetError"]


def test_raised_rows_when_their_message_needs_data_then_it_is_given():
    lacking = [f"{where}: {row.code} lacks {sorted(needed - given)}"
               for where, row, given in _raised() for needed in [_fields(row.message)] if needed - given]
    assert lacking == []


def _fields(template: str) -> set[str]:
    return {name.split(".")[0] for _text, name, *_ in string.Formatter().parse(template) if name}


def _raised() -> Iterator[tuple[str, type[errors.NovaError], set[str]]]:
    """Calls of rows with keywords alone: (where, row, names of the keywords)."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(ast.Attribute(ast.Name("errors"), noun), name), args=[],
                              keywords=given) if all(one.arg for one in given):
                    row = getattr(getattr(errors, noun), name)
                    yield f"{path.name}:{node.lineno}", row, {str(one.arg) for one in given}


def test_messages_and_cures_when_they_name_an_option_then_there_is_one():
    sample = Path(errors.__file__).parents[2] / "etc" / "nova" / "nova.conf.sample"
    section, known = "DEFAULT", {("oslo_messaging_notifications", "driver")}  # a library's own
    for line in sample.read_text().splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            section = match.group(1)
        elif match := re.match(r"#?(\w+) = ?", line):
            known.add((section, match.group(1)))
    named = {(row.code, *found) for row in ROWS for found in re.findall(r"\[(\w+)\](\w+)", f"{row.message} {row.cure}")}
    assert len(named) > 30 and {one for one in named if one[1:] not in known} == set()
