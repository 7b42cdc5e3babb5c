"""A class name means one thing: whoever greps it finds one class."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

NOVA = Path(__file__).resolve().parents[2] / "nova"
#: Names that more than one room has still, each for its own: none is to be added, and who renames one takes it out.
SHARED = {
    "Answer", "Asked", "Body", "Bounds", "Clock", "Condition", "Connection", "Consoles", "DeviceSpec",
    "Driver", "End", "Events", "Field", "Files", "Filter", "Floating", "Gate", "Groups", "Held", "HostCalls",
    "HostChoice", "HostFacts", "Hypervisor", "ImageCache", "Images", "Interface", "Interfaces", "Job", "Kept",
    "Known", "Lease", "Links", "Manager", "Memory", "Message", "Migration", "Names", "Network", "NetworkOptions",
    "Networks", "Node", "Offer", "OpenVSwitch", "Options", "Parts", "Patience", "Place", "PlaceOnHost", "Places",
    "Plan", "Pool", "Port", "Progress", "Promise", "Refusal", "Refused", "Request", "Resources", "Route",
    "Rule", "Screens", "ServerFacts", "Service", "Snapshot", "Source", "Stamp", "Step", "TokenCheck",
    "Told", "Tools", "Usage", "Watch", "Wire", "Wish", "Wishes"}
CATALOGUES = "errors"  # rows are named within their noun


def test_public_classes_then_a_name_is_one_class() -> None:
    names = Counter(node.name for path in NOVA.rglob("*.py") if path.parent.name != CATALOGUES
                    for node in ast.parse(path.read_text()).body
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert {name for name, count in names.items() if count > 1} == SHARED
