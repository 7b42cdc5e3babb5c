"""Which ranges guests are kept from, and what stays open in them."""

from __future__ import annotations

import pytest

from nova.model.network.forbidden_ranges import Forbidden, RangeSetting, collapsed, parsed, worked_out


@pytest.mark.parametrize("words, expected", [
    (["auto"], RangeSetting()), (["none"], RangeSetting(auto=False)),
    ([" 10.9.0.7/16", "fd00::/8"], RangeSetting(False, ("10.9.0.0/16", "fd00::/8"))),
    (["10.9.0.0/16", "auto"], RangeSetting(True, ("10.9.0.0/16",)))])
def test_setting_when_it_is_well_said_then_it_is_this(words, expected):
    assert parsed(words) == expected


@pytest.mark.parametrize("words, reason", [
    ([], "is empty"), ([""], "is empty"), (["none", "auto"], "cannot be combined"), (["10.0.0"], "must be a range"),
    (["0.0.0.0/0"], "block all traffic")])
def test_setting_when_it_is_no_range_or_says_nothing_then_the_reason_is_told(words, reason):
    with pytest.raises(ValueError, match=reason):
        parsed(words)


OWN = RangeSetting()  # what the host works out by itself
MANAGEMENT, WIDE = "10.200.0.0/24", "10.0.0.0/8"


@pytest.mark.parametrize("wanted, found, guests, expected", [
    (OWN, [MANAGEMENT, "fd12::/64"], ["10.11.12.0/24"], Forbidden((MANAGEMENT, "fd12::/64"))),
    (OWN, [MANAGEMENT, "10.11.12.0/24", "10.11.12.1/32"], ["10.11.12.0/24"], Forbidden((MANAGEMENT,))),  # the bridge
    (OWN, [WIDE], ["10.11.12.0/24", "10.200.0.80/32"], Forbidden((WIDE,), ("10.11.12.0/24", "10.200.0.80/32"))),
    (OWN, [MANAGEMENT], ["10.0.0.0/8"], Forbidden()),
    (OWN, ["fd12::/64"], ["fd12::/80"], Forbidden(("fd12::/64",), ("fd12::/80",))),
    (OWN, [MANAGEMENT, "10.200.1.0/24"], [], Forbidden(("10.200.0.0/23",))),
    (OWN, ["169.254.0.0/16"], [], Forbidden(("169.254.0.0/16",), ("169.254.169.254/32",))),
    (RangeSetting(True, ("172.16.0.0/12",)), [MANAGEMENT], [], Forbidden((MANAGEMENT, "172.16.0.0/12"))),
    (RangeSetting(False, ("172.16.0.0/12",)), [MANAGEMENT], [], Forbidden(("172.16.0.0/12",))),
    (RangeSetting(False), [MANAGEMENT], [], Forbidden())])
def test_forbidden_when_guests_have_ranges_then_theirs_win(wanted, found, guests, expected):
    assert worked_out(wanted, found, guests) == expected


def test_forbidden_when_the_operator_makes_exceptions_then_they_are_open():
    assert worked_out(OWN, [MANAGEMENT], (), ["10.200.0.53/32"]) == Forbidden((MANAGEMENT,), ("10.200.0.53/32",))


def test_forbidden_when_it_is_asked_for_one_version_then_the_other_is_left_out():
    both = worked_out(OWN, [MANAGEMENT, "fd12::/64"], ["10.200.0.9", "fd12::9"])
    assert both.of_version(4) == Forbidden((MANAGEMENT,), ("10.200.0.9/32",))
    assert both.of_version(6) == Forbidden(("fd12::/64",), ("fd12::9/128",))


def test_collapsed_when_addresses_are_beside_each_other_then_they_are_one_range():
    assert collapsed(["192.0.2.1", "10.1.0.0/24", "192.0.2.0", "fd00::/64", "10.1.0.7"]) == (
        "10.1.0.0/24", "192.0.2.0/31", "fd00::/64")
