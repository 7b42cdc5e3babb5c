"""The fake conductor's part for flavors: private ones and their projects, extra specs, create to delete."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec

from nova import errors
from nova.model.base import Scope
from nova.model.flavors import Flavor, FlavorQuery, NewFlavor

replace = msgspec.structs.replace


class Flavors:
    """``flavor_queries`` keeps what lists asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.flavors: dict[str, Flavor] = {}
        self.flavor_queries: list[FlavorQuery] = []

    def add_flavor(self, flavorid: str, **fields: object) -> Flavor:
        values = {"name": f"m1.{flavorid}", "memory_mb": 512, "vcpus": 1, "root_gb": 1, "id": len(self.flavors) + 1}
        self.flavors[flavorid] = Flavor(flavorid=flavorid, **{**values, **fields})  # type: ignore[arg-type]
        return self.flavors[flavorid]

    @staticmethod
    def _sees(scope: Scope, flavor: Flavor) -> bool:
        return scope.project_id is None or flavor.is_public or scope.project_id in flavor.projects

    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        self.flavor_queries.append(query)
        granted = query.scope.project_id
        held = [flavor for flavor in self.flavors.values()
                if self._sees(query.scope, flavor)
                and (query.is_public in (None, flavor.is_public) or (query.is_public and granted in flavor.projects))
                and flavor.memory_mb >= (query.min_ram_mb or 0) and flavor.root_gb >= (query.min_disk_gb or 0)
                and query.name in (None, flavor.name)]
        held.sort(key=lambda flavor: getattr(flavor, query.sort_key), reverse=query.sort_dir == "desc")
        names = [flavor.flavorid for flavor in held]
        if query.page.marker is not None:
            if query.page.marker not in names:
                raise errors.Invalid(f"marker [{query.page.marker}] not found")
            held = held[names.index(query.page.marker) + 1:]
        return tuple(held[:query.page.limit])

    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        flavor = self.flavors.get(flavorid)
        if flavor is None or not self._sees(scope, flavor):
            raise errors.NotFound(f"Flavor {flavorid} could not be found.")
        return flavor

    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        flavorid = flavor.flavorid or str(uuid.uuid4())
        if flavorid in self.flavors or flavor.name in {held.name for held in self.flavors.values()}:
            raise errors.Conflict(f"Flavor with name {flavor.name} or ID {flavorid} already exists.")
        return self.add_flavor(flavorid, **{name: getattr(flavor, name) for name in NewFlavor.__struct_fields__
                                            if name not in ("flavorid", "project_id")})

    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        self.flavors[flavorid] = replace(self.get_flavor(flavorid, Scope()), description=description)
        return self.flavors[flavorid]

    def delete_flavor(self, flavorid: str) -> None:
        self.get_flavor(flavorid, Scope())
        del self.flavors[flavorid]

    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        flavor = self.get_flavor(flavorid, Scope())
        self.flavors[flavorid] = replace(flavor, extra_specs={**flavor.extra_specs, **specs})
        return self.flavors[flavorid].extra_specs

    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        flavor = self.get_flavor(flavorid, Scope())
        if key not in flavor.extra_specs:
            raise errors.NotFound(f"Flavor {flavorid} has no extra specs with key {key}.")
        left = {name: value for name, value in flavor.extra_specs.items() if name != key}
        self.flavors[flavorid] = replace(flavor, extra_specs=left)

    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        flavor = self.get_flavor(flavorid, Scope())
        if allowed and project_id in flavor.projects:
            raise errors.Conflict(f"Flavor access already exists for {flavorid} and {project_id}.")
        if not allowed and project_id not in flavor.projects:
            raise errors.NotFound(f"Flavor access not found for {flavorid} / {project_id} combination.")
        left = {*flavor.projects, project_id} if allowed else {*flavor.projects} - {project_id}
        self.flavors[flavorid] = replace(flavor, projects=tuple(sorted(left)))
        return self.flavors[flavorid].projects
