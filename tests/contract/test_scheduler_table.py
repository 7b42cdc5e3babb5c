"""Our filters, weighers, rules and their options against the contract's table."""

from __future__ import annotations

from types import ModuleType

import pytest

from nova.conf import filter_scheduler, metrics, scheduler
from nova.conf._without_effect import table
from nova.scheduler import prefilters
from nova.scheduler.filters import Filter, all_filters
from nova.scheduler.weighers import all_weighers
from tests.contract import rows

pytestmark = rows.needs_contract

SECTIONS: dict[str, ModuleType] = {one.GROUP: one for one in (filter_scheduler, metrics, scheduler)}
#: Names that old configurations may have and the contract does not.
OLD = {"AvailabilityZoneFilter", "RamFilter", "CoreFilter", "DiskFilter"}


def default(option: str) -> object:
    """Of an option written as ``[group]name``."""
    group, name = option.removeprefix("[").split("]")
    return {one.dest: one.default for one in SECTIONS[group].OPTS}[name]


def test_every_filter_of_the_contract_is_there_and_no_other() -> None:
    wanted = {one["name"] for one in rows.load("scheduler.yaml")["filters"]}
    assert {cls.__name__ for cls in all_filters()} - OLD == wanted


def test_every_weigher_of_the_contract_is_there_and_no_other() -> None:
    assert [cls.__name__ for cls in all_weighers()] == [one["name"] for one in rows.load("scheduler.yaml")["weighers"]]


def test_filters_run_in_a_rebuild_as_the_contract_says() -> None:
    ours: dict[str, type[Filter]] = {cls.__name__: cls for cls in all_filters()}
    for one in rows.load("scheduler.yaml")["filters"]:
        assert ours[one["name"]].on_rebuild is one["on_rebuild"], one["name"]


def test_rules_before_the_filters_are_the_contracts_with_their_switches() -> None:
    wanted = {one["name"]: one["switch"] and one["switch"].removeprefix("[scheduler]")
              for one in rows.load("scheduler.yaml")["placement_request_filters"]}
    assert {rule.name: rule.switch for rule in prefilters.RULES} == wanted


@pytest.mark.parametrize("kind", ["filters", "weighers"])
def test_options_have_the_contracts_defaults(kind: str) -> None:
    for one in rows.load("scheduler.yaml")[kind]:
        for option in one.get("options", ()):
            assert default(option["option"]) == option["default"], option


def test_general_options_have_the_contracts_defaults() -> None:
    for option, wanted in rows.load("scheduler.yaml")["defaults"].items():
        group, name = option.removeprefix("[").split("]")
        assert table().find(group, name) or default(option) == wanted, option


def test_weighers_read_the_multiplier_that_the_contract_names() -> None:
    ours = {cls.__name__: cls for cls in all_weighers()}
    for one in rows.load("scheduler.yaml")["weighers"]:
        options = [option["option"] for option in one["options"] if option["option"].endswith("weight_multiplier")]
        if not options[0].startswith("[metrics]"):
            assert options == [f"[filter_scheduler]{ours[one['name']].multiplier_option}"]
