"""Numbers of EC2's ids: one for each thing, for ever, whoever asks first."""

from __future__ import annotations

import threading

from nova.conductor import ec2_numbers
from nova.model.ec2 import IMAGE, INSTANCE, VOLUME
from nova.model.guest.guests import GuestQuery
from tests.fakes.small_cloud import SmallCloud


def test_numbers_when_asked_again_then_they_are_the_same_and_lead_back(cloud: SmallCloud) -> None:
    first = cloud.control.assign_ec2_numbers(INSTANCE, ("u1", "u2"))
    assert cloud.control.assign_ec2_numbers(INSTANCE, ("u2", "u1", "u2")) == first
    assert len(set(first.values())) == 2
    assert cloud.control.get_ec2_ids(INSTANCE, tuple(first.values())) == {number: id for id, number in first.items()}


def test_numbers_when_a_thing_of_another_kind_has_the_same_id_then_it_has_its_own(cloud: SmallCloud) -> None:
    of_server, of_volume = (cloud.control.assign_ec2_numbers(kind, ("u1",))["u1"] for kind in (INSTANCE, VOLUME))
    assert of_server != of_volume
    assert cloud.control.get_ec2_ids(VOLUME, (of_server,)) == {}, "an instance's number is no volume's"


def test_numbers_when_names_differ_by_case_then_they_are_two(cloud: SmallCloud) -> None:
    found = cloud.control.assign_ec2_numbers(INSTANCE, ("a", "A"))
    assert found["a"] != found["A"]


def test_meant_when_a_number_was_never_given_then_it_is_left_out(cloud: SmallCloud) -> None:
    assert cloud.control.get_ec2_ids(INSTANCE, (1, 2**40)) == {}


def test_numbers_when_nothing_is_asked_then_nothing_is_written(cloud: SmallCloud) -> None:
    assert cloud.control.assign_ec2_numbers(INSTANCE, ()) == {}


def test_numbers_when_several_ask_first_at_once_then_all_hear_the_same(cloud: SmallCloud) -> None:
    answers, barrier = [], threading.Barrier(4)

    def ask() -> None:
        barrier.wait(5)
        answers.append(ec2_numbers.numbers(cloud.deps, INSTANCE, ["u1", "u2", "u3"]))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 4 and all(one == answers[0] for one in answers) and len(answers[0]) == 3


def test_guest_when_it_asks_who_it_is_then_it_hears_the_ids_that_the_api_has(cloud: SmallCloud) -> None:
    cloud.image_service.add("i1")
    uuid, = cloud.active(image_id="i1")
    row = cloud.server(uuid)
    numbers = cloud.control.assign_ec2_numbers(INSTANCE, (uuid,))
    facts = cloud.hosts.guest_facts("a", GuestQuery(server_uuid=uuid, project_id=row.project_id))
    assert facts.ec2_numbers[uuid] == numbers[uuid]
    assert facts.ec2_numbers[row.image_id] == cloud.control.assign_ec2_numbers(IMAGE, (row.image_id,))[row.image_id]
