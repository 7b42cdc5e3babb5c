"""Who is asked where guests are, how often, and what holds until there is an answer."""

from __future__ import annotations

from nova import errors
from nova.model.network.forbidden_ranges import Forbidden, RangeSetting
from nova.privileged.forbidding import ASK_AGAIN_S, ASK_EVERY_S, Forbidding

OWN = RangeSetting()  # what the host works out by itself
MANAGEMENT, GUESTS = "10.200.0.0/24", "10.11.12.0/24"


class Asked:
    def __init__(self, *ranges: str) -> None:
        self.ranges, self.times, self.now, self.down = ranges, 0, 1000.0, False
        self.found = [MANAGEMENT]

    def __call__(self) -> tuple[str, ...]:
        self.times += 1
        if self.down:
            raise errors.PeerTooOld("not known yet")
        return self.ranges

    def made(self, wanted: RangeSetting = OWN) -> Forbidding:
        return Forbidding(wanted, ("10.200.0.53/32",), self, lambda: tuple(self.found), lambda: self.now)


def test_forbidding_when_it_is_asked_often_then_it_asks_now_and_then():
    asked = Asked(GUESTS)
    forbidding = asked.made()
    for _ in range(3):
        assert forbidding.now(["10.11.12.5"]) == Forbidden((MANAGEMENT,), ("10.200.0.53/32",))
    assert asked.times == 1
    asked.now += ASK_EVERY_S
    forbidding.now(["10.11.12.5"])
    assert asked.times == 2


def test_forbidding_when_a_guest_is_in_no_known_range_then_it_asks_anew_and_meanwhile_its_address_is_open():
    asked = Asked(GUESTS)
    asked.found = ["10.0.0.0/8"]
    forbidding = asked.made()
    forbidding.now(["10.11.12.5"])
    asked.now += ASK_AGAIN_S
    assert "10.20.0.5/32" in forbidding.now(["10.20.0.5"]).open and asked.times == 2
    assert forbidding.now(["10.20.0.5"]) and asked.times == 2
    asked.ranges, asked.now = (GUESTS, "10.20.0.0/24"), asked.now + ASK_AGAIN_S
    assert "10.20.0.0/24" in forbidding.now(["10.20.0.5"]).open


def test_forbidding_when_nobody_said_yet_where_guests_are_then_nothing_is_forbidden():
    asked = Asked(GUESTS)
    asked.down, forbidding = True, asked.made()
    assert forbidding.now(["10.11.12.5"]) == Forbidden()
    asked.down, asked.now = False, asked.now + ASK_AGAIN_S
    assert forbidding.now(["10.11.12.5"]).ranges == (MANAGEMENT,)
    asked.down, asked.now = True, asked.now + ASK_EVERY_S
    assert forbidding.now(["10.11.12.5"]).ranges == (MANAGEMENT,), "what was said last holds"


def test_forbidding_when_the_host_gets_another_network_then_it_is_forbidden_too():
    asked = Asked(GUESTS)
    forbidding = asked.made()
    forbidding.now(())
    asked.found.append("172.20.0.0/16")
    assert forbidding.now(()).ranges == (MANAGEMENT, "172.20.0.0/16")


def test_forbidding_when_it_is_switched_off_then_nobody_is_asked():
    asked = Asked(GUESTS)
    assert asked.made(RangeSetting(auto=False)).now(["10.11.12.5"]) == Forbidden() and asked.times == 0
