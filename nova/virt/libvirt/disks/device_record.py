"""What is kept of a volume that is a device of this host's, as os-brick connected it."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Json, Value


class DeviceRecord(Value):
    """``words``: the back end's, without secrets. ``shared_targets``, ``service_uuid``: with whom hosts take turns
    (:class:`nova.model.volumes.VolumeConnection`). ``found``: os-brick's word of the device; {}: it was not found yet.
    """

    words: Mapping[str, Json] = {}
    shared_targets: bool | None = False
    service_uuid: str = ""
    found: Mapping[str, Json] = {}

    @property
    def identity(self) -> str:
        """What no other device has: its WWN; empty: its kind has none."""
        return str(self.found.get("scsi_wwn") or "")
