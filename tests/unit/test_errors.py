from __future__ import annotations

import pytest

from nova import errors


class NoSuchCake(errors.NotFound):
    code, message = "cake.not_found", "There is no cake {name}."


def test_error_fills_its_template_with_data():
    error = NoSuchCake(name="Linzer")
    assert (str(error), error.message, error.code, error.data) == (
        "There is no cake Linzer.", "There is no cake Linzer.", "cake.not_found", {"name": "Linzer"})


def test_error_when_a_message_is_given_then_it_is_not_a_template():
    error = NoSuchCake("No {cake} at 100%", name="x")
    assert (error.message, error.data) == ("No {cake} at 100%", {"name": "x"})


@pytest.mark.parametrize("kind", errors.KINDS)
def test_from_wire_when_the_kind_is_known_then_it_is_raised_as_it(kind):
    error = errors.from_wire(kind, "some.code", "words", {"a": 1})
    assert type(error) is errors.KINDS[kind]
    assert (error.kind, error.code, error.message, error.data) == (kind, "some.code", "words", {"a": 1})
    assert errors.KINDS[kind].code != "some.code"  # the class keeps its own


def test_from_wire_when_the_kind_is_unknown_then_it_is_a_bug_with_the_message():
    error = errors.from_wire("of_tomorrow", "some.code", "words", {})
    assert (type(error), str(error), error.status) == (errors.Bug, "words", 500)


@pytest.mark.parametrize("data", [{"message": "x"}, {"self": "x"}, {"a b": 1}])
def test_from_wire_when_a_peer_names_its_data_oddly_then_it_is_still_that_error(data):
    assert errors.from_wire("not_found", "c", "words", data).data == data


def test_every_kind_is_known_by_its_name_once():
    def below(cls):
        return {cls, *(each for sub in cls.__subclasses__() for each in below(sub))}

    ours = [cls for cls in below(errors.NovaError) if cls.__module__ == errors.__name__ and cls is not errors.NovaError]
    assert sorted(cls.kind for cls in ours) == sorted(errors.KINDS)
    assert all(400 <= cls.status < 600 for cls in ours)
