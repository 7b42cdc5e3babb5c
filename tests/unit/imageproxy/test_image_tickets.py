"""Image tickets: whatever is changed about one, or about the request that it comes with, it opens nothing."""

from __future__ import annotations

import time

import pytest

from nova import errors
from nova.imageproxy.access import FILE, LOCATIONS, RECORD, ImageAccess, ImageRequest
from nova.model.image.image_tickets import (
    CLOCK_S,
    PROOF_HEADER,
    READ,
    TICKET_HEADER,
    TIME_HEADER,
    WRITE,
    ImageTicket,
    ProvenRequest,
    data_path,
    host_key,
    key_of,
    proven_headers,
    record_path,
    stamp,
)
from nova.rpc.ticket_encryption import TicketCipher
from nova.web.replay_cache import ReplayCache
from tests.fakes.image_proxies import HOST, KEY, OTHER_KEY, SECRET, ticket

IMAGE = "aaaaaaaa-0000-4000-8000-000000000001"
SEAL = TicketCipher([KEY])


def request(given: ImageTicket, method: str = READ, data: bool = True, secret: str = SECRET, **parts: str,
            ) -> ImageRequest:
    """As a host of this secret would make it, for the image that the ticket is for or another."""
    image_id, at = parts.pop("image_id", given.image_id), parts.pop("time", str(int(time.time())))
    target = data_path(image_id) if data else record_path(image_id)
    wanted, length = parts.pop("range", ""), parts.pop("length", "")
    headers = proven_headers(given, host_key(secret, given.id), ProvenRequest(method, target, wanted, length, at))
    return ImageRequest(method, image_id, FILE if data else RECORD, wanted, length, headers[TICKET_HEADER],
                        headers[TIME_HEADER], headers[PROOF_HEADER])


def admit(asked: ImageRequest, gate: ImageAccess | None = None) -> str:
    return (gate or ImageAccess(SEAL, ReplayCache())).admit(asked).host


@pytest.mark.parametrize(("direction", "asked"), [
    (READ, {}), (READ, {"range": "bytes=5-"}), (READ, {"data": False}), (WRITE, {"method": WRITE, "length": "10"}),
    (WRITE, {"data": False})])
def test_admit_when_the_host_does_what_its_ticket_is_for_then_it_may(direction: str, asked: dict) -> None:
    assert admit(request(ticket(IMAGE, direction), **asked)) == HOST


def test_admit_when_another_host_has_the_ticket_then_it_may_not() -> None:
    with pytest.raises(errors.image.TicketNotProven) as refused:
        admit(request(ticket(IMAGE), secret="the secret of another host, long enough"))
    assert refused.value.status == 401


@pytest.mark.parametrize(("direction", "asked", "why"), [
    (READ, {"image_id": "another"}, "for image aaaa"), (READ, {"image_id": "another", "data": False}, "for image aaaa"),
    (READ, {"method": WRITE, "length": "3"}, "not for PUT"), (WRITE, {}, "not for GET")])
def test_admit_when_it_is_for_another_image_or_direction_then_it_may_not(direction: str, asked: dict, why: str) -> None:
    with pytest.raises(errors.image.TicketWrongUse, match=why) as refused:
        admit(request(ticket(IMAGE, direction), **asked))
    assert refused.value.status == 403


def test_admit_when_the_ticket_has_expired_then_it_is_gone() -> None:
    old = ticket(IMAGE, clock=lambda: time.time() - 100, lifetime_s=60)
    with pytest.raises(errors.image.TicketExpired) as refused:
        admit(request(old))
    assert refused.value.status == 410 and isinstance(refused.value, errors.Unavailable)


@pytest.mark.parametrize("change", [
    {"range": "bytes=100-"}, {"method": WRITE}, {"part": RECORD}, {"part": LOCATIONS}, {"time": "1700000000"},
    {"proof": ""}, {"proof": "0" * 64}])
def test_admit_when_headers_of_another_request_are_repeated_then_it_may_not(change: dict) -> None:
    with pytest.raises(errors.image.TicketNotProven):
        admit(request(ticket(IMAGE), range="bytes=5-")._replace(**change))


def test_admit_when_a_body_of_another_length_comes_with_the_proof_then_it_may_not() -> None:
    with pytest.raises(errors.image.TicketNotProven):
        admit(request(ticket(IMAGE, WRITE), WRITE, length="10")._replace(length="11"))


@pytest.mark.parametrize("late_s", [CLOCK_S + 5, -CLOCK_S - 5])
def test_admit_when_the_hosts_clock_is_wrong_then_it_may_not(late_s: int) -> None:
    with pytest.raises(errors.image.TicketNotProven, match="60 s"):
        admit(request(ticket(IMAGE)), ImageAccess(SEAL, ReplayCache(), lambda: time.time() + late_s))


def test_admit_when_a_request_comes_a_second_time_then_refused_and_the_host_is_named() -> None:
    gate, given = ImageAccess(SEAL, ReplayCache()), ticket(IMAGE)
    asked = request(given, time=stamp(time.time()))
    assert admit(asked, gate) == HOST
    with pytest.raises(errors.image.TicketRepeated, match=HOST) as refused:
        admit(asked, gate)
    assert refused.value.status == 403
    for wanted in ("", "bytes=5-", "bytes=5-"):  # the host itself goes on with another request
        assert admit(request(given, range=wanted, time=stamp(time.time())), gate) == HOST


def test_admit_when_a_captured_request_is_given_another_stamp_then_it_is_not_proven() -> None:
    asked = request(ticket(IMAGE), time=stamp(time.time()))
    for other in (stamp(time.time()), asked.time.partition("-")[0], asked.time + "0"):
        with pytest.raises(errors.image.TicketNotProven):
            admit(asked._replace(time=other))


def test_admit_when_an_older_host_asks_twice_within_a_second_then_it_may() -> None:
    gate, asked = ImageAccess(SEAL, ReplayCache()), request(ticket(IMAGE))
    assert admit(asked, gate) == admit(asked, gate) == HOST


def test_admit_when_a_refused_host_fills_nothing_then_only_proven_requests_are_remembered() -> None:
    gate, asked = ImageAccess(SEAL, ReplayCache()), request(ticket(IMAGE), time=stamp(time.time()))
    with pytest.raises(errors.image.TicketNotProven):
        admit(asked._replace(proof="0" * 64), gate)
    assert admit(asked, gate) == HOST


@pytest.mark.parametrize("wrong", ["", "soon", "²", "9" * 5000, "-", "-1", "0" * 30 + "-x"])
def test_admit_when_the_time_is_no_number_then_it_may_not(wrong: str) -> None:
    with pytest.raises(errors.image.TicketNotProven):
        admit(request(ticket(IMAGE), time=wrong))


def test_open_when_the_ticket_is_changed_anywhere_then_it_is_invalid() -> None:
    sealed = ticket(IMAGE).sealed
    other = "B" if sealed[50] == "A" else "A"
    for changed in ("", sealed[:-1], sealed[:-20], sealed[:60], sealed[10:], sealed[:50] + other + sealed[51:],
                    "Ünsinn", sealed * 20):
        with pytest.raises(errors.image.TicketInvalid) as refused:
            SEAL.open(changed)
        assert refused.value.status == 401


def test_open_when_a_foreign_key_sealed_it_then_it_is_invalid() -> None:
    with pytest.raises(errors.image.TicketInvalid):
        SEAL.open(ticket(IMAGE, key=OTHER_KEY).sealed)


def test_open_when_keys_are_rotated_then_old_and_new_tickets_are_good_until_the_old_key_goes() -> None:
    old, new = ticket(IMAGE), ticket(IMAGE, key=OTHER_KEY)
    both = TicketCipher([OTHER_KEY, KEY])
    assert both.open(old.sealed).image_id == both.open(new.sealed).image_id == IMAGE
    assert TicketCipher([OTHER_KEY]).open(both.encrypt(both.open(old.sealed))).id == old.id
    with pytest.raises(errors.image.TicketInvalid):
        TicketCipher([OTHER_KEY]).open(old.sealed)


@pytest.mark.parametrize("keys", [[], ["short"], [KEY, "Ünsinn"]])
def test_seal_when_a_key_is_missing_or_malformed_then_it_says_how_to_make_one(keys: list[str]) -> None:
    with pytest.raises(errors.config.ImageProxyKey, match="openssl rand") as refused:
        TicketCipher(keys)
    assert KEY not in str(refused.value) and "short" not in str(refused.value)


def test_key_of_when_a_host_changes_its_secret_then_it_is_the_one_that_the_conductor_knew() -> None:
    one = ticket(IMAGE)
    assert key_of(one, ("the next one", SECRET, "the one before")) == host_key(SECRET, one.id)
    assert one.key_id not in host_key(SECRET, one.id)
    with pytest.raises(errors.image.TicketNotProven, match="a different secret"):
        key_of(one, ("the next one",))


def test_repr_then_it_tells_neither_ticket_nor_key() -> None:
    one = ticket(IMAGE)
    facts = SEAL.open(one.sealed)
    assert one.sealed not in repr(one) and facts.host_key not in repr(facts)
