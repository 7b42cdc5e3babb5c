"""Mutations of the advisories of 2014 to 2016."""

from __future__ import annotations

from tests.mutations.form import Mutation

MUTATIONS: dict[str, Mutation] = {
    "OSSA-2014-001": Mutation(
        "nova/privileged/runner.py", "    umask = 0o077\n", "    umask = -1\n"),
    "OSSA-2014-003": Mutation(
        "nova/virt/libvirt/moves/file_transfer.py",
        "if path is not None and image_files.virtual_bytes(path) == source_files.base_size(disk.name):",
        "if path is not None:"),
    "OSSA-2014-009": Mutation(
        "nova/virt/libvirt/guest/disk_devices.py",
        """    for disk in disks:
        bus = disk.bus""", """    for disk in disks:
        if (folder / disk.name).is_file() and (folder / disk.name).read_bytes()[:3] == b"QFI":
            object.__setattr__(disk, "format", "qcow2")
        bus = disk.bus"""),
    "OSSA-2014-011": Mutation(
        "nova/legacy/ec2/actions.py",
        """        security_group_rules.authorize_security_group_ingress, f"{security_groups.RULES}:rule:create"),
""", """        security_group_rules.authorize_security_group_ingress),
"""),
    "OSSA-2014-017": Mutation(
        "nova/virt/libvirt/disks/guest_disks.py",
        """        else:
            folder.remove()

    def write_config_drive""", """        elif folder.rescue() is None:
            folder.remove()

    def write_config_drive"""),
    "OSSA-2014-024": Mutation(
        "nova/metadata/callers.py",
        "if not hmac.compare_digest(expected.encode(), signature.encode()):", "if expected != signature:"),
    "OSSA-2014-032": Mutation(
        "nova/virt/libvirt/guest/rescue.py",
        """        folder.keep_rescue(record)
        with failures.on_failure(lambda: self._give_up(order, folder, record)):
            self._make_rescue(folder, record, images)
""", """        with failures.on_failure(lambda: self._give_up(order, folder, record)):
            self._make_rescue(folder, record, images)
            folder.keep_rescue(record)
"""),
    "OSSA-2014-035": Mutation(
        "nova/virt/libvirt/guest/serial_ports.py",
        """            with self._lock:
                yield self._ports(settings, server_uuid, count)
""", """            yield self._ports(settings, server_uuid, count)
"""),
    "OSSA-2014-036": Mutation(
        "nova/model/host/services.py",
        """        return f"<Registration of {self.binary} on {self.host}>"
""", """        return f"<Registration of {self.binary} on {self.host}, {self.secret}>"
"""),
    "OSSA-2014-037": Mutation(
        "nova/conductor/actions/delete.py",
        "(op.server.host, *(op.asked(Arguments).hosts or ()), *op.progress.claimed)",
        "(op.server.host, *(op.asked(Arguments).hosts or ()))"),
    "OSSA-2014-038": Mutation(
        "nova/conductor/queries/servers.py",
        "if self._matching[project] >= MATCHED_AT_ONCE:", "if self._matching[project] < 0:"),
    "OSSA-2015-005": Mutation(
        "nova/console/origins.py",
        "if _plain(scheme) != _plain(wanted):", "if not _plain(scheme):"),
    "OSSA-2015-015": Mutation(
        "nova/compute/guests/cold_moves.py",
        "with concurrency.cancellable(work.check):", "with contextlib.nullcontext():"),
    "OSSA-2015-017": Mutation(
        "nova/conductor/steps/placement.py",
        "        ledger.raise_epochs(tx, epochs)\n", ""),
    "OSSA-2015-021": Mutation(
        "nova/conductor/nova_network/groups.py",
        """            return rows.rule(tx, rows.insert_rule(tx, wanted)), rows.hosts_of(tx, [key])
""", """            return rows.rule(tx, rows.insert_rule(tx, wanted)), set()
"""),
    "OSSA-2016-001": Mutation(
        "nova/virt/libvirt/guest/snapshots.py",
        "self.images.convert(ImageFile(source, plan.root.format, plan.root.backing or \"\"),",
        "guessed = \"qcow2\" if Path(source).read_bytes()[:3] == b\"QFI\" else plan.root.format\n"
        "                self.images.convert(ImageFile(source, guessed, plan.root.backing or \"\"),"),
    "OSSA-2016-002": Mutation(
        "nova/model/volumes.py",
        """        return f"VolumeConnection(kind={self.kind!r}, data=***)"
""", """        return f"VolumeConnection(kind={self.kind!r}, data={self.data})"
"""),
    "OSSA-2016-007": Mutation(
        "nova/virt/libvirt/disks/header.py",
        "if found[1] >= 3 and struct.unpack_from(\">Q\", start, FEATURES_AT)[0] & EXTERNAL_DATA:", "if found[1] < 2:"),
    "OSSA-2016-011": Mutation(
        "nova/compute/guests/lifecycle.py",
        """        if not keep_disks:
            self.forget(server_uuid)
""", ""),
    "OSSA-2016-012": Mutation(
        "nova/privileged/qemu_img.py",
        'limits = [f"--cpu={self.cpu_s}", f"--as={self.memory_mb << 20}", "--core=0"]',
        'limits = [f"--cpu={self.cpu_s}", "--core=0"]'),
}
