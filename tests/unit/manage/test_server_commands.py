"""``nova-manage server show``: which actions are possible on a server, and why the others are not."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.manage import main
from nova.manage.server_commands import FROM_ITS_HOST, INNER, story
from nova.model.server.servers import ServerDetail
from nova.model.server.states import ACTIONS, TaskState, VmState, refusal
from nova.rpc import transport
from tests.fakes.conductor import FakeConductor

GPU = '{"name": "gpu", "vendor_id": "10de"}'
MIGRATABLE = '{"name": "gpu", "vendor_id": "10de", "live_migratable": "yes"}'


@pytest.fixture
def conductor() -> FakeConductor:
    return FakeConductor()


@pytest.fixture
def manage(conductor: FakeConductor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """``monkeypatch``: the bus is made of options, and there is no broker."""
    class Bus:
        def __init__(self, *args: object) -> None: ...

        def client(self, contract: type) -> object:
            return conductor.client()
    monkeypatch.setattr(transport, "Bus", Bus)

    def run(*words: str, alias: str = GPU) -> tuple[int, str]:
        given = main.parser().parse_args(["server", "show", *words])
        options = SimpleNamespace(host="ctl", pci=SimpleNamespace(alias=[alias]))
        return given.command.run(options, given), capsys.readouterr().out
    return run


def served(conductor: FakeConductor, **fields: Any) -> ServerDetail:
    return conductor.add_server(**{"host_status": "UP", **fields})


def told(server: ServerDetail) -> dict[str, str]:
    return {one.action: one.why_not for one in story(server, {}).actions}


@pytest.mark.parametrize("vm_state", list(VmState))
def test_story_when_a_server_is_in_a_state_then_each_action_is_possible_or_the_state_is_named(
        conductor: FakeConductor, vm_state: VmState) -> None:
    for task in (None, TaskState.REBOOTING, TaskState.MIGRATING):
        found = told(served(conductor, vm_state=vm_state, task_state=task))
        assert set(found) == set(ACTIONS) - INNER
        for name, why_not in found.items():
            expected = refusal(ACTIONS[name], vm_state, task)
            words = f"its {expected.attribute} is {expected.value}" if expected else ""
            assert (words in why_not) if words else not why_not or name == "evacuate", name


@pytest.mark.parametrize("status", ["DOWN", "UNKNOWN"])
def test_story_when_the_host_is_down_then_what_needs_it_is_not_possible_and_evacuate_is(
        conductor: FakeConductor, status: str) -> None:
    found = told(served(conductor, host_status=status))
    assert found["evacuate"] == "" and found["delete"] == ""
    assert all("nova-compute on host1 is down" in found[name] for name in FROM_ITS_HOST - INNER)
    found = told(served(conductor, host_status="MAINTENANCE"))
    assert "host1 is up" in found["evacuate"] and found["suspend"] == ""


def test_story_when_it_is_locked_or_on_no_host_then_that_is_the_reason(conductor: FakeConductor) -> None:
    found = told(served(conductor, locked=True, locked_by="owner"))
    assert "locked by owner" in found["stop"] and found["createImage"] == ""
    offloaded = served(conductor, vm_state=VmState.SHELVED_OFFLOADED, host=None, host_status="")
    assert told(offloaded)["unshelve"] == "" == told(offloaded)["delete"]
    assert "it is on no host" in told(served(conductor, host=None, host_status=""))["stop"]


def test_show_when_a_server_has_devices_then_a_row_says_what_they_forbid(conductor: FakeConductor, manage: Any) -> None:
    server = served(conductor)
    flavor = {"extra_specs": {"pci_passthrough:alias": "gpu:1"}}
    conductor.servers[server.uuid] = server = type(server)(**{
        **{name: getattr(server, name) for name in server.__struct_fields__},
        "flavor": type(server.flavor)(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1, **flavor)})
    code, text = manage(server.uuid)
    rows = {line.split()[0]: line for line in text.splitlines()[2:]}
    assert code == 0 and text.startswith(f"{server.uuid}  vm  active  on host1 (UP)\n")
    assert rows["live-migration"].split()[1] == "no" == rows["suspend"].split()[1]
    assert "it has PCI devices of its host" in rows["live-migration"] and rows["migrate"].split()[1] == "yes"
    rows = {line.split()[0]: line for line in manage(server.uuid, alias=MIGRATABLE)[1].splitlines()[2:]}
    assert rows["suspend"].split()[1] == "yes" and rows["live-migration"].split()[1] == "no"


def test_show_as_json_then_each_action_has_its_reason(conductor: FakeConductor, manage: Any) -> None:
    server = served(conductor, vm_state=VmState.STOPPED, locked=True, locked_by="admin")
    code, text = manage(server.uuid, "--json")
    found = json.loads(text)
    assert code == 0 and (found["uuid"], found["vm_state"], found["locked"]) == (server.uuid, "stopped", True)
    why_not = {one["action"]: one["why_not"] for one in found["actions"]}
    assert why_not["suspend"].startswith("its vm_state is stopped; it is locked by admin")


def test_show_when_there_is_no_such_server_then_it_is_not_found(manage: Any) -> None:
    with pytest.raises(errors.NotFound):
        manage("00000000-0000-4000-8000-00000000dead")
