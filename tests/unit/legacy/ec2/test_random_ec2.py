"""EC2's API with parameters of any kind: every answer is XML, and none is a failure of ours."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from types import UnionType

import hypothesis
import msgspec
from hypothesis import strategies as st

from nova.legacy.ec2.actions import ACTIONS
from nova.legacy.ec2.parameters import public_name
from tests.fakes import api
from tests.unit.legacy.ec2.test_hostile_ec2 import OLD, RULES, TODAY, furnished

WORDS = ("", "i-1", "vol-2", "ami-3", "snap-4", "sg-1", "eipalloc-5", "i-fffffffffffffff", "1", "0", "-1", "9999999999",
         "true", "all", "self", "YQ==", "192.0.2.1", "10.0.0.0/33", "::/0", "tcp", "icmp", "nova:host1", "verbose",
         "/dev/vda", "bucket/key", "../x", "demo", "name", "kernel", "add", "default", "web", "terminate", "*" * 50,
         "\\", "\udcff", "a\0b", "tag:a", "instance-id", "key-name", "launchPermission", "userData",
         "\N{ARABIC-INDIC DIGIT THREE}")
TEXTS = st.sampled_from(WORDS) | st.text(max_size=30)
NUMBERS = st.sampled_from(("1", "1", "2", "0", "9999", "item", "x", ""))


def sent(hint: object, name: str) -> st.SearchStrategy[dict[str, str]]:
    """Parameters of a field of this type."""
    if isinstance(hint, UnionType):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return NUMBERS.flatmap(lambda number: sent(inner, f"{name}.{number}"))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return of_struct(hint, f"{name}.")
    return TEXTS.map(lambda text: {name: text})


def of_struct(wanted: type[msgspec.Struct], prefix: str = "") -> st.SearchStrategy[dict[str, str]]:
    hints = typing.get_type_hints(wanted)
    members = [sent(hints[field.name], prefix + public_name(field.name)) for field in msgspec.structs.fields(wanted)]
    return st.lists(st.one_of(members), max_size=6).map(lambda found: {k: v for one in found for k, v in one.items()})


def requests() -> st.SearchStrategy[tuple[str, Mapping[str, str]]]:
    """(action, parameters): of its own, beside what a usual request of it has, or not."""
    def of(action: str) -> st.SearchStrategy[tuple[str, Mapping[str, str]]]:
        usual = RULES.get(action, ((), {}))[1]
        return st.tuples(st.just(action), st.builds(lambda base, more: {**base, **more}, st.sampled_from((usual, {})),
                                                    of_struct(ACTIONS[action].arguments)))
    return st.sampled_from(sorted(ACTIONS)).flatmap(of)


@hypothesis.settings(max_examples=300, deadline=None)
@hypothesis.given(requests(), st.sampled_from((TODAY, OLD, "x")), st.sampled_from(("demo:demo", "admin:admin")))
def test_request_when_its_parameters_are_of_any_kind_then_it_is_answered_and_no_failure_of_ours(
        request: tuple[str, Mapping[str, str]], version: str, who: str) -> None:
    action, given = request
    answer = furnished(api.usual()[1]).ask(action, given, version, who)
    assert answer.status < 500 and (answer.status == 200) == (answer.code == "")
