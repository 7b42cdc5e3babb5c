"""The state table against the contract: status words, and every action in every state."""

from __future__ import annotations

import pytest

from nova.model.server import states
from nova.model.server.states import ACTIONS, API_NAMES, PowerState, TaskState, VmState
from tests.contract.rows import load, needs_contract

pytestmark = needs_contract
CONTRACT = load("states.yaml") or {}

#: our action -> the operation's name in the contract
OPERATIONS = {
    "delete": "DELETE /servers/{server_id}",
    "start": "POST /servers/{server_id}/action#os-start",
    "stop": "POST /servers/{server_id}/action#os-stop",
    "soft_reboot": "POST /servers/{server_id}/action#reboot (SOFT)",
    "hard_reboot": "POST /servers/{server_id}/action#reboot (HARD)",
    "reset_state": "POST /servers/{server_id}/action#os-resetState",
    "live_migration_force_complete":
        "POST /servers/{server_id}/migrations/{migration_id}/action#force_complete",
    "live_migration_cancel": "DELETE /servers/{server_id}/migrations/{migration_id}",
    "soft_delete": "DELETE /servers/{server_id} (with reclaim interval)",
    "attach_interface": "POST /servers/{server_id}/os-interface",
    "detach_interface": "DELETE /servers/{server_id}/os-interface/{port_id}",
    "attach_volume": "POST /servers/{server_id}/os-volume_attachments",
    "detach_volume": "DELETE /servers/{server_id}/os-volume_attachments/{volume_id}",
    "swap_volume": "PUT /servers/{server_id}/os-volume_attachments/{volume_id} (swap)",
    "live-migration": "POST /servers/{server_id}/action#os-migrateLive",
    **{name: f"POST /servers/{{server_id}}/action#{name}" for name in (
        "pause", "unpause", "suspend", "resume", "rescue", "unrescue", "changePassword", "trigger_crash_dump",
        "createImage", "createBackup", "rebuild", "evacuate", "restore", "shelve", "shelveOffload", "unshelve",
        "resize", "migrate", "confirmResize", "revertResize")},
}
#: The contract says nothing of when a server may be created: it is not there before. Volumes grow by themselves,
#: and Cinder has snapshots of them made. EC2 alone stops a server for its image.
WITHOUT_OPERATION = {"create", "extend_volume", "stop_deleted", "snapshot_volume", "merge_volume_snapshot",
                     "create_image_stopped"}
#: What the reference does without showing it: its users see why their server is busy for a moment.
SHOWN_BY_US_ALONE = {"snapshot_volume", "merge_volume_snapshot"}

VM_STATES = [state for state in VmState if state is not VmState.UNKNOWN]
TASK_STATES = [None, *(state for state in TaskState if state is not TaskState.UNKNOWN)]


def operation(name):
    (row,) = (row for row in CONTRACT["allowed"]["operations"] if row["operation"] == OPERATIONS[name])
    return row


def value(state):
    return None if state is None else state.value


@pytest.mark.parametrize(("ours", "theirs"), [(VmState, "vm_states"), (TaskState, "task_states")])
def test_states_are_those_of_the_contract(ours, theirs):
    assert {state.value for state in ours} - {"unknown"} == set(CONTRACT[theirs])


def test_power_states_are_those_of_the_contract():
    assert {(state.value, state.name) for state in PowerState} == {
        (row["value"], row["name"]) for row in CONTRACT["power_states"]}


def status_of(vm_state, task_state):
    """As the contract's rule says, from its table alone."""
    table = {(row["vm_state"], row["task_state"]): row["status"] for row in CONTRACT["server_status"]["table"]}
    return table.get((vm_state.value, value(task_state))) or table.get((vm_state.value, "default"), "UNKNOWN")


@pytest.mark.parametrize("vm_state", list(VmState), ids=str)
def test_status_in_every_state_is_the_contracts(vm_state):
    found = {task_state: states.status(vm_state, task_state) for task_state in [*TASK_STATES, TaskState.UNKNOWN]}
    assert found == {task_state: status_of(vm_state, task_state) for task_state in found}


def statuses():
    return sorted({row["status"] for row in CONTRACT.get("server_status", {}).get("table", ())})


@pytest.mark.parametrize("status", statuses())
def test_states_of_a_status_are_those_that_show_it(status):
    vm_states, task_states = states.states_of(status.lower())
    rows = [row for row in CONTRACT["server_status"]["table"] if row["status"] == status]
    assert {state.value for state in vm_states} == {row["vm_state"] for row in rows}
    if any(row["task_state"] == "default" for row in rows):
        assert task_states is None
    else:
        assert {state.value for state in task_states} == {row["task_state"] for row in rows}


def test_states_of_an_unknown_status_are_none():
    assert states.states_of("BUILT")[0] == frozenset()


def test_statuses_with_progress_and_fault_are_the_contracts():
    assert set(CONTRACT["server_status"]["shown_with_progress"]) == states.SHOWN_WITH_PROGRESS
    assert set(CONTRACT["server_status"]["shown_with_fault"]) == states.SHOWN_WITH_FAULT


# actions

def test_every_action_has_an_operation_of_the_contract():
    assert set(ACTIONS) == set(OPERATIONS) | WITHOUT_OPERATION


def allows(listed, state):
    return listed == "any" or value(state) in listed


@pytest.mark.parametrize("vm_state", VM_STATES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_action_in_every_state_is_allowed_as_the_contract_says(name, vm_state):
    row = operation(name)
    for task_state in TASK_STATES:
        refusal = states.refusal(ACTIONS[name], vm_state, task_state)
        if not allows(row["vm_state"], vm_state):
            assert refusal == ("vm_state", vm_state.value), task_state
        elif not allows(row["task_state"], task_state):
            assert refusal == ("task_state", value(task_state) or "None"), task_state
        else:
            assert refusal is None, task_state


@pytest.mark.parametrize("vm_state", VM_STATES, ids=str)
def test_create_only_while_building(vm_state):
    refusals = {states.refusal(ACTIONS["create"], vm_state, task_state, launched=False) for task_state in TASK_STATES}
    assert refusals == {None if vm_state is VmState.BUILDING else ("vm_state", vm_state.value)}


@pytest.mark.parametrize("name", OPERATIONS)
def test_action_needs_and_leaves_what_the_contract_says(name):
    row, action = operation(name), ACTIONS[name]
    assert value(action.task) == row.get("sets_task_state")
    assert action.refused_when_locked is row["refused_when_locked"]
    assert action.must_have_launched is row.get("must_have_launched", False)
    assert action.needs_host or "must be on a host" not in row.get("host", "")
    assert API_NAMES.get(name, name) == row["records_action"]


@pytest.mark.parametrize("name", [name for name, action in ACTIONS.items() if action.must_have_launched])
def test_action_when_the_server_never_ran_then_refused(name):
    action = ACTIONS[name]
    vm_state = min(action.vm_states or VM_STATES, key=str)
    task_state = min(action.task_states or {None}, key=str)
    assert states.refusal(action, vm_state, task_state, launched=False) == ("launched_at", "None")
    assert states.refusal(action, vm_state, task_state, launched=True) is None


@pytest.mark.parametrize("name", sorted({*ACTIONS} - SHOWN_BY_US_ALONE))
def test_action_is_shown_by_a_name_and_event_of_the_contract(name):
    assert API_NAMES.get(name, name) in CONTRACT["instance_actions"]["names"]
    known = {event for group in CONTRACT["events"]["names"].values() for event in group}
    assert ACTIONS[name].event in known or name == "reset_state"  # which is over at once, without an event


@pytest.mark.parametrize("name", ACTIONS)
def test_action_ends_in_states_that_are_shown(name):
    action = ACTIONS[name]
    for state in filter(None, (action.result, action.failed)):
        assert states.status(state, None) != "UNKNOWN"


@pytest.mark.parametrize(("name", "result", "failed"), [
    ("create", VmState.ACTIVE, VmState.ERROR), ("delete", VmState.DELETED, VmState.ERROR),
    ("start", VmState.ACTIVE, None), ("stop", VmState.STOPPED, None), ("soft_reboot", VmState.ACTIVE, None),
    ("hard_reboot", VmState.ACTIVE, VmState.ERROR)])
def test_action_leads_to(name, result, failed):
    assert (ACTIONS[name].result, ACTIONS[name].failed) == (result, failed)
