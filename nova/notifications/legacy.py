"""Unversioned messages: the older format, for the events that have one. Payloads are flat; their consumers document
them (ceilometer's event definitions, the SystemUsageData pages)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nova.notifications.facts import NotifiedServer, ShownServer, SpecFacts, TaskFacts, UsedVolume
from nova.notifications.message import Event, NotificationMessage
from nova.notifications.payloads.fields import plain
from nova.notifications.payloads.servers import image_property
from nova.notifications.versioned import priority


class Form(NamedTuple):
    """The older form of an event. ``type``: its older name (followed by the phase, if any); ``publisher``: the prefix
    of the host."""

    type: str
    publisher: str
    payload: Callable[[Event], dict[str, Any]]


def message(event: Event, level: str) -> NotificationMessage | None:
    """Return the event in the unversioned format; None if it has none."""
    form = FORMS.get(event.name) or ONLY_FORMS.get(event.name)
    if form is None:
        return None
    once = event.name.startswith(("compute_task.", "libvirt."))
    kind = form.type if once or not event.phase else f"{form.type}.{event.phase}"
    publisher = "api" if event.source == "nova-api" else form.publisher
    return NotificationMessage(type=kind, priority=priority(event, level), publisher=f"{publisher}.{event.host}",
                               payload={name: plain(value) for name, value in form.payload(event).items()},
                               who=event.who)


def _time(value: datetime.datetime | None) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f") if value else ""


def server(facts: NotifiedServer) -> dict[str, object]:
    """Return the common fields of every event about a server."""
    row, flavor = facts.row, facts.row.flavor
    return {
        "tenant_id": row.project_id, "user_id": row.user_id, "instance_id": row.uuid,
        "display_name": row.name, "reservation_id": row.reservation_id, "hostname": row.hostname,
        "instance_type": flavor.name, "instance_type_id": flavor.id, "instance_flavor_id": flavor.flavorid,
        "architecture": image_property(row, "hw_architecture", "architecture"), "memory_mb": flavor.memory_mb,
        "disk_gb": flavor.root_gb + flavor.ephemeral_gb, "vcpus": flavor.vcpus, "root_gb": flavor.root_gb,
        "ephemeral_gb": flavor.ephemeral_gb, "host": row.host, "node": row.node,
        "availability_zone": row.availability_zone, "cell_name": "", "created_at": f"{row.created_at:%F %T}+00:00",
        "terminated_at": _time(row.terminated_at), "deleted_at": _time(row.deleted_at),
        "launched_at": _time(row.launched_at), "image_ref_url": f"images/{row.image_id}" if row.image_id else "",
        "os_type": image_property(row, "os_type"), "kernel_id": row.kernel_id, "ramdisk_id": row.ramdisk_id,
        "state": "deleted" if row.deleted else row.vm_state, "state_description": row.task_state or "",
        "progress": row.progress or "", "access_ip_v4": row.access_ip_v4, "access_ip_v6": row.access_ip_v6,
        "metadata": facts.metadata, "image_meta": _image_meta(row)}


def _image_meta(row: ShownServer) -> dict[str, str]:
    """Return the image's own properties, and the id of the server's image."""
    properties = dict(row.image.properties) if row.image is not None else {}
    return {**properties, "base_image_ref": row.image_id or ""}


def action(event: Event) -> dict[str, object]:
    """Return the payload of an action: the server, its addresses (as API clients see them), and the error, if any."""
    facts = event.subject
    failed = facts.failure
    why = {"message": failed.message, "code": 500, "exception": failed.message} if failed else {"message": "Success"}
    return {**server(facts), "fixed_ips": _addresses(facts), **why, **_plain_extra(facts)}


def _addresses(facts: NotifiedServer) -> list[dict[str, object]]:
    if facts.row.deleted:
        return []
    return [{"address": address.address, "version": address.version, "label": one.label, "vif_mac": one.mac,
             "type": "fixed", "meta": {}, "floating_ips": []}
            for one in facts.row.interfaces or () for address in one.addresses]


def _plain_extra(facts: NotifiedServer) -> dict[str, object]:
    """Return the values that are text: mostly ids of volumes and images."""
    return {name: value for name, value in facts.extra.items() if isinstance(value, str)}


def update(event: Event) -> dict[str, object]:
    """Return the payload of ``compute.instance.update``: the server, its states before and after, and the audit
    period."""
    facts = event.subject
    states, period, renamed = facts.extra["states"], facts.extra["period"], facts.extra.get("old_display_name")
    return {**server(facts), "old_state": states.old_state, "state": states.state,
            "old_task_state": states.old_task_state, "new_task_state": states.new_task_state, "bandwidth": {},
            "tags": facts.tags, "audit_period_beginning": _time(period.beginning),
            "audit_period_ending": _time(period.ending), **({"old_display_name": renamed} if renamed else {})}


def exists(event: Event) -> dict[str, object]:
    """Return the payload of ``compute.instance.exists``: the server and the audited period. ``bandwidth`` is always
    empty."""
    facts = event.subject
    period = facts.extra["period"]
    return {**server(facts), "audit_period_beginning": str(period.beginning), "audit_period_ending": str(period.ending),
            "bandwidth": {}}


def keypair(event: Event) -> dict[str, object]:
    """Return the names of project, user and key, without the key itself."""
    return {"tenant_id": event.who.project_id, "user_id": event.subject.user_id, "key_name": event.subject.name}


def aggregate(event: Event) -> dict[str, object]:
    """Return id, name and metadata; fields that are not yet known (the id before the creation) are left out."""
    value = event.subject
    payload = {"aggregate_id": getattr(value, "id", None), "name": value.name, "meta_data": value.metadata}
    return {name: one for name, one in payload.items() if one is not None}


def server_group(event: Event) -> dict[str, object]:
    """Return id, name, ``policies`` (a list of one) and the members' uuids."""
    value = event.subject
    return {"server_group_id": value.uuid, "name": value.name, "policies": [value.policy], "members": value.members}


def floating_address(event: Event) -> dict[str, object]:
    """Return project, address, and the server with the address (None: no server)."""
    value = event.subject
    return {"project_id": value.project_id, "floating_ip": value.address, "instance_id": value.server_uuid}


def volume_usage(event: Event) -> dict[str, object]:
    """Return the volume's owner and server, its counters, and their time."""
    used: UsedVolume = event.subject
    row, counts = used.row, used.counts
    return {"volume_id": counts.volume_id, "instance_id": counts.server_uuid, "tenant_id": row.project_id,
            "user_id": row.user_id, "availability_zone": row.availability_zone or "",
            "last_refreshed": f"{used.at:%F %T}+00:00", "reads": counts.reads, "read_bytes": counts.read_bytes,
            "writes": counts.writes, "write_bytes": counts.write_bytes}


def request_spec(event: Event) -> dict[str, object]:
    """Return ``{"request_spec": ...}``: the number of servers to place, with their flavor and image."""
    return {"request_spec": _spec(event.subject)}


def _spec(spec: SpecFacts) -> dict[str, object]:
    row = spec.row
    return {
        "num_instances": spec.count, "instance_type": {"name": row.flavor.name, "flavorid": row.flavor.flavorid,
                                                       "memory_mb": row.flavor.memory_mb, "vcpus": row.flavor.vcpus,
                                                       "root_gb": row.flavor.root_gb},
        "image": {"id": row.image_id} if row.image_id else {},
        "instance_properties": {"uuid": row.uuid, "project_id": row.project_id, "user_id": row.user_id,
                                "availability_zone": row.pinned_availability_zone}}


def task(event: Event) -> dict[str, object]:
    """Return a failed task of the conductor: the request, the resulting state, the method's name and the reason."""
    facts: TaskFacts = event.subject
    spec = _spec(facts.spec)
    return {"request_spec": spec, "instance_properties": spec["instance_properties"], "instance_id": facts.uuid,
            "state": facts.state, "method": facts.method, "reason": facts.failure.message}


def libvirt_error(event: Event) -> dict[str, object]:
    """Return the address of a host that cannot reach its libvirt, and the reason."""
    return {"ip": event.subject.ip, "method": "_connect", "reason": event.subject.failure.message}


def _servers(payload: Callable[[Event], dict[str, object]], names: Mapping[str, str]) -> dict[str, Form]:
    return {f"instance.{name}": Form(f"compute.instance.{older}", "compute", payload)
            for name, older in names.items()}


_SAME = ("create", "delete", "soft_delete", "restore", "shutdown", "power_on", "power_off", "reboot", "pause",
         "unpause", "suspend", "resume", "trigger_crash_dump", "rescue", "unrescue", "snapshot", "shelve",
         "shelve_offload", "unshelve", "rebuild", "evacuate", "resize")

#: event name (without phase) -> its unversioned form. Events of services, flavors, locks and API errors have none.
FORMS: dict[str, Form] = {
    **_servers(action, {name: name for name in _SAME}),
    **_servers(action, {
        "resize_prep": "resize.prep", "resize_finish": "finish_resize", "resize_confirm": "resize.confirm",
        "resize_revert": "resize.revert", "rebuild_scheduled": "rebuild.scheduled",
        "volume_attach": "volume.attach", "volume_detach": "volume.detach",
        "live_migration_pre": "live_migration.pre", "live_migration_post": "live_migration._post",
        "live_migration_post_dest": "live_migration.post.dest",
        "live_migration_rollback": "live_migration._rollback",
        "live_migration_rollback_dest": "live_migration.rollback.dest",
        "live_migration_abort": "live.migration.abort",
        "live_migration_force_complete": "live.migration.force.complete"}),
    **_servers(update, {"update": "update"}),
    **_servers(exists, {"exists": "exists"}),
    **{f"keypair.{name}": Form(f"keypair.{name}", "api", keypair) for name in ("create", "delete", "import")},
    **{f"aggregate.{name}": Form(f"aggregate.{older}", "aggregate", aggregate) for name, older in (
        ("create", "create"), ("delete", "delete"), ("add_host", "addhost"), ("remove_host", "removehost"),
        ("update_prop", "updateprop"), ("update_metadata", "updatemetadata"))},
    **{f"server_group.{name}": Form(f"servergroup.{older}", "api", server_group) for name, older in (
        ("create", "create"), ("delete", "delete"), ("add_member", "addmember"))},
    "volume.usage": Form("volume.usage", "compute", volume_usage),
    "libvirt.connect": Form("compute.libvirt.error", "compute", libvirt_error),
    "scheduler.select_destinations": Form("scheduler.select_destinations", "scheduler", request_spec),
    **{f"compute_task.{name}": Form(f"compute_task.{name}", "conductor", task) for name in (
        "build_instances", "migrate_server", "rebuild_server")},
}

#: Events with only this format: those of nova-network are older than the versioned format.
ONLY_FORMS: dict[str, Form] = {
    f"network.floating_ip.{name}": Form(f"network.floating_ip.{name}", "network", floating_address)
    for name in ("allocate", "deallocate", "associate", "disassociate")}
