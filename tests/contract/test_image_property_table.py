"""Our table of image properties against the contract's."""

from __future__ import annotations

from nova.api.views.image_properties import KNOWN
from nova.model.image import image_properties as ours
from tests.contract import rows

pytestmark = rows.needs_contract


def test_every_typed_property_is_checked_as_the_contract_says() -> None:
    contract = rows.load("image_properties.yaml")
    assert contract["old_names"] == ours.OLD_NAMES
    by_type: dict[str, set[str]] = {}
    for entry in contract["properties"]:
        by_type.setdefault(entry["type"], set()).add(entry["name"])
        if "allowed" in entry:
            assert tuple(map(str, entry["allowed"])) == ours.CHOICES[entry["name"]], entry["name"]
            assert ours.problem({entry["name"]: "no such word"}) is not None
            assert all(ours.problem({entry["name"]: str(word)}) is None for word in entry["allowed"])
    assert by_type["boolean"] == set(ours.BOOLEANS) and by_type["integer"] == set(ours.INTEGERS)
    assert by_type["uuid"] == set(ours.UUIDS)
    assert {name for name in by_type["string"] if name in ours.PROBLEMS} == set(ours.CHOICES)


def test_every_property_a_server_shows_has_a_meaning() -> None:
    names = {entry["name"] for entry in rows.load("image_properties.yaml")["properties"]}
    assert set(ours.OLD_NAMES) | names >= KNOWN - {"img_bdm_v2"}
