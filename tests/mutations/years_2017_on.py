"""Mutations of the advisories from 2017 on."""

from __future__ import annotations

from tests.mutations.form import Mutation

MUTATIONS: dict[str, Mutation] = {
    "OSSA-2017-002": Mutation(
        "nova/notifications/facts.py",
        '"".join(traceback.format_exception(error))',
        '"".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())'),
    "OSSA-2017-005": Mutation(
        "nova/conductor/actions/rebuild.py",
        """        if selection.hosts:
            return {}
        return no_valid_host(op, selection)
""", """        return {}
"""),
    "OSSA-2017-006": Mutation(
        "nova/conductor/actions/rebuild.py",
        "asked, resources=NOTHING, requirements=_traits_alone(asked.requirements), host=op.server.host,",
        "asked, requirements=_traits_alone(asked.requirements), host=op.server.host,"),
    "OSSA-2018-001": Mutation(
        "nova/conductor/actions/volume/volume_swaps.py",
        '''len(old.attachments) > 1,
        "encrypted volumes cannot be copied": old.encrypted or new.encrypted}
''', '''len(old.attachments) > 1}
'''),
    "OSSA-2019-003": Mutation(
        "nova/api/views/servers.py", "if fault.details and with_details:", "if fault.details:"),
    "OSSA-2020-001": Mutation(
        "nova/console/masking.py", '_SECRETS.sub("***", text)', "text"),
    "OSSA-2020-003": Mutation(
        "nova/legacy/signatures/ec2_query.py",
        'return check_age(iso_time(needed(parameters, "Timestamp"), "Timestamp"), now, "Timestamp", skew_s)',
        'return iso_time(needed(parameters, "Timestamp"), "Timestamp")'),
    "OSSA-2020-004": Mutation(
        "nova/legacy/signatures/signers.py",
        '"roles": tuple(role["name"] for role in roles), "token": found.token}',
        '"roles": vars(context_fields).setdefault(user["id"], tuple(role["name"] for role in roles)),\n'
        '                "token": found.token}'),
    "OSSA-2020-006": Mutation(
        "nova/virt/libvirt/moves/live.py",
        """        self.definer.define(order.build)
        self.pooled.own(folder)
""", """        self.pooled.own(folder)
"""),
    "OSSA-2021-002": Mutation(
        "nova/console/app.py", 'if full.startswith("//") or "\\\\" in full:', 'if "\\\\" in full:'),
    "OSSA-2023-002": Mutation(
        "nova/imageinspector/__init__.py",
        """        return Inspected(formats=names, unsafe=f"it may not be opened safely""",
        """        if "descriptor" not in error.failures:
            return Inspected(formats=names, unsafe=f"it may not be opened safely"""),
    "OSSA-2023-003": Mutation(
        "nova/virt/libvirt/volumes/brick.py",
        "if other.path == record.path or (mine.identity and mine.identity == theirs.identity):",
        "if theirs is mine:"),
    "OSSA-2024-001": Mutation(
        "nova/imageinspector/__init__.py",
        """        return Inspected(formats=names, unsafe=f"it may not be opened safely""",
        """        if "data_file" not in error.failures:
            return Inspected(formats=names, unsafe=f"it may not be opened safely"""),
    "OSSA-2024-002": Mutation(
        "nova/compute/guests/image_format.py",
        '    "raw": frozenset({RAW, PARTITIONED}),\n',
        '    "raw": frozenset({RAW, PARTITIONED, frozenset({"qcow2"})}),\n'),
    "OSSA-2025-002": Mutation(
        "nova/devel/identity/ec2_credentials.py",
        "return bool(call.caller.roles & tokens.VALIDATORS)", "return bool(call.caller.roles)"),
    "OSSA-2026-002": Mutation(
        "nova/privileged/qemu_img.py",
        '["qemu-img", "resize", "-q", "-f", disk.format, disk.path, str(size_bytes)]',
        '["qemu-img", "resize", "-q", disk.path, str(size_bytes)]'),
    "OSSA-2026-005": Mutation(
        "nova/devel/identity/ec2_credentials.py",
        "return not call.caller.restricted", "return bool(call.caller.user_id)"),
    "OSSA-2026-022": Mutation(
        "nova/conductor/steps/placement.py",
        "availability_zone=server.pinned_availability_zone, host=asked.host, node=asked.node,",
        'availability_zone=server.pinned_availability_zone, node=asked.node,\n'
        '        host=asked.host or (server.scheduler_hints or {}).get("host"),'),
}
