"""The table of operations, one row for each."""

from __future__ import annotations

from nova.placement.handlers import aggregates, allocations, candidates, classes, inventories, providers, traits, usages
from nova.placement.routing import PlacementRoute
from nova.placement.schemas import aggregates as aggregate_schemas
from nova.placement.schemas import allocations as allocation_schemas
from nova.placement.schemas import candidates as candidate_schemas
from nova.placement.schemas import classes as class_schemas
from nova.placement.schemas import inventories as inventory_schemas
from nova.placement.schemas import providers as provider_schemas
from nova.placement.schemas import traits as trait_schemas
from nova.placement.schemas import usages as usage_schemas

_ONE = "/resource_providers/{uuid}"
_PROVIDERS = "placement:resource_providers:"
_INVENTORIES = f"{_PROVIDERS}inventories:"
_CLASSES = "placement:resource_classes:"
_TRAITS = "placement:traits:"
_ALLOCATIONS = "placement:allocations:"

ROUTES: tuple[PlacementRoute, ...] = (
    PlacementRoute("GET", "/resource_providers", providers.index, f"{_PROVIDERS}list",
                   query=provider_schemas.LIST_QUERY),
    PlacementRoute("POST", "/resource_providers", providers.create, f"{_PROVIDERS}create", provider_schemas.CREATE),
    PlacementRoute("GET", _ONE, providers.show, f"{_PROVIDERS}show"),
    PlacementRoute("PUT", _ONE, providers.update, f"{_PROVIDERS}update", provider_schemas.UPDATE),
    PlacementRoute("DELETE", _ONE, providers.delete, f"{_PROVIDERS}delete"),
    PlacementRoute("GET", f"{_ONE}/inventories", inventories.index, f"{_INVENTORIES}list"),
    PlacementRoute("POST", f"{_ONE}/inventories", inventories.create, f"{_INVENTORIES}create",
                   inventory_schemas.CREATE),
    PlacementRoute("PUT", f"{_ONE}/inventories", inventories.replace, f"{_INVENTORIES}update",
                   inventory_schemas.REPLACE),
    PlacementRoute("DELETE", f"{_ONE}/inventories", inventories.clear, f"{_INVENTORIES}delete", since="1.5"),
    PlacementRoute("GET", f"{_ONE}/inventories/{{name}}", inventories.show, f"{_INVENTORIES}show"),
    PlacementRoute("PUT", f"{_ONE}/inventories/{{name}}", inventories.update, f"{_INVENTORIES}update",
                   inventory_schemas.UPDATE),
    PlacementRoute("DELETE", f"{_ONE}/inventories/{{name}}", inventories.delete, f"{_INVENTORIES}delete"),
    PlacementRoute("GET", f"{_ONE}/usages", usages.of_provider, f"{_PROVIDERS}usages"),
    PlacementRoute("GET", f"{_ONE}/aggregates", aggregates.index, f"{_PROVIDERS}aggregates:list", since="1.1"),
    PlacementRoute("PUT", f"{_ONE}/aggregates", aggregates.replace, f"{_PROVIDERS}aggregates:update",
                   aggregate_schemas.REPLACE, since="1.1"),
    PlacementRoute("GET", f"{_ONE}/traits", traits.of_provider, f"{_PROVIDERS}traits:list", since="1.6"),
    PlacementRoute("PUT", f"{_ONE}/traits", traits.replace, f"{_PROVIDERS}traits:update", trait_schemas.REPLACE,
                   since="1.6"),
    PlacementRoute("DELETE", f"{_ONE}/traits", traits.clear, f"{_PROVIDERS}traits:delete", since="1.6"),
    PlacementRoute("GET", f"{_ONE}/allocations", allocations.of_provider, f"{_PROVIDERS}allocations:list"),
    PlacementRoute("GET", "/resource_classes", classes.index, f"{_CLASSES}list", since="1.2"),
    PlacementRoute("POST", "/resource_classes", classes.create, f"{_CLASSES}create", class_schemas.CREATE,
                   since="1.2", silent_since="1.2"),
    PlacementRoute("GET", "/resource_classes/{name}", classes.show, f"{_CLASSES}show", since="1.2"),
    PlacementRoute("PUT", "/resource_classes/{name}", classes.update, f"{_CLASSES}update", class_schemas.CREATE,
                   since="1.2", body_until="1.6", silent_since="1.7"),
    PlacementRoute("DELETE", "/resource_classes/{name}", classes.delete, f"{_CLASSES}delete", since="1.2"),
    PlacementRoute("GET", "/traits", traits.index, f"{_TRAITS}list", query=trait_schemas.LIST_QUERY, since="1.6"),
    PlacementRoute("GET", "/traits/{name}", traits.show, f"{_TRAITS}show", since="1.6", silent_since="1.6"),
    PlacementRoute("PUT", "/traits/{name}", traits.create, f"{_TRAITS}update", since="1.6", silent_since="1.6"),
    PlacementRoute("DELETE", "/traits/{name}", traits.delete, f"{_TRAITS}delete", since="1.6"),
    PlacementRoute("POST", "/allocations", allocations.replace_many, f"{_ALLOCATIONS}manage",
                   allocation_schemas.REPLACE_MANY, since="1.13", silent_since="1.13"),
    PlacementRoute("GET", "/allocations/{consumer}", allocations.show, f"{_ALLOCATIONS}list"),
    PlacementRoute("PUT", "/allocations/{consumer}", allocations.replace, f"{_ALLOCATIONS}update",
                   allocation_schemas.REPLACE, silent_since="1.0"),
    PlacementRoute("DELETE", "/allocations/{consumer}", allocations.delete, f"{_ALLOCATIONS}delete"),
    PlacementRoute("GET", "/allocation_candidates", candidates.index, "placement:allocation_candidates:list",
                   query=candidate_schemas.LIST_QUERY, since="1.10"),
    PlacementRoute("GET", "/usages", usages.of_project, "placement:usages", query=usage_schemas.LIST_QUERY, since="1.9",
                   looks_first=True),
    PlacementRoute("POST", "/reshaper", allocations.reshape, "placement:reshaper:reshape", allocation_schemas.RESHAPE,
                   since="1.30", silent_since="1.30"),
)
