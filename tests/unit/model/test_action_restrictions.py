"""Which actions a server cannot have, by what it was built with: every row, every action, and what each row leaves."""

from __future__ import annotations

import json

import msgspec
import pytest

from nova.model.network import port_requests
from nova.model.network.networks import Interface
from nova.model.numa import pci_aliases
from nova.model.server.action_restrictions import RESTRICTED, RESTRICTIONS, BuiltWith, restriction
from nova.model.server.states import ACTIONS
from tests.fakes.restricted_servers import CASES, PLAIN, Case

EMPTYING = {"rebuild", "rescue", "shelve", "evacuate"}
STAYING = {"live-migration"}
#: name of a case -> all that is refused.
REFUSED: dict[str, set[str]] = {
    "tpm-of-image": EMPTYING, "tpm-of-flavor": EMPTYING, "tpm-of-user": EMPTYING | STAYING,
    "tpm-of-deployment": EMPTYING, "user-without-tpm": set(),
    "encrypted-by-image": {"suspend"} | STAYING, "encrypted-by-flavor": {"suspend"} | STAYING,
    "encrypted-not": set(),
    "devices": {"suspend"} | STAYING, "devices-migratable": STAYING, "devices-mixed": {"suspend"} | STAYING,
    "devices-of-unknown-alias": {"suspend"} | STAYING, "devices-of-no-alias": set(),
    **{f"port-{kind}": {"suspend"} | STAYING for kind in port_requests.KINDS}, "port-macvtap": STAYING,
    "port-normal": set(), "port-normal-and-direct": {"suspend"} | STAYING}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_restriction_when_a_server_has_something_then_it_refuses_these_actions_and_no_others(case: Case) -> None:
    assert {action for action in ACTIONS if restriction(action, case.built_with)} == REFUSED[case.name]


def test_restriction_when_a_server_has_nothing_of_the_table_then_no_action_is_refused() -> None:
    assert [action for action in ACTIONS if restriction(action, PLAIN)] == []
    assert restriction("suspend", BuiltWith()) is None


def test_table_when_each_row_is_looked_at_then_a_case_shows_it_and_its_actions_exist() -> None:
    assert set(ACTIONS) >= RESTRICTED == {action for row in RESTRICTIONS for action in row.refuses}
    for row in RESTRICTIONS:
        assert row.refuses and any(row.has(case.built_with) for case in CASES), row.what
        assert not row.has(PLAIN)


@pytest.mark.parametrize("spec, known", [("yes", True), ("no", False), (None, False)])
def test_alias_when_its_devices_may_be_of_either_kind_then_they_are_not_known_to_give_their_state_away(
        spec: str | None, known: bool) -> None:
    said = {"live_migratable": spec} if spec else {}
    found = pci_aliases.parse([json.dumps({"name": "gpu", "vendor_id": "10de", **said})])
    assert pci_aliases.is_live_migratable(found["gpu"]) is known


def test_interface_when_its_port_is_none_of_the_hosts_devices_then_it_is_in_no_row() -> None:
    one = Interface(id="p", mac="fa:16:3e:00:00:01", network_id="n", label="net", type="macvtap")
    server = PLAIN._replace(interfaces=(one, msgspec.structs.replace(one, type="ovs")))
    assert not any(row.has(server) for row in RESTRICTIONS)
