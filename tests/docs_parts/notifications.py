"""The page of notifications, from the tables of ``nova.notifications`` and ``nova.conductor.engine.announce``."""

from __future__ import annotations

from collections.abc import Iterator

from nova.conductor.engine.announce.calls import CALLS
from nova.conductor.registry import ALL
from nova.notifications import legacy
from nova.notifications.kinds import ACTIONS, KINDS, NOT_SENT, PROGRESS, TASKS, TYPES, EventKind
from tests.docs_parts import rst

INTRO = """\
The notifications that nova sends if they are enabled. `Notifications <../notifications.rst>`_ describes how to enable
them, and their guarantees. A phase, if one is listed, is appended to the name: ``instance.create.start``.
*Unversioned*: the name in the unversioned format (with the same phase), if there is one.
"""
BY_ITSELF = ("instance.update", "instance.exists", "instance.lock", "instance.unlock", "service.create",
             "aggregate.cache_images", "server_group.add_member", "compute.exception")
PARTS = "Notifications with a step are sent around this step of the operation, the others around the whole operation."


def page() -> str:
    return "\n".join([
        rst.MARK, rst.heading("Notifications, one by one"), INTRO,
        rst.heading("Operations on servers", "-"), PARTS + " *Step*: its name in the journal.\n",
        rst.table(("Action", "Event", "Step", "Phases", "Payload", "Unversioned"), _actions(),
                  (14, 26, 14, 14, 22, 28)),
        rst.heading("Changes by a call", "-"),
        rst.table(("Event", "Phases", "Publisher", "Payload", "Unversioned"), _others(), (28, 14, 14, 22, 26)),
        rst.heading("Payloads", "-"),
        rst.table(("Class", "Version", "Fields"), _payloads(), (26, 8, 80)),
        rst.heading("Never told", "-"),
        rst.table(("Event", "Why"), ((rst.literal(name), why) for name, why in NOT_SENT.items()), (26, 80))])


def _describe(kind: EventKind) -> tuple[str, str, str]:
    """Return a notification's phases, payload class and unversioned name."""
    form = legacy.FORMS.get(kind.name)
    phases = ", ".join(phase for phase in kind.phases if phase)
    return phases or "none", rst.literal(kind.payload.name), rst.literal(form.type) if form else "none"


def _actions() -> Iterator[tuple[str, ...]]:
    """Yield the notifications of all workflows."""
    for workflow in ALL:
        name = workflow.action.name
        for sent in ACTIONS.get(name, ()):
            phases, payload, older = _describe(KINDS[sent.name])
            yield (rst.literal(name), rst.literal(sent.name), rst.literal(sent.step) if sent.step else "the whole",
                   phases, payload, older)
        if name in TASKS:
            phases, payload, older = _describe(KINDS[TASKS[name]])
            yield rst.literal(name), rst.literal(TASKS[name]), "no host was found", phases, payload, older


def _others() -> Iterator[tuple[str, ...]]:
    called = {row.event for row in CALLS.values() if isinstance(row.event, str) and row.event}
    for name in sorted(called | {"keypair.create", "keypair.import", *BY_ITSELF}):
        kind = KINDS[name]
        phases, payload, older = _describe(kind)
        yield rst.literal(name), phases, rst.literal(kind.source), payload, older
        if name == PROGRESS.name:
            yield rst.literal(PROGRESS.types[0]), "none", rst.literal(PROGRESS.source), _describe(PROGRESS)[1], "none"


def _payloads() -> Iterator[tuple[str, ...]]:
    classes = {row.payload.name: row.payload for row in TYPES.values()}
    for name, payload in sorted(classes.items()):
        yield rst.literal(name), payload.version, ", ".join(rst.literal(one.name) for one in payload.fields)
