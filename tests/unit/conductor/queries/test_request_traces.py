"""Why there was no valid host, after the fact: what the journal keeps, and what nova-manage request show prints."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.manage import output, request_commands
from nova.model.quota.quotas import QuotaClass
from nova.model.scheduling.decisions import NoHost, PlacementRequest, Refusal, Selection
from tests.fakes.compute_hosts import refused
from tests.fakes.small_cloud import SmallCloud

REFUSALS = (Refusal(filter="ComputeFilter", hosts=2, reasons={"disabled": 2}),
            Refusal(filter="capacity", hosts=5, reasons={"not enough memory": 5}, nearest="needs 64 MB memory, 2 free"))
DETAILS = "No valid host was found. 7 hosts: capacity refused 5 (nearest: needs 64 MB memory, 2 free on cn4)."
PUBLIC = "No valid host was found. There are not enough hosts available: not enough memory (64 MB requested)."


class Hopeless:
    """A scheduler that finds no host."""

    def select_hosts(self, request: PlacementRequest) -> tuple[Selection, ...]:
        return tuple(Selection(server_uuid=uuid, reason=PUBLIC, details=DETAILS, asked=7, refusals=REFUSALS)
                     for uuid in request.server_uuids)

    def update_hosts(self, states: Any) -> None:
        pass


def shown(cloud: SmallCloud, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert request_commands.show(cloud.control, name, output.say, output.table) == 0
    return capsys.readouterr().out


def test_create_when_no_host_is_valid_then_the_journal_keeps_why_and_users_learn_what_was_unmet_only(
        cloud: SmallCloud) -> None:
    cloud.deps.scheduler = Hopeless()
    [uuid] = cloud.boot(scheduler_hints={"x": "y"}, availability_zone="nova")
    fault = cloud.ended(uuid).fault
    assert (fault.code, fault.message, fault.details) == (500, PUBLIC, DETAILS)
    [story] = cloud.control.get_request(uuid)
    assert story.placement.no_host == NoHost(asked=7, refusals=REFUSALS, details=DETAILS)
    assert story.placement.requirements["flavor"].startswith("tiny: 1 vcpus, 64 MB memory")
    assert (story.placement.requirements["hints"], story.placement.requirements["zone"]) == ("x=y", "nova")


def test_show_when_no_host_was_valid_then_it_prints_filters_counts_and_the_nearest_miss(
        cloud: SmallCloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.deps.scheduler = Hopeless()
    [uuid] = cloud.boot()
    cloud.ended(uuid)
    text = shown(cloud, "req-demo", capsys)
    assert text == shown(cloud, uuid, capsys)
    for words in ("no valid host among 7", "capacity", "not enough memory 5", "needs 64 MB memory, 2 free",
                  "disabled 2",
                  "SelectHosts", f"server {uuid}"):
        assert words in text, text


def test_show_when_a_host_refused_its_claim_then_each_attempt_and_the_hosts_are_told(
        cloud: SmallCloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.computes["a"].answers["build"] = refused(errors.HostRefused("the disk is full"))
    [uuid] = cloud.boot()
    assert cloud.ended(uuid).host == "b"
    text = shown(cloud, uuid, capsys)
    assert "hosts tried, in order: a, b" in text and "the disk is full" in text and "no valid host" not in text


def test_show_when_nothing_is_known_then_it_says_so_and_exits_with_1(cloud: SmallCloud,
                                                                     capsys: pytest.CaptureFixture[str]) -> None:
    assert request_commands.show(cloud.control, "req-none", output.say, output.table) == 1
    assert "req-none" in capsys.readouterr().out
    cloud.control.update_quota_class(QuotaClass(class_name="default", limits={"instances": 0}))
    with pytest.raises(errors.OverQuota):
        cloud.boot()
    assert cloud.control.get_request("req-demo") == ()


def test_show_when_the_server_was_purged_or_its_journal_is_older_then_what_is_left_is_told(
        cloud: SmallCloud, capsys: pytest.CaptureFixture[str]) -> None:
    [uuid] = cloud.active()
    cloud.delete(uuid)
    assert {one.action for one in cloud.control.get_request(uuid)} == {"create", "delete"}
    assert "delete" in shown(cloud, uuid, capsys)
