"""Flavors: what a server is made of."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Page, Scope, Time, Value


class Flavor(Value):
    """A flavor, whole. ``id`` is the internal key, ``flavorid`` the one users see."""

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
    """A page of flavors. ``is_public`` None means both; ``scope`` limits private ones to those a project may use."""

    scope: Scope = Scope()
    is_public: bool | None = True
    min_ram_mb: int | None = None
    min_disk_gb: int | None = None
    name: str | None = None
    sort_key: str = "flavorid"
    sort_dir: str = "asc"
    page: Page = Page()


class NewFlavor(Value):
    """What ``POST /flavors`` asks for; ``flavorid`` None means "make one"."""

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
    project_id: str | None = None  # of contract 1.0: read by nobody now, and fields are only added
