"""Rules of the volume proxies of old versions, and of assisted snapshots."""

from __future__ import annotations

from nova.policies.base import MEMBER, OLD_OWNER, READER, SERVICE, Old, Rule

RULES = (
    Rule("os_compute_api:os-assisted-volume-snapshots:create", SERVICE, ("POST /os-assisted-volume-snapshots",)),
    Rule("os_compute_api:os-assisted-volume-snapshots:delete", SERVICE,
         ("DELETE /os-assisted-volume-snapshots/{snapshot_id}",)),
    Rule("os_compute_api:os-volumes:create", MEMBER, ("POST /os-volumes",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:delete", MEMBER, ("DELETE /os-volumes/{volume_id}",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:detail", READER, ("GET /os-volumes/detail",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:list", READER, ("GET /os-volumes",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:show", READER, ("GET /os-volumes/{volume_id}",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:snapshots:create", MEMBER, ("POST /os-snapshots",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:snapshots:delete", MEMBER, ("DELETE /os-snapshots/{snapshot_id}",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:snapshots:detail", READER, ("GET /os-snapshots/detail",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:snapshots:list", READER, ("GET /os-snapshots",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
    Rule("os_compute_api:os-volumes:snapshots:show", READER, ("GET /os-snapshots/{snapshot_id}",),
         old=Old("os_compute_api:os-volumes", OLD_OWNER)),
)
