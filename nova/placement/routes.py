"""The table of operations: one row each."""

from __future__ import annotations

from nova.placement.handlers import aggregates, allocations, candidates, classes, inventories, providers, traits, usages
from nova.placement.routing import Route
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

ROUTES: tuple[Route, ...] = (
    Route("GET", "/resource_providers", providers.index, f"{_PROVIDERS}list", query=provider_schemas.LIST_QUERY),
    Route("POST", "/resource_providers", providers.create, f"{_PROVIDERS}create", provider_schemas.CREATE),
    Route("GET", _ONE, providers.show, f"{_PROVIDERS}show"),
    Route("PUT", _ONE, providers.update, f"{_PROVIDERS}update", provider_schemas.UPDATE),
    Route("DELETE", _ONE, providers.delete, f"{_PROVIDERS}delete"),
    Route("GET", f"{_ONE}/inventories", inventories.index, f"{_INVENTORIES}list"),
    Route("POST", f"{_ONE}/inventories", inventories.create, f"{_INVENTORIES}create", inventory_schemas.CREATE),
    Route("PUT", f"{_ONE}/inventories", inventories.replace, f"{_INVENTORIES}update", inventory_schemas.REPLACE),
    Route("DELETE", f"{_ONE}/inventories", inventories.clear, f"{_INVENTORIES}delete", since="1.5"),
    Route("GET", f"{_ONE}/inventories/{{name}}", inventories.show, f"{_INVENTORIES}show"),
    Route("PUT", f"{_ONE}/inventories/{{name}}", inventories.update, f"{_INVENTORIES}update",
          inventory_schemas.UPDATE),
    Route("DELETE", f"{_ONE}/inventories/{{name}}", inventories.delete, f"{_INVENTORIES}delete"),
    Route("GET", f"{_ONE}/usages", usages.of_provider, f"{_PROVIDERS}usages"),
    Route("GET", f"{_ONE}/aggregates", aggregates.index, f"{_PROVIDERS}aggregates:list", since="1.1"),
    Route("PUT", f"{_ONE}/aggregates", aggregates.replace, f"{_PROVIDERS}aggregates:update",
          aggregate_schemas.REPLACE, since="1.1"),
    Route("GET", f"{_ONE}/traits", traits.of_provider, f"{_PROVIDERS}traits:list", since="1.6"),
    Route("PUT", f"{_ONE}/traits", traits.replace, f"{_PROVIDERS}traits:update", trait_schemas.REPLACE, since="1.6"),
    Route("DELETE", f"{_ONE}/traits", traits.clear, f"{_PROVIDERS}traits:delete", since="1.6"),
    Route("GET", f"{_ONE}/allocations", allocations.of_provider, f"{_PROVIDERS}allocations:list"),
    Route("GET", "/resource_classes", classes.index, f"{_CLASSES}list", since="1.2"),
    Route("POST", "/resource_classes", classes.create, f"{_CLASSES}create", class_schemas.CREATE, since="1.2"),
    Route("GET", "/resource_classes/{name}", classes.show, f"{_CLASSES}show", since="1.2"),
    Route("PUT", "/resource_classes/{name}", classes.update, f"{_CLASSES}update", class_schemas.CREATE, since="1.2",
          body_until="1.6"),
    Route("DELETE", "/resource_classes/{name}", classes.delete, f"{_CLASSES}delete", since="1.2"),
    Route("GET", "/traits", traits.index, f"{_TRAITS}list", query=trait_schemas.LIST_QUERY, since="1.6"),
    Route("GET", "/traits/{name}", traits.show, f"{_TRAITS}show", since="1.6"),
    Route("PUT", "/traits/{name}", traits.create, f"{_TRAITS}update", since="1.6"),
    Route("DELETE", "/traits/{name}", traits.delete, f"{_TRAITS}delete", since="1.6"),
    Route("POST", "/allocations", allocations.replace_many, f"{_ALLOCATIONS}manage",
          allocation_schemas.REPLACE_MANY, since="1.13"),
    Route("GET", "/allocations/{consumer}", allocations.show, f"{_ALLOCATIONS}list"),
    Route("PUT", "/allocations/{consumer}", allocations.replace, f"{_ALLOCATIONS}update", allocation_schemas.REPLACE),
    Route("DELETE", "/allocations/{consumer}", allocations.delete, f"{_ALLOCATIONS}delete"),
    Route("GET", "/allocation_candidates", candidates.index, "placement:allocation_candidates:list",
          query=candidate_schemas.LIST_QUERY, since="1.10"),
    Route("GET", "/usages", usages.of_project, "placement:usages", query=usage_schemas.LIST_QUERY, since="1.9",
          looks_first=True),
    Route("POST", "/reshaper", allocations.reshape, "placement:reshaper:reshape", allocation_schemas.RESHAPE,
          since="1.30"),
)
