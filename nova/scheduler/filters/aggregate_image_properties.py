"""AggregateImagePropertiesIsolation: no aggregate of the host sets a property of the image to another value.

Keys of aggregate metadata that the image does not have are ignored. With a namespace, only keys with that prefix (and
the separator) count.
"""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView


class AggregateImagePropertiesIsolation(Filter):
    reads = ("image_properties",)
    on_rebuild = True

    def __init__(self, options: PluginOptions) -> None:
        super().__init__(options)
        namespace = options.aggregate_image_properties_isolation_namespace
        self._prefix = f"{namespace}{options.aggregate_image_properties_isolation_separator}" if namespace else ""

    def wanted(self, request: PlacementRequest) -> bool:
        return any(map(self._meant, request.image_properties))

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        properties = request.image_properties
        for key, values in host.aggregates.values.items():
            if key in properties and self._meant(key) and not _among(str(properties[key]), values):
                return f"its aggregates are for images with another {key}"
        return None

    def _meant(self, key: str) -> bool:
        return key.startswith(self._prefix)


def _among(value: str, values: frozenset[str]) -> bool:
    """True if the property is among the aggregates' values, which are split at commas; it may be such a list itself."""
    return value.strip() in values or ("," in value and values >= {part.strip() for part in value.split(",")})
