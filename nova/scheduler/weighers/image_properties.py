"""ImagePropertiesWeigher: hosts whose servers' images share properties with the request's are better.

What counts, and how much, is said by ``image_props_weight_setting``; the conductor counts it, where the multiplier is
not 0 (``nova/db/placement/placement_facts.py``).
"""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class ImagePropertiesWeigher(Weigher):
    multiplier_option = "image_props_weight_multiplier"
    reads = ("image_matches",)

    def neutral(self, request: PlacementRequest) -> bool:
        return not request.image_matches

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return request.image_matches.get(host.host, 0.0)
