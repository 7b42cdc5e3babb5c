"""Mutations of the advisories of 2011 to 2013."""

from __future__ import annotations

from tests.mutations.form import Mutation

MUTATIONS: dict[str, Mutation] = {
    "OSSA-2011-001": Mutation(
        "nova/legacy/objectstore/bundles/tarball.py",
        """    if path.is_absolute() or ".." in path.parts or "\\0" in member.name:
""", """    if path.is_absolute() or "\\0" in member.name:
"""),
    "OSSA-2012-001": Mutation(
        "nova/api/dispatch.py",
        "if project not in (None, context.project_id):", "if project not in (None, context.project_id, project):"),
    "OSSA-2012-003": Mutation(
        "nova/web/paths.py",
        'return shown if len(shown) <= LONGEST_LOGGED else f"{shown[:LONGEST_LOGGED]}..."', "return shown"),
    "OSSA-2012-005": Mutation(
        "nova/conductor/nova_network/groups.py",
        """        def write(tx: Connection) -> tuple[SecurityRule, set[str]]:
            group = rows.locked(tx, key, scope)
            if source not in (None, key):
                rows.locked(tx, source, scope)
            present = rows.rules_of(tx, key)
""", """        with self.deps.cell.reading() as before:
            present = rows.rules_of(before, key)

        def write(tx: Connection) -> tuple[SecurityRule, set[str]]:
            group = rows.locked(tx, key, scope)
            if source not in (None, key):
                rows.locked(tx, source, scope)
"""),
    "OSSA-2012-007": Mutation(
        "nova/model/network/security_rules.py",
        """    protocol = rule.protocol.lower()
    if protocol not in PROTOCOLS:
""", """    protocol = rule.protocol
    if protocol.lower() not in PROTOCOLS:
"""),
    "OSSA-2012-008": Mutation(
        "nova/virt/libvirt/disks/config_drive.py",
        'if not path.parts or path.is_absolute() or ".." in path.parts:', "if not path.parts or path.is_absolute():"),
    "OSSA-2012-009": Mutation(
        "nova/scheduler/filters/other_servers.py", "if self._last[0] is not request:", "if self._last is not request:"),
    "OSSA-2012-011": Mutation(
        "nova/virt/libvirt/disks/config_drive.py",
        "path = PurePosixPath(name)\n", 'path = PurePosixPath(name.lstrip("/"))\n'),
    "OSSA-2012-020": Mutation(
        "nova/privileged/lvm.py",
        'self._run("clear a volume", argv)', "self._runner.run(argv, ok=range(-64, 256))"),
    "OSSA-2013-001": Mutation(
        "nova/api/handlers/server_create.py", "    req.authorize(rule=ATTACH_VOLUME)\n", ""),
    "OSSA-2013-004": Mutation(
        "nova/legacy/xml/reader.py", "forbid_dtd=True", "forbid_dtd=False"),
    "OSSA-2013-006": Mutation(
        "nova/conductor/queries/consoles.py",
        "if now is None or _spot(now) != _spot(row.address):", "if now is None:"),
    "OSSA-2013-008": Mutation(
        "nova/db/network/addresses.py", "        network_quota.lock_owner(tx, project)\n", "        pass\n"),
    "OSSA-2013-010": Mutation(
        "nova/rpc/host_secret.py", "if mode & 0o077:", "if mode & 0o007:"),
    "OSSA-2013-012": Mutation(
        "nova/compute/guests/images.py",
        """            if max_gb:
                check_size(image, looked.virtual_bytes, max_gb)
""", ""),
    "OSSA-2013-019": Mutation(
        "nova/conductor/actions/create.py",
        "flavors.get(tx, order.flavor_id, Scope(project_id=project_id))", "flavors.get(tx, order.flavor_id, Scope())"),
    "OSSA-2013-020": Mutation(
        "nova/compute/filter/firewall.py", "if self._done >= mine:", "if self._done > self._came:"),
    "OSSA-2013-023": Mutation(
        "nova/api/handlers/extensions.py",
        "from nova import errors\n", "from xml.etree import ElementTree\n\nfrom nova import errors\n"),
    "OSSA-2013-024": Mutation(
        "nova/conductor/actions/resize.py",
        "flavors.get(tx, order.flavor_id, Scope(project_id=row.project_id))",
        "flavors.get(tx, order.flavor_id, Scope())"),
    "OSSA-2013-026": Mutation(
        "nova/compute/reports/host_info.py",
        'return text if len(encoded) <= CONSOLE_BYTES else encoded[-CONSOLE_BYTES:].decode(errors="ignore")',
        'return encoded.decode(errors="ignore")'),
    "OSSA-2013-029": Mutation(
        "nova/privileged/qemu_img.py",
        """                  self._limits._replace(file_bytes=max_bytes))

    @forwarded("qemu_img.fetch")""", """                  self._limits)

    @forwarded("qemu_img.fetch")"""),
    "OSSA-2013-030": Mutation(
        "nova/compute/order_execution.py",
        """                self._guard.guard(build)
            done = handle(order, work, permission)
""", """                done = handle(order, work, permission)
                self._guard.guard(build)
            else:
                done = handle(order, work, permission)
"""),
    "OSSA-2013-033": Mutation(
        "nova/conductor/hosts/guest_answers.py",
        "if row is None or projects - {row.project_id} or not", "if row is None or not"),
    "OSSA-2013-037": Mutation(
        "nova/privileged/filesystems.py",
        """    if filesystem not in COMMANDS:
        raise errors.guest.DiskFilesystem(name=filesystem, known=", ".join(sorted(COMMANDS)))
    return [*COMMANDS[filesystem], label_, path]
""", """    return [*COMMANDS.get(filesystem, (f"mkfs.{filesystem}", "-L")), label_, path]
"""),
}
