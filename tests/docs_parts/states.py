"""The page of states and actions, from ``nova.model.server.states``."""

from __future__ import annotations

from collections.abc import Iterable

from nova.model.server.action_restrictions import RESTRICTIONS
from nova.model.server.states import ACTIONS, API_NAMES, STATUS, Action, VmState
from tests.docs_parts import rst

INTRO = """\
A server has two states: ``vm_state``, its condition, and ``task_state``, the work on it (usually none). The API shows
both, and a status that is derived from them. The table of states and actions is ``nova/model/server/states.py``; this
page is generated from it. `Operating <../operating.rst>`_ explains each state for operators. `The life of a server
<../lifecycle.rst>`_ describes each action, and the result if it fails.
"""

DIAGRAM = """\
Transitions from a ``vm_state``, by an action, to the next one; and the state after a failed action.
"""

#: States after an action that depend on the workflow and are not in the table: action -> state.
ENDINGS = {
    "rebuild": "stopped, if it was off",
    "evacuate": "stopped, if it was off (from 2.95 on: always)",
    "restore": "shelved or resized, if it was that",
    "shelve": "shelved_offloaded, with shelved_offload_time 0",
    "confirmResize": "what it was before its resize",
    "revertResize": "what it was before its resize",
    "reset_state": "as the request says",
}

NOTES = """\
*While*: the ``task_state`` when the action begins. *Event*: the name of its main step in
``os-instance-actions``. An action in a state that its row does not list is refused: 409. A task that is not listed in
*From task_state* means that another operation works on the server: most actions do not wait for it, and are refused.
"""

RESTRICTED = """\
Some properties of a server forbid actions in every state: the API refuses them with 409 and the text of this table, and
does not begin them. The plan of a drain (``nova-manage host drain HOST --dry-run``) and ``nova-manage server show
UUID`` show the same texts. All other actions are admitted.
"""


def page() -> str:
    return "\n".join([
        rst.MARK, rst.heading("States of servers"), INTRO,
        rst.heading("Status", "-"), rst.table(("Status", "vm_state", "task_state"), _status_rows(), (20, 20, 60)),
        rst.heading("Actions", "-"), NOTES,
        rst.table(("Action", "From vm_state", "From task_state", "While", "Then", "After a failure", "Event", "Needs"),
                  map(_action_row, ACTIONS.values()), (10, 14, 20, 12, 10, 10, 14, 10)),
        rst.heading("What a server has, and the actions that it forbids", "-"), RESTRICTED,
        rst.table(("The server ...", "Refused actions"),
                  ((one.what, _words(one.refuses)) for one in RESTRICTIONS), (70, 30)),
        rst.heading("Diagram", "-"), DIAGRAM, "::\n", _diagram()])


def _words(values: Iterable[str]) -> str:
    return ", ".join(map(rst.literal, values))


def _status_rows() -> list[tuple[str, ...]]:
    rows = []
    for vm_state, row in STATUS.items():
        by_status: dict[str, list[str]] = {}
        for task_state, status in row.items():
            by_status.setdefault(status, []).append("any other" if task_state is None and len(row) > 1 else
                                                    "any" if task_state is None else rst.literal(task_state.value))
        rows += [(status, rst.literal(vm_state.value), ", ".join(tasks)) for status, tasks in by_status.items()]
    rows.append(("UNKNOWN", "any that is not above", "any"))
    return sorted(rows)


def _action_row(action: Action) -> tuple[str, ...]:
    name = rst.literal(action.name)
    if action.name in API_NAMES:
        name += f" (shown as {rst.literal(API_NAMES[action.name])})"
    vm_states = "any" if action.vm_states is None else _words(sorted(state.value for state in action.vm_states))
    tasks = "any" if action.task_states is None else \
        ", ".join(sorted("none" if task is None else rst.literal(task.value) for task in action.task_states))
    needs = [words for flag, words in ((action.must_have_launched, "has run once"), (action.needs_host, "is on a host"),
                                       (action.refused_when_locked, "not locked")) if flag]
    after = rst.literal(action.result.value) if action.result else "as before"
    if action.name in ENDINGS:
        after = f"{after}; {ENDINGS[action.name]}" if action.result else ENDINGS[action.name]
    return (name, vm_states, tasks, rst.literal(action.task.value) if action.task else "none", after,
            rst.literal(action.failed.value) if action.failed else "as before",
            rst.literal(action.event), ", ".join(needs) or "nothing")


def _diagram() -> str:
    """Return the diagram: one block for each state, with one line for each action that begins in it."""
    lines = []
    always = [action for action in ACTIONS.values() if action.vm_states is None]
    for state in VmState:
        actions = [action for action in ACTIONS.values() if action.vm_states and state in action.vm_states]
        lines += _block(state.value, actions)
    return "\n".join(f"    {line}".rstrip() for line in [*lines, *_block("any state", always)]) + "\n"


def _block(state: str, actions: list[Action]) -> list[str]:
    if not actions:
        return []
    names, after = (max(map(len, words)) for words in ([one.name for one in actions], map(_after, actions)))
    lines = [state]
    for action in actions:
        corner = "└" if action is actions[-1] else "├"
        failed = action.failed.value if action.failed else "(as before)"
        lines.append(f"  {corner}── {action.name:{names}} ──▶ {_after(action):{after}}  or, when it fails, {failed}")
    return [*lines, ""]


def _after(action: Action) -> str:
    if action.result is not None:
        return action.result.value
    return f"({ENDINGS.get(action.name, 'as before')})"
