"""From pairs of names and texts to arguments: as types say, or an error that names the parameter."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.legacy.ec2.actions import ACTIONS
from nova.legacy.ec2.faults import Ec2Error
from nova.legacy.ec2.handlers.run_instances import RunInstances
from nova.legacy.ec2.handlers.security_group_rules import RuleChange
from nova.legacy.ec2.parameters import COMMON, MOST, AskedFilter, Ec2Arguments, arguments


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    number: int | None = None


class Everything(Ec2Arguments, frozen=True, kw_only=True):
    name: str | None = None
    count: int | None = None
    is_on: bool = False
    data: bytes | None = None
    thing_id: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    one: Inner | None = None


def taken(**named: str) -> Everything:
    return arguments(Everything, [(name.replace("__", "."), value) for name, value in named.items()])


def refused(*pairs: tuple[str, str], wanted: type[Ec2Arguments] = Everything) -> tuple[str, str]:
    with pytest.raises(Ec2Error) as raised:
        arguments(wanted, pairs)
    return raised.value.aws_code, raised.value.message


def test_arguments_when_all_kinds_come_then_each_is_read_as_its_type() -> None:
    found = taken(Name="0123", Count="-7", IsOn="TRUE", Data="aGVsbG8=", ThingId__2="b", ThingId__1="a",
                  Inner__1__Key="k", Inner__1__Number="5", One__Key="x", DryRun="true")
    assert found == Everything(name="0123", count=-7, is_on=True, data=b"hello", thing_id=("a", "b"),
                               inner=(Inner(key="k", number=5),), one=Inner(key="x"), dry_run=True)


@pytest.mark.parametrize("name", ["ThingId", "ThingId.1", "thingid.1", "THINGID.0001", "ThingId.item.1",
                                  "ThingId.member.1"])
def test_list_when_it_has_one_member_then_every_spelling_of_it_is_taken(name: str) -> None:
    assert arguments(Everything, [(name, "a")]).thing_id == ("a",)


def test_list_when_numbers_have_gaps_then_their_order_counts() -> None:
    assert taken(ThingId__30="c", ThingId__4="b", ThingId__0="a").thing_id == ("a", "b", "c")
    assert taken(ThingId="").thing_id == ()


def test_text_when_a_client_numbers_the_only_one_then_it_is_that() -> None:
    assert taken(Name__1="a").name == "a"


def test_common_parameters_when_they_come_then_no_action_sees_them() -> None:
    assert arguments(Everything, [(name.upper(), "x") for name in COMMON]) == Everything()


def test_arguments_when_a_parameter_is_wrong_then_it_is_named_as_it_was_sent() -> None:
    assert refused(("Colour", "red")) == ("UnknownParameter", "The parameter Colour is not recognized.")
    assert refused(("inner.1.cOlour.2", "red"))[1] == "The parameter inner.1.cOlour.2 is not recognized."
    assert refused(("Inner.1.Number", "5")) == (
        "MissingParameter", "The request must contain the parameter Inner.1.Key")
    assert refused(("Count", "many"))[1].startswith("Value (many) for parameter Count is invalid.")
    for number in ("1.5", "0x10", "", " 1", "1" * 11, "\N{ARABIC-INDIC DIGIT ONE}"):
        assert refused(("Count", number))[0] == "InvalidParameterValue", number
    for flag in ("", "maybe", "2"):
        assert refused(("IsOn", flag))[0] == "InvalidParameterValue", flag
    for data in ("a", "ä", "%%%%"):
        assert refused(("Data", data)) == ("InvalidParameterValue", "The parameter Data must be encoded in base64.")


@pytest.mark.parametrize("pair", [("Name", "a\udcff"), ("Na\udcffme", "a"), ("ThingId.1", "\ud800")])
def test_arguments_when_they_are_no_utf_8_then_they_are_refused(pair: tuple[str, str]) -> None:
    code, message = refused(pair)
    assert code == "InvalidParameterValue" and message.endswith("is not valid UTF-8.")


def test_arguments_when_they_contradict_then_they_are_refused() -> None:
    assert refused(("Name", "a"), ("name", "a"))[0] == "InvalidParameterCombination"
    assert refused(("ThingId", "a"), ("ThingId.1", "b"))[0] == "InvalidParameterValue"
    assert refused(("One", "a"))[0] == "InvalidParameterValue"
    assert refused(("Name.2", "a"))[0] == "UnknownParameter" == refused(("ThingId.x", "a"))[0]
    assert refused(("Name.1.1", "a"))[0] == "UnknownParameter" == refused(("ThingId.12345", "a"))[0]
    assert refused(("ThingId." * 9, "a"))[0] == "UnknownParameter"
    assert refused(*[(f"ThingId.{number}", "a") for number in range(MOST + 1)]) == (
        "InvalidParameterValue", f"The request has more than {MOST} parameters.")


def test_arguments_when_values_are_secret_or_long_then_messages_have_them_short() -> None:
    assert len(refused(("Count", "9" * 5000))[1]) < 400
    assert len(refused(("C" * 5000, ""))[1]) < 400
    assert "c2VjcmV0!" not in refused(("Data", "c2VjcmV0!"))[1]


WORDS = st.sampled_from(["Name", "Count", "ThingId", "Inner", "One", "Key", "Number", "1", "2", "01", "item", "member",
                         "DryRun", "Filter", "Value", "IpPermissions", "Groups", "GroupName", "FromPort", "ImageId",
                         "Ebs", "BlockDeviceMapping", "VolumeSize", "", "\udcff", "x" * 300])
NAMES = st.lists(WORDS, max_size=10).map(".".join) | st.text(max_size=20)
PAIRS = st.lists(st.tuples(NAMES, st.text(max_size=12) | st.sampled_from(["1", "-1", "true", "aGk="])), max_size=12)


@settings(deadline=None)
@given(pairs=PAIRS, wanted=st.sampled_from([Everything, RunInstances, RuleChange]))
def test_arguments_when_anything_comes_then_they_are_read_or_refused(pairs: list[tuple[str, str]],
                                                                     wanted: type[Ec2Arguments]) -> None:
    try:
        assert isinstance(arguments(wanted, pairs), wanted)
    except Ec2Error as error:
        assert error.aws_code and len(error.message) < 1000


LETTERS = st.characters(exclude_categories=("Cc", "Cs"))  # what is text


@settings(deadline=None)
@given(names=st.lists(st.tuples(st.text(LETTERS, min_size=1, max_size=8),
                                st.lists(st.text(LETTERS, max_size=8), max_size=4)), min_size=1, max_size=5))
def test_filters_when_they_are_written_as_clients_do_then_they_are_read_back(names: list[tuple[str, list[str]]]
                                                                             ) -> None:
    pairs = [(f"Filter.{at}.Name", name) for at, (name, _values) in enumerate(names, 1)]
    pairs += [(f"Filter.{at}.Value.{place}", value) for at, (_name, values) in enumerate(names, 1)
              for place, value in enumerate(values, 1)]
    found = arguments(ACTIONS["DescribeInstances"].arguments, pairs)
    assert found.filter == tuple(AskedFilter(name, tuple(values)) for name, values in names)  # type: ignore[attr-defined]


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_arguments_when_an_action_names_them_then_all_have_types_that_are_read(action: str) -> None:
    """A type that the reader does not know would be an error of ours at the first request."""
    def check(wanted: type[msgspec.Struct]) -> None:
        for field in msgspec.structs.fields(wanted):
            kind = field.type
            for one in getattr(kind, "__args__", (kind,)):
                if isinstance(one, type) and issubclass(one, msgspec.Struct):
                    check(one)
                else:
                    assert one in (str, int, bool, bytes, type(None), ...) or "tuple" in str(one), (wanted, field.name)
    check(ACTIONS[action].arguments)
