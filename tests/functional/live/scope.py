"""What the live contract test leaves out, by name, with the later issue that each waits for."""

from __future__ import annotations

#: issue -> operations that it brings; exactly those of ``nova.api.absent.NOT_YET``, a test sees to it.
WAITING: dict[str, tuple[str, ...]] = {
    "networks": (
    ),
    "shares": (
        "GET /servers/{server_id}/shares",
        "POST /servers/{server_id}/shares",
        "GET /servers/{server_id}/shares/{share_id}",
        "DELETE /servers/{server_id}/shares/{share_id}",
    ),
    "EC2": (),
}

#: Operations that need a volume service, which this cloud has not: ``tests/contract/test_api_volumes.py`` holds them,
#: and their samples, against the contract.
WITHOUT_SERVICE: tuple[str, ...] = (
    "POST /os-snapshots",
    "DELETE /os-snapshots/{snapshot_id}",
    "POST /os-volumes",
    "DELETE /os-volumes/{volume_id}",
    "POST /os-assisted-volume-snapshots",
    "DELETE /os-assisted-volume-snapshots/{snapshot_id}",
    "POST /servers/{server_id}/os-volume_attachments",
    "PUT /servers/{server_id}/os-volume_attachments/{volume_id}",
    "DELETE /servers/{server_id}/os-volume_attachments/{volume_id}",
)

#: issue -> samples (a folder, or folder and beginning of the file's name) that it brings.
WAITING_SAMPLES: dict[str, tuple[str, ...]] = {
    "networks": (
    ),
    "volumes": (
        "os-snapshots/",
        "os-volume_attachments/",
        "os-volumes/",
    ),
    "shares": ("os-server-shares/",),
}

#: Samples of operations that answer 410 at every version (certificates: of /v2.1; below /v2 they need nova-cert, which
#: this cloud does not have).
GONE_SAMPLES = (
    "consoles/",
    "os-admin-actions/admin-actions-reset-network",
    "os-agents/",
    "os-cells/",
    "os-certificates/",
    "os-fping/",
)
#: Samples of operations that only nova-network has: ``test_live_old_networks`` holds them against a cloud of its own.
OLD_NETWORKS = "nova-network's cloud"
OLD_NETWORK_SAMPLES = (
    "os-cloudpipe/",
    "os-fixed-ips/",
    "os-floating-ip-dns/",
    "os-floating-ips-bulk/",
    "os-networks-associate/",
    "os-networks/network-add-req",
    "os-networks/network-create-req",
    "os-security-group-default-rules/",
    "os-tenant-networks/",
    "os-virtual-interfaces/",
)
#: Single samples that wait (a block device that comes with volumes), or that no version takes: sample -> why.
WAITING_SINGLY: dict[str, str] = {
    "os-floating-ips/floating-ips-get-resp.json": "never: its id is Neutron's, and nova-network's are numbers",
    "os-floating-ips/floating-ips-list-resp.json": "never: its ids are Neutron's, and nova-network's are numbers",
    "servers/v2.32/server-create-req.json": "volumes",
    "servers/v2.42/server-create-req.json": "volumes",
    "servers/v2.67/server-create-req.json": "volumes",
    "servers/v2.90/server-create-req.json": "never: it carries personality, which its version refuses",
    "servers/v2.94/server-create-req.json": "never: it carries personality, which its version refuses",
    "os-attach-interfaces/attach-interfaces-create-req.json": "never: it names a port, and nova-network has none",
    "os-attach-interfaces/v2.49/attach-interfaces-create-req.json": "never: it names a port, and nova-network has none",
    "os-remote-consoles/get-rdp-console-post-resp.json": "never: RDP consoles are refused",
    "os-remote-consoles/v2.6/create-rdp-console-req.json": "never: RDP consoles are refused",
}
#: (end of the path, issue): parts of an answer that are empty until a later issue fills them.
EMPTY_UNTIL: tuple[tuple[str, str], ...] = (
    ("os-extended-volumes:volumes_attached", "volumes"),
    ("(body).nodes", "guests with NUMA nodes of their own"),
    ("(body).pagesize_kb", "guests with NUMA nodes of their own"),
    ("(body).console.internal_access_path", "hypervisors whose consoles are behind a server of theirs"),
)
#: Operations that never succeed in this cloud (their service is not there, or was never taken over): their code.
REFUSED: dict[str, int] = {
    "GET /os-baremetal-nodes": 501,
    "GET /os-baremetal-nodes/{node_id}": 501,
    "POST /os-baremetal-nodes": 400,
    "DELETE /os-baremetal-nodes/{node_id}": 400,
    "POST /os-baremetal-nodes/{node_id}/action#add_interface": 400,
    "POST /os-baremetal-nodes/{node_id}/action#remove_interface": 400,
    "POST /servers/{server_id}/action#os-getRDPConsole": 400,
    "GET /os-snapshots/{snapshot_id}": 404,
    "GET /os-volumes/{volume_id}": 404,
    "GET /servers/{server_id}/os-volume_attachments/{volume_id}": 404,
}
#: Operations that are refused up to a version: (that version, their code).
REFUSED_UNTIL: dict[str, tuple[int, int]] = {"GET /os-console-auth-tokens/{console_token}": (30, 400)}
#: Where a row of the contract says more than holds: operation -> patterns of what the judge says then.
SLIPS: dict[str, tuple[str, ...]] = {
    # hosts are named, the contract's rows took the sample's names of hosts for their form
    "GET /os-instance_usage_audit_log": (r"hosts_not_run\[\d+\]: .* is no uuid",),
    "GET /os-instance_usage_audit_log/{before_timestamp}": (r"hosts_not_run\[\d+\]: .* is no uuid",),
    # nova-network's addresses have numbers, the contract's rows took Neutron's samples
    **dict.fromkeys(("GET /os-floating-ips", "POST /os-floating-ips", "GET /os-floating-ips/{floating_ip_id}"),
                    (r"floating_ips?(\[\d+\])?\.id: .* is no uuid",)),
    # flags and numbers of nova-network's networks; the contract's rows took Neutron's samples, where they are null
    **dict.fromkeys(("GET /os-networks", "GET /os-networks/{network_id}"),
                    (r"\.(deleted|enable_dhcp|injected|multi_host|share_address|vlan|priority|rxtx_base): ",)),
}


def untouched() -> set[str]:
    """The operations that this cloud's scenarios leave out."""
    return {*WITHOUT_SERVICE, *(id for ids in WAITING.values() for id in ids)}


def refused(operation: str, version: int) -> int | None:
    """The code that an operation always has at a version; None for those that may succeed."""
    until, code = REFUSED_UNTIL.get(operation, (-1, 0))
    return code if version <= until else REFUSED.get(operation)


def waits(sample: str) -> str:
    """The issue a sample waits for, ``gone`` where its operation was removed for good, where else it is matched, or
    nothing."""
    folder, _, rest = sample.partition("/")
    name = f"{folder}/{rest.rsplit('/', 1)[-1]}"
    if name.startswith(GONE_SAMPLES):
        return "gone"
    if name.startswith(OLD_NETWORK_SAMPLES):
        return OLD_NETWORKS
    for issue, beginnings in WAITING_SAMPLES.items():
        if name.startswith(beginnings):
            return issue
    return WAITING_SINGLY.get(sample, "")
