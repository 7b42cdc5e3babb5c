"""Flavors: the resources of a server."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Scope, Time, Value


class Flavor(Value):
    """A complete flavor. ``id`` is the internal key; ``flavorid`` is the public id."""

    id: int = 0
    flavorid: str
    name: str
    memory_mb: int
    vcpus: int
    root_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    disabled: bool = False
    description: str | None = None
    extra_specs: Mapping[str, str] = {}
    projects: tuple[str, ...] = ()
    created_at: Time | None = None
    updated_at: Time | None = None


class FlavorQuery(Value):
    """A page of flavors. ``is_public`` None means both kinds; ``scope`` limits private flavors to those a project may
    use."""

    scope: Scope = Scope()
    is_public: bool | None = True
    min_ram_mb: int | None = None
    min_disk_gb: int | None = None
    name: str | None = None
    sort_key: str = "flavorid"
    sort_dir: str = "asc"
    page: Page = Page()


class NewFlavor(Value):
    """The flavor that ``POST /flavors`` requests; ``flavorid`` None: one is generated."""

    name: str
    memory_mb: int
    vcpus: int
    root_gb: int
    flavorid: str | None = None
    ephemeral_gb: int = 0
    swap_mb: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    description: str | None = None
    project_id: str | None = None  # of contract 1.0: no longer read; kept because fields are only added
