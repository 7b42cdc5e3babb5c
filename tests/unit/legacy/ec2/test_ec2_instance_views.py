"""Instances as clients of both ages see them, and what of one can be changed."""

from __future__ import annotations

from typing import Any

import pytest

from nova.legacy.ec2.views.instances import STATES, TASKS
from nova.model.network.networks import FixedAddress, Interface
from nova.model.network.security_groups import SecurityGroupQuery
from nova.model.server.states import TaskState, VmState
from tests.fakes.conductor import LAUNCHED
from tests.fakes.ec2 import OLD, TODAY, Ec2Client

ONE = "reservationSet/item/instancesSet/item"


def shown(version: str, **fields: Any) -> Any:
    client = Ec2Client()
    client.conductor.add_server(**fields)
    return client.ask("DescribeInstances", version=version).tree.find(ONE)


def test_states_when_there_are_any_then_each_has_a_name_of_amazons() -> None:
    assert set(STATES) == set(VmState) - {VmState.UNKNOWN}  # of a cell that is silent
    six = {"pending", "running", "shutting-down", "terminated", "stopping", "stopped"}
    assert {rows[0].name for rows in STATES.values()} | {one.name for one in TASKS.values()} <= six


@pytest.mark.parametrize(("fields", "today", "old"), [
    ({"vm_state": VmState.BUILDING, "launched_at": None}, ("0", "pending"), ("0", "pending")),
    ({"vm_state": VmState.ACTIVE}, ("16", "running"), ("16", "running")),
    ({"vm_state": VmState.PAUSED}, ("80", "stopped"), ("80", "pause")),
    ({"vm_state": VmState.SUSPENDED}, ("80", "stopped"), ("80", "suspend")),
    ({"vm_state": VmState.RESCUED}, ("16", "running"), ("16", "rescue")),
    ({"vm_state": VmState.RESIZED}, ("16", "running"), ("16", "resize")),
    ({"vm_state": VmState.ERROR}, ("80", "stopped"), ("0", "error")),
    ({"vm_state": VmState.ERROR, "launched_at": None}, ("48", "terminated"), ("0", "error")),
    ({"vm_state": VmState.SHELVED_OFFLOADED}, ("80", "stopped"), ("80", "stopped")),
    ({"task_state": TaskState.POWERING_OFF}, ("64", "stopping"), ("16", "running")),
    ({"vm_state": VmState.STOPPED, "task_state": TaskState.POWERING_ON}, ("0", "pending"), ("80", "stopped")),
    ({"task_state": TaskState.DELETING}, ("32", "shutting-down"), ("16", "running"))])
def test_state_when_a_server_is_in_it_then_each_age_has_its_word(fields: dict[str, Any], today: tuple[str, str],
                                                                 old: tuple[str, str]) -> None:
    for version, wanted in ((TODAY, today), (OLD, old)):
        one = shown(version, **fields)
        assert (one.findtext("instanceState/code"), one.findtext("instanceState/name")) == wanted, version


def test_addresses_when_a_server_has_several_then_the_first_of_a_kind_is_shown() -> None:
    card = Interface(id="c", mac="fa:16:3e:00:00:01", label="private", network_id="n", addresses=(
        FixedAddress(address="2001:db8::5", version=6), FixedAddress(address="10.0.0.5"),
        FixedAddress(address="10.0.0.6")))
    one = shown(TODAY, interfaces=(card,))
    assert one.findtext("privateIpAddress") == "10.0.0.5" and one.find("ipAddress") is None
    client = Ec2Client()
    client.conductor.add_server(interfaces=(card,))
    assert client.ask("DescribeInstancesV6").text(f"{ONE}/dnsNameV6") == "2001:db8::5"


@pytest.mark.parametrize(("show_ip", "wanted"), [(False, "vm-host"), (True, "10.0.0.5")])
def test_private_name_when_the_operator_says_so_then_it_is_the_address(show_ip: bool, wanted: str) -> None:
    client = Ec2Client(private_dns_show_ip=show_ip)
    card = Interface(id="c", mac="fa:16:3e:00:00:01", label="private", network_id="n",
                     addresses=(FixedAddress(address="10.0.0.5"),))
    client.conductor.add_server(hostname="vm-host", interfaces=(card,))
    assert client.ask("DescribeInstances").text(f"{ONE}/privateDnsName") == wanted


def test_unset_values_when_the_client_is_of_today_then_no_element_is_empty_but_lists() -> None:
    one = shown(TODAY, launched_at=LAUNCHED, availability_zone="nova")
    empty = {each.tag for each in one.iter() if len(each) == 0 and not (each.text or "").strip()}
    assert empty <= {"tagSet", "productCodes", "blockDeviceMapping", "groupSet", "reason", "privateDnsName"}


def test_instances_when_they_are_of_two_requests_then_they_are_two_reservations() -> None:
    client = Ec2Client()
    for reservation in ("r-a", "r-b", "r-a"):
        client.conductor.add_server(reservation_id=reservation)
    found = client.ask("DescribeInstances").tree.findall("reservationSet/item")
    assert [(one.findtext("reservationId"), len(one.find("instancesSet"))) for one in found] == [("r-a", 2), ("r-b", 1)]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_pages_when_instances_are_filtered_then_none_is_empty_and_each_comes_once(size: int) -> None:
    client = Ec2Client()
    for number in range(9):
        client.conductor.add_server(name=f"vm{number}", metadata={"odd": str(number % 2)})
    asked = {"MaxResults": size, "Filter.1.Name": "tag:odd", "Filter.1.Value.1": "0"}
    found: list[str] = []
    while True:
        page = client.ask("DescribeInstances", asked)
        ids = page.texts(f"{ONE}/instanceId")
        assert 0 < len(ids) <= size
        found += ids
        token = page.text("nextToken")
        if token is None:
            break
        asked["NextToken"] = token
    assert len(found) == len(set(found)) == 5


@pytest.mark.parametrize("attribute", ["InstanceType.Value", "DisableApiTermination.Value", "UserData.Value",
                                       "SourceDestCheck.Value", "Attribute"])
def test_attribute_when_it_cannot_be_changed_then_it_is_said_how(attribute: str) -> None:
    client = Ec2Client()
    id = client.conductor.number("i", client.conductor.add_server().uuid)
    answer = client.ask("ModifyInstanceAttribute", {"InstanceId": id, attribute: "true"})
    assert answer.refusal == (400, "UnsupportedOperation") and "resize" in answer.message
    assert client.ask("ModifyInstanceAttribute", {"InstanceId": id, "Colour.Value": "red"}).code == "UnknownParameter"


def test_groups_when_they_are_changed_then_those_alone_are() -> None:
    client = Ec2Client()
    server = client.conductor.add_server(security_groups=("default", "old"))
    for name in ("old", "new"):
        client.ask("CreateSecurityGroup", {"GroupName": name, "GroupDescription": "d"})
    known = {one.name: one.id for one in client.conductor.list_security_groups(SecurityGroupQuery())}
    ids = dict(zip(*[client.ask("DescribeSecurityGroups").texts(f"securityGroupInfo/item/{name}")
                     for name in ("groupName", "groupId")], strict=True))
    params = {"InstanceId": client.conductor.number("i", server.uuid), "GroupId.1": ids["default"],
              "GroupId.2": ids["new"]}
    assert client.ask("ModifyInstanceAttribute", params).text("return") == "true"
    assert set(client.conductor.servers[server.uuid].security_groups) == {"default", "new"}
    assert [one.group for one in client.conductor.asked("change_group_membership")] == [known["new"], known["old"]]
