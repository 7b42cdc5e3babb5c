from __future__ import annotations

import msgspec
import pytest

from nova.rpc.interface import Contract, Timeout, call, cast, parse_version


class Kitchen(Contract):
    topic, version, addressed_by = "kitchen", "1.2", "host"

    @call(timeout=Timeout.LONG, since="1.1", sensitive=True)
    def bake(self, host: str, cakes: tuple[str, ...], degrees: int | None = None) -> tuple[str, ...]:
        """Bake."""

    @cast(fanout=True)
    def smell(self, host: str) -> None:
        """Tell all."""

    def helper(self) -> int:
        return 3


def test_methods_are_those_that_are_marked():
    assert set(Kitchen.methods) == {"bake", "smell"}
    bake, smell = Kitchen.methods["bake"], Kitchen.methods["smell"]
    assert (bake.timeout, bake.since, bake.wants_answer, bake.fanout, bake.sensitive, bake.result) == (
        Timeout.LONG, "1.1", True, False, True, tuple[str, ...])
    assert (smell.since, smell.wants_answer, smell.fanout, smell.result) == ("1.0", False, True, type(None))


def test_arguments_are_a_struct_with_the_parameters_types_and_defaults():
    fields = {field.name: (field.type, field.required)
              for field in msgspec.structs.fields(Kitchen.methods["bake"].arguments)}
    assert fields == {"host": (str, True), "cakes": (tuple[str, ...], True), "degrees": (int | None, False)}


@pytest.mark.parametrize(("text", "version"), [("1.0", (1, 0)), ("1.10", (1, 10)), ("12.3", (12, 3))])
def test_parse_version(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "1", "1.0.0", "one.two"])
def test_parse_version_when_it_is_none_then_value_error(text):
    with pytest.raises(ValueError):
        parse_version(text)


CAKES = ("sponge",)
BAKED = {"host": "h1", "cakes": CAKES}


@pytest.mark.parametrize(("args", "kwargs", "named"), [
    (("h1", CAKES), {}, BAKED), (("h1",), {"cakes": CAKES}, BAKED), ((), BAKED, BAKED),
    (("h1", CAKES, 180), {}, {**BAKED, "degrees": 180})])
def test_call_when_its_arguments_are_valid_then_each_has_its_name(
        args: tuple[object, ...], kwargs: dict[str, object], named: dict[str, object]) -> None:
    bake = Kitchen.methods["bake"]
    assert bake.named(args, kwargs) == named
    assert {"self": None, **named} == bake.signature.bind(None, *args, **kwargs).arguments


@pytest.mark.parametrize(("args", "kwargs"), [
    (("h1", CAKES, 180, 7), {}), (("h1", CAKES), {"host": "h2"}), (("h1",), {}), (("h1", CAKES), {"colour": "red"})])
def test_call_when_its_arguments_are_not_the_methods_then_it_is_refused(
        args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    bake = Kitchen.methods["bake"]
    with pytest.raises(TypeError):
        bake.arguments(**bake.named(args, kwargs))
