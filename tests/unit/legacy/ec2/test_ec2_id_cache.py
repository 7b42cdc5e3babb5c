"""EC2's ids and back: what is no id, what is nobody's, and what is asked once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.legacy.ec2 import ids
from nova.legacy.ec2.faults import ABSENT, Ec2Error
from nova.legacy.ec2.ids import IdCache
from nova.model.ec2 import KINDS
from tests.fakes.ec2 import Ec2Conductor


@pytest.fixture
def conductor() -> Ec2Conductor:
    return Ec2Conductor()


@pytest.fixture
def cache(conductor: Ec2Conductor) -> IdCache:
    return IdCache(conductor.client())


def code(cache: IdCache, prefix: str, shown: str) -> str:
    with pytest.raises(Ec2Error) as raised:
        cache.meant(prefix, (shown,))
    return raised.value.aws_code


@pytest.mark.parametrize("prefix", sorted(KINDS))
def test_id_when_it_is_unknown_or_none_then_its_kind_has_the_code(cache: IdCache, prefix: str) -> None:
    not_found, malformed, _ = ABSENT[KINDS[prefix]]
    assert code(cache, prefix, f"{prefix}-0000000a") == not_found
    for wrong in (f"{prefix}-", f"{prefix}-zz", "nonsense", "", prefix, f"{prefix}--1", f"{prefix}-{'1' * 16}",
                  f"{prefix}-\N{ARABIC-INDIC DIGIT ONE}", "r-12345678"):
        assert code(cache, prefix, wrong) == malformed, wrong
    other = "vol" if KINDS[prefix] != "volume" else "i"
    assert code(cache, prefix, f"{other}-0000000a") == malformed


def test_ids_when_they_are_known_then_the_conductor_is_asked_no_more(cache: IdCache, conductor: Ec2Conductor) -> None:
    shown = cache.of("i", ["a", "b", "", "a"])
    assert list(shown) == ["a", "b"] and len(set(shown.values())) == 2
    assert cache.of("i", ["b"]) == {"b": shown["b"]} and cache.meant("i", [shown["a"]]) == {shown["a"]: "a"}
    assert conductor.asked("assign_ec2_numbers") == [("instance", ("a", "b"))] and conductor.asked("get_ec2_ids") == []
    assert set(cache.of("i", ["a", "c"])) == {"a", "c"}
    assert conductor.asked("assign_ec2_numbers")[1:] == [("instance", ("c",))]
    assert cache.of("i", []) == {} and len(conductor.asked("assign_ec2_numbers")) == 2


def test_id_when_another_process_made_it_then_it_is_asked_once(cache: IdCache, conductor: Ec2Conductor) -> None:
    id = conductor.number("vol", "v")
    for _ in range(2):
        assert cache.meant("vol", [f" {id.upper()} "]) == {f" {id.upper()} ": "v"}
    assert len(conductor.asked("get_ec2_ids")) == 1


def test_image_when_its_prefix_is_another_of_images_then_it_is_the_same(cache: IdCache) -> None:
    number = cache.of("ami", ["image"])["image"].removeprefix("ami-")
    for prefix in ("ami", "aki", "ari"):
        assert cache.meant("ami", [f"{prefix}-{number}"]) == {f"{prefix}-{number}": "image"}


def test_unknown_when_it_comes_to_be_then_it_is_found(cache: IdCache, conductor: Ec2Conductor) -> None:
    assert code(cache, "i", "i-00000001") == "InvalidInstanceID.NotFound"
    assert conductor.number("i", "new") == "i-00000001"
    assert cache.meant("i", ["i-00000001"]) == {"i-00000001": "new"}


def test_cache_when_it_is_full_then_it_begins_anew_and_answers_stay_right(
        cache: IdCache, conductor: Ec2Conductor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "MOST_KEPT", 3)
    first = cache.of("i", ["a", "b", "c", "d"])
    cache.of("i", ["e"])
    again = cache.of("i", ["a", "e", "f"])
    assert again["a"] == first["a"] and len(set(again.values())) == 3
    assert len(conductor.asked("assign_ec2_numbers")) == 3


@settings(deadline=None)
@given(shown=st.text(max_size=20) | st.from_regex(r"[a-z]{1,8}-[0-9a-fA-F]{1,17}", fullmatch=True))
def test_text_when_it_is_any_then_it_is_an_id_of_nobodys_or_none(shown: str) -> None:
    with pytest.raises(Ec2Error) as raised:
        IdCache(Ec2Conductor().client()).meant("i", (shown,))
    assert raised.value.aws_code in ("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed")
