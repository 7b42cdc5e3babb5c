"""Parts of the fake conductor: resources of users and projects other than servers."""

from __future__ import annotations

import uuid
from typing import Any

from nova import context, errors
from nova.model.base import utcnow
from nova.model.flavor.flavors import NewFlavor
from nova.model.quota.quotas import QuotaClass, QuotaSet
from nova.model.server.keypairs import Keypair, NewKeypair
from nova.model.server.server_groups import ServerGroup
from tests.fakes.shelves import EVERYTHING, after, first, held, page, replace, visible


class ServerGroups:
    def list_server_groups(self: Any, query: Any) -> Any:
        return page(visible(self.groups.values(), query.scope), query.page)

    def get_server_group(self: Any, uuid: Any, scope: Any) -> Any:
        return held(self.groups, uuid, "Instance group", scope)

    def create_server_group(self: Any, group: Any) -> Any:
        caller = context.current()
        self.groups[group.uuid] = ServerGroup(
            uuid=group.uuid, name=group.name, policy=group.policy, rules=group.rules, created_at=utcnow(),
            project_id=str(caller.project_id), user_id=str(caller.user_id))
        return self.groups[group.uuid]

    def delete_server_group(self: Any, uuid: Any, scope: Any) -> None:
        del self.groups[held(self.groups, uuid, "Instance group", scope).uuid]


class Flavors:
    """Flavors from creation to deletion, with private ones, their projects, and extra specs."""

    def list_flavors(self: Any, query: Any) -> Any:
        granted = query.scope.project_id
        found = [flavor for flavor in self.flavors.values()
                 if self._sees(query.scope, flavor)
                 and (query.is_public in (None, flavor.is_public) or (query.is_public and granted in flavor.projects))
                 and flavor.memory_mb >= (query.min_ram_mb or 0) and flavor.root_gb >= (query.min_disk_gb or 0)
                 and query.name in (None, flavor.name)]
        found.sort(key=lambda flavor: getattr(flavor, query.sort_key), reverse=query.sort_dir == "desc")
        return tuple(after(query.page.marker, found, "flavorid")[:query.page.limit])

    @staticmethod
    def _sees(scope: Any, flavor: Any) -> bool:
        return scope.project_id is None or flavor.is_public or scope.project_id in flavor.projects

    def get_flavor(self: Any, flavorid: Any, scope: Any) -> Any:
        return first((flavor for flavor in self.flavors.values() if flavor.flavorid == flavorid
                      and self._sees(scope, flavor)), f"Flavor {flavorid}")

    def create_flavor(self: Any, flavor: Any) -> Any:
        flavorid = flavor.flavorid or str(uuid.uuid4())
        if flavorid in self.flavors or flavor.name in {one.name for one in self.flavors.values()}:
            raise errors.Conflict(f"Flavor with name {flavor.name} or ID {flavorid} already exists.")
        return self.add_flavor(flavorid, **{name: getattr(flavor, name) for name in NewFlavor.__struct_fields__
                                            if name not in ("flavorid", "project_id")})

    def _change_flavor(self: Any, flavorid: str, **fields: Any) -> Any:
        self.flavors[flavorid] = replace(Flavors.get_flavor(self, flavorid, EVERYTHING), **fields)
        return self.flavors[flavorid]

    def update_flavor(self: Any, flavorid: Any, description: Any) -> Any:
        return self._change_flavor(flavorid, description=description)

    def delete_flavor(self: Any, flavorid: Any) -> None:
        del self.flavors[Flavors.get_flavor(self, flavorid, EVERYTHING).flavorid]

    def set_flavor_specs(self: Any, flavorid: Any, specs: Any) -> Any:
        flavor = Flavors.get_flavor(self, flavorid, EVERYTHING)
        return self._change_flavor(flavorid, extra_specs={**flavor.extra_specs, **specs}).extra_specs

    def delete_flavor_spec(self: Any, flavorid: Any, key: Any) -> None:
        specs = dict(Flavors.get_flavor(self, flavorid, EVERYTHING).extra_specs)
        first((name for name in specs if name == key), f"Extra spec {key} of flavor {flavorid}")
        del specs[key]
        self._change_flavor(flavorid, extra_specs=specs)

    def change_flavor_access(self: Any, flavorid: Any, project_id: Any, allowed: Any) -> Any:
        projects = {*Flavors.get_flavor(self, flavorid, EVERYTHING).projects}
        if allowed and project_id in projects:
            raise errors.Conflict(f"Flavor access already exists for {flavorid} and {project_id}.")
        if not allowed and project_id not in projects:
            raise errors.NotFound(f"Flavor access not found for {flavorid} / {project_id} combination.")
        return self._change_flavor(flavorid, projects=tuple(sorted(projects ^ {project_id}))).projects


class Keypairs:
    def list_keypairs(self: Any, query: Any) -> Any:
        mine = [keypair for (user, _), keypair in sorted(self.keypairs.items()) if user == query.user_id]
        return tuple(after(query.marker, mine, "name")[:query.limit])

    def get_keypair(self: Any, user_id: Any, name: Any) -> Any:
        return held(self.keypairs, (user_id, name), "Keypair")

    def create_keypair(self: Any, keypair: Any) -> Any:
        if (keypair.user_id, keypair.name) in self.keypairs:
            raise errors.Conflict(f"Key pair '{keypair.name}' already exists.")
        shared = {*NewKeypair.__struct_fields__} & {*Keypair.__struct_fields__}
        made = Keypair(id=len(self.keypairs) + 1, created_at=utcnow(),
                       **{name: getattr(keypair, name) for name in shared})
        self.keypairs[made.user_id, made.name] = made
        return made

    def delete_keypair(self: Any, user_id: Any, name: Any) -> None:
        Keypairs.get_keypair(self, user_id, name)
        del self.keypairs[user_id, name]


class Quotas:
    def get_quotas(self: Any, project_id: Any, user_id: Any, usage: Any) -> Any:
        limits = {**self.defaults, **self.limits.get((project_id, None), {}),
                  **self.limits.get((project_id, user_id), {})}
        return QuotaSet(project_id=project_id, user_id=user_id, limits=limits, in_use=self.used if usage else {})

    def get_default_quotas(self: Any) -> Any:
        return QuotaSet(limits=self.defaults)

    def update_quotas(self: Any, update: Any) -> Any:
        for name, limit in update.limits.items():
            if 0 <= limit < self.used.get(name, 0) and not update.force:
                raise errors.Invalid(f"Quota limit {limit} for {name} must be at least {self.used[name]}.")
        self.limits.setdefault((update.project_id, update.user_id), {}).update(update.limits)
        return Quotas.get_quotas(self, update.project_id, update.user_id, False)

    def delete_quotas(self: Any, project_id: Any, user_id: Any) -> None:
        for owner in [owner for owner in self.limits if owner[0] == project_id and user_id in (None, owner[1])]:
            del self.limits[owner]

    def get_quota_class(self: Any, class_name: Any) -> Any:
        return QuotaClass(class_name=class_name, limits={**self.defaults, **self.classes.get(class_name, {})})

    def update_quota_class(self: Any, update: Any) -> Any:
        self.classes.setdefault(update.class_name, {}).update(update.limits)
        return Quotas.get_quota_class(self, update.class_name)


class Images:
    """Images; lists ignore their filters, which the image service implements."""

    def list_images(self: Any, query: Any) -> Any:
        return tuple(after(query.marker, self.images.values(), "id")[:query.limit])

    def get_image(self: Any, image_id: Any) -> Any:
        return held(self.images, image_id, "Image")

    def delete_image(self: Any, image_id: Any) -> None:
        if Images.get_image(self, image_id).protected:
            raise errors.Forbidden(f"Image {image_id} is protected.")
        del self.images[image_id]

    def update_image_properties(self: Any, image_id: Any, items: Any, delete: Any, replace: Any) -> Any:
        image = Images.get_image(self, image_id)
        kept = {} if replace else {key: value for key, value in image.properties.items() if key not in delete}
        self.add_image(**{**{name: getattr(image, name) for name in image.__struct_fields__},
                          "properties": {**kept, **items}})
        return self.images[image_id].properties
