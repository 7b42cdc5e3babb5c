"""What we answer to the actions of a server's life passes the contract's rows at every version, and its samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from nova.api import versions
from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.model.server import states
from nova.model.server.states import TaskState, VmState
from tests.contract import answers, making, rows
from tests.contract.test_api_servers import IMAGE, UUID, full
from tests.contract.test_states import OPERATIONS
from tests.fakes.api import ADMIN, DEMO, ApiClient, configuration
from tests.fakes.conductor import FakeConductor
from tests.fakes.conductor_servers import LIFE as CALLS

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

if not rows.SHARED.is_dir():
    pytest.skip("the contract's files are not beside the checkout", allow_module_level=True)

ACTION = "POST /servers/{server_id}/action#"
replace = msgspec.structs.replace

#: action -> the state it begins in; those that are not here begin in ACTIVE.
BEGINS: Mapping[str, VmState] = {
    "unpause": VmState.PAUSED, "resume": VmState.SUSPENDED, "unrescue": VmState.RESCUED,
    "restore": VmState.SOFT_DELETED, "shelveOffload": VmState.SHELVED, "unshelve": VmState.SHELVED_OFFLOADED,
    "confirmResize": VmState.RESIZED, "revertResize": VmState.RESIZED}
LIFE = sorted(name for name in (
    "pause", "unpause", "suspend", "resume", "rescue", "unrescue", "rebuild", "createImage", "createBackup",
    "changePassword", "trigger_crash_dump", "restore", "forceDelete", "shelve", "shelveOffload", "unshelve", "resize",
    "confirmResize", "revertResize", "migrate", "os-migrateLive", "evacuate", "injectNetworkInfo"))
AT_THEIR_OLD_PLACE = ("confirmResize", "revertResize", "resize", "rebuild", "createImage", "trigger_crash_dump")


def fresh(name: str, **fields: Any) -> FakeConductor:
    """A conductor with a server in which an action may begin."""
    conductor = FakeConductor()
    full(conductor, **{"vm_state": BEGINS.get(name, VmState.ACTIVE), "locked": False, "locked_by": None, "volumes": (),
                       **fields})
    return conductor


def body_of(name: str, version: int) -> dict[str, Any]:
    tree = rows.tree_of(rows.shapes(f"{ACTION}{name}").get("body", []), version)
    made = making.smallest_body(tree, name)
    return made if name in made else {name: None}


@pytest.mark.parametrize("token", [ADMIN, DEMO])
@pytest.mark.parametrize("name", LIFE)
def test_answer_at_every_version_passes_the_contract(name: str, token: str) -> None:
    id = f"{ACTION}{name}"
    for version in answers.span(id):
        client = ApiClient(fresh(name), token=token, version=f"2.{version}")
        answer = client.post(f"/servers/{UUID}/action", body_of(name, version))
        if answer.status_int == 403 and token == DEMO and not is_for_members(id):
            continue
        answers.assert_answer(id, version, answer)


def is_for_members(id: str) -> bool:
    return rows.operations()[id]["policies"][-1]["default"] == "rule:project_member_or_admin"


@pytest.mark.parametrize("name", [name for name in LIFE if name != "trigger_crash_dump"])
def test_answer_under_v2_passes_the_contract(name: str) -> None:
    client = ApiClient(fresh(name), token=ADMIN)
    client.prefix = "/v2"
    answer = client.post(f"/servers/{UUID}/action", {name: {**(body_of(name, 1)[name] or {}), "stranger": 1}}
                         if isinstance(body_of(name, 1)[name], dict) else body_of(name, 1))
    answers.assert_answer(f"{ACTION}{name}", 1, answer)


@pytest.mark.parametrize("name", AT_THEIR_OLD_PLACE)
def test_answer_under_os_volumes_boot_is_that_of_servers(name: str) -> None:
    id = f"POST /os-volumes_boot/{{server_id}}/action#{name}"
    assert answers.span(id)[-1] == 102
    for version in answers.span(id):
        client = ApiClient(fresh(name), token=ADMIN, version=f"2.{version}")
        answers.assert_answer(id, version, client.post(f"/os-volumes_boot/{UUID}/action", body_of(name, version)))
    client = ApiClient(fresh(name), token=ADMIN, version="2.103")
    assert client.post(f"/os-volumes_boot/{UUID}/action", body_of(name, 103)).status_int == 404


# -- samples


def request_of(sample: str) -> Any:
    """The request that goes with a published answer: its neighbour, or the nearest older one of its folder."""
    stem, version = sample.rsplit("/", 1)[-1].removesuffix("-resp.json"), rows.sample_version(sample)
    folder = rows.SHARED / "samples" / sample.partition("/")[0]
    found = {rows.sample_version(str(path)): path for path in folder.rglob(f"{stem}.json")}
    if not found:
        return None
    request = msgspec.json.decode(found[max(number for number in found if number <= version)].read_bytes())
    request.get("rebuild", {}).pop("trusted_image_certificates", None)  # refused: nobody verifies signatures
    return request


def rebuild_samples() -> list[Any]:
    found = sorted((rows.SHARED / "samples").rglob("*rebuild*-resp.json"))
    return [pytest.param(str(path.relative_to(rows.SHARED / "samples")), id=path.parent.name + "/" + path.name)
            for path in found]


#: What of a sample depends on the caller, where the sample is a member's; the image's properties on the image.
OF_ADMINS = (".server.OS-EXT-SRV-ATTR", ".server.host_status")


@pytest.mark.parametrize("sample", rebuild_samples())
def test_rebuild_answers_with_every_field_of_the_published_sample(sample: str) -> None:
    version = rows.sample_version(sample)
    published = msgspec.json.decode((rows.SHARED / "samples" / sample).read_bytes())
    client = ApiClient(fresh("rebuild"), token=ADMIN, version=f"2.{version}")
    answer = client.post(f"/servers/{UUID}/action", request_of(sample))
    assert answer.status_int == 202, answer.text
    shown = {path for path in answers.fields(answer.json) if ".links[]" not in path and ".addresses" not in path
             and ".properties." not in path}
    wanted = {path for path in answers.fields(published) if ".links[]" not in path and ".addresses" not in path
              and ".properties." not in path}
    assert wanted - shown == set()
    assert {path for path in shown - wanted if not path.startswith((*OF_ADMINS, ".server.tags"))} == set()
    assert answer.json["server"]["adminPass"] == published["server"]["adminPass"]
    assert answer.json["server"]["status"] == "REBUILD"


@pytest.mark.parametrize(("id", "version", "content"), answers.response_samples(
    [f"{ACTION}{name}" for name in ("rescue", "evacuate", "createImage", "createBackup")]))
def test_answer_has_every_field_of_the_published_sample(id: str, version: int, content: Any) -> None:
    name = id.partition("#")[2]
    answer = ApiClient(fresh(name), token=ADMIN, version=f"2.{version}").post(f"/servers/{UUID}/action",
                                                                             body_of(name, version))
    assert answers.fields(answer.json) == answers.fields(content)


# -- states, locks


def in_table() -> list[str]:
    """The actions of a server's life with a row in the table of states: (operation, row)."""
    return [name for name in OPERATIONS if OPERATIONS[name].startswith(ACTION) and name not in (
        "start", "stop", "soft_reboot", "hard_reboot", "reset_state")]


@pytest.mark.parametrize("name", in_table())
def test_action_in_every_state_is_answered_as_the_contract_says(name: str) -> None:
    """409 with operation, attribute and value, wherever the contract does not allow it; nothing is ordered then."""
    action = OPERATIONS[name].removeprefix(ACTION)
    row, = (row for row in rows.load("states.yaml")["allowed"]["operations"] if row["operation"] == OPERATIONS[name])
    for vm_state in VmState:
        if vm_state in (VmState.DELETED, VmState.UNKNOWN):
            continue
        for task_state in (None, TaskState.MIGRATING, TaskState.REBUILDING, TaskState.DELETING):
            conductor = fresh(action, vm_state=vm_state, task_state=task_state)
            answer = ApiClient(conductor, token=ADMIN, version="2.104").post(f"/servers/{UUID}/action",
                                                                            body_of(action, 104))
            wrong = "vm_state" if row["vm_state"] != "any" and vm_state.value not in row["vm_state"] else (
                "task_state" if row["task_state"] != "any" and (task_state and task_state.value) not in
                row["task_state"] else None)
            if name == "unshelve" and not wrong and vm_state is VmState.SHELVED:
                wrong = "vm_state"  # the smallest body names a place
            if wrong is None:
                assert answer.status_int < 300, f"{vm_state} {task_state}: {answer.text}"
                continue
            assert answer.status_int == 409, f"{vm_state} {task_state}: {answer.status_int}"
            value = (vm_state if wrong == "vm_state" else task_state)
            shown = states.API_NAMES.get(name, name)
            assert answer.json["conflictingRequest"]["message"] == (
                f"Cannot '{shown}' instance {UUID} while it is in {wrong} {value.value if value else 'None'}")


@pytest.mark.parametrize("name", LIFE)
def test_locked_server_is_409_to_its_owner_where_the_contract_says(name: str) -> None:
    row = next(row for row in rows.load("states.yaml")["allowed"]["operations"]
               if row["operation"] == f"{ACTION}{name}")
    for by in ("owner", "admin"):
        conductor = fresh(name, locked=True, locked_by=by, project_id="demo")
        mine = ApiClient(conductor, token=DEMO, version="2.104").post(f"/servers/{UUID}/action", body_of(name, 104))
        if mine.status_int != 403:
            assert (mine.status_int == 409) is row["refused_when_locked"], mine.text
            if mine.status_int == 409:
                assert mine.json["conflictingRequest"]["message"] == f"Instance {UUID} is locked"
        theirs = ApiClient(fresh(name, locked=True, locked_by=by), token=ADMIN, version="2.104")
        assert theirs.post(f"/servers/{UUID}/action", body_of(name, 104)).status_int < 300


@pytest.mark.parametrize("name", LIFE)
def test_server_that_never_ran_is_409_where_the_contract_says(name: str) -> None:
    row = next(row for row in rows.load("states.yaml")["allowed"]["operations"]
               if row["operation"] == f"{ACTION}{name}")
    client = ApiClient(fresh(name, launched_at=None), token=ADMIN, version="2.104")
    answer = client.post(f"/servers/{UUID}/action", body_of(name, 104))
    assert (answer.status_int == 409) is row.get("must_have_launched", False), answer.text


@pytest.mark.parametrize("name", LIFE)
def test_deleted_server_is_404(name: str) -> None:
    client = ApiClient(fresh(name, deleted=True), token=ADMIN, version="2.104")
    assert client.post(f"/servers/{UUID}/action", body_of(name, 104)).status_int == 404


# -- passwords


@pytest.mark.parametrize(("name", "version"), [("rebuild", 1), ("rebuild", 104), ("rescue", 1), ("rescue", 104),
                                               ("evacuate", 1), ("evacuate", 13), ("evacuate", 14)])
def test_answer_where_passwords_are_not_shown_passes_the_contract(name: str, version: int) -> None:
    conductor = fresh(name)
    client = ApiClient(conductor, configuration(enable_instance_password=False), token=ADMIN, version=f"2.{version}")
    body = body_of(name, version)
    if name == "evacuate" and version < 14:
        body["evacuate"]["onSharedStorage"] = False  # a disk that is kept has a password
    answer = client.post(f"/servers/{UUID}/action", body)
    answers.assert_answer(f"{ACTION}{name}", version, answer)
    assert "adminPass" not in answer.text
    assert conductor.asked(*CALLS)[0].admin_password, "the guest gets one all the same"


def test_bodies_with_a_wrong_image_are_400() -> None:
    for name in ("rebuild", "rescue"):
        field = {"rebuild": "imageRef", "rescue": "rescue_image_ref"}[name]
        for wrong in ("", "x", f"http://glance/images/{IMAGE}", 5, None):
            client = ApiClient(fresh(name), token=ADMIN, version="2.104")
            assert client.post(f"/servers/{UUID}/action", {name: {field: wrong}}).status_int == 400


def test_every_action_of_the_contract_is_served_or_waits_for_another_issue() -> None:
    """So that the list above is whole."""
    served = {route.action for route in ROUTES if is_action(route)}
    others = {"os-start", "os-stop", "reboot", "os-getConsoleOutput", "lock", "unlock", "os-resetState"}
    consoles = {"os-getVNCConsole", "os-getSPICEConsole", "os-getRDPConsole", "os-getSerialConsole"}
    networks = {"addFixedIp", "removeFixedIp", "addFloatingIp", "removeFloatingIp"}
    groups = {"addSecurityGroup", "removeSecurityGroup"}
    assert served - others - consoles - networks - groups == set(LIFE)
    assert all(versions.within(104, route.since, route.until) is (route.action not in consoles | networks)
               for route in ROUTES if is_action(route))


def is_action(route: Route) -> bool:
    return route.path == "/servers/{server_id}/action"
