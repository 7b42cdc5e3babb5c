"""Mutations of security notes, and of bugs without an advisory."""

from __future__ import annotations

from tests.mutations.form import Mutation

MUTATIONS: dict[str, Mutation] = {
    "OSSN-0007": Mutation(
        "nova/migrationproxy/process.py",
        "if not hmac.compare_digest(given[:-1], self._secret):", "if not given[:-1]:"),
    "OSSN-0008": Mutation(
        "nova/console/sessions.py",
        "            if self._counts[key] - gained[key] >= allowed:\n",
        '            if key[0] != "server" and self._counts[key] - gained[key] >= allowed:\n'),
    "OSSN-0011": Mutation(
        "nova/conductor/nova_network/groups.py",
        """            if source not in (None, key):
                rows.locked(tx, source, scope)
""", ""),
    "OSSN-0018": Mutation(
        "nova/network/firewall.py",
        '    yield f"-s {network.cidr} {bridge} -j {options.iptables_drop_action}"\n', ""),
    "OSSN-0020": Mutation(
        "nova/network/floating.py",
        "            self._end_connections(address, old.fixed)\n", "            LOG.debug(address)\n"),
    "OSSN-0022": Mutation(
        "nova/compute/reconcile.py",
        "            self._managers.guard.guard(msgspec.structs.replace(order, firewall=None))\n", ""),
    "OSSN-0026": Mutation(
        "nova/manage/doctor/__init__.py", "if found.st_mode & 0o022 and not", "if found.st_mode & 0o002 and not"),
    "OSSN-0027": Mutation(
        "nova/compute/filter/frame_rules.py",
        'yield f"-p IPv4 --ip-src {address} -j RETURN" if address.version == 4 else \\\n',
        'yield "-p IPv4 -j RETURN" if address.version == 4 else \\\n'),
    "OSSN-0028": Mutation(
        "nova/virt/libvirt/guest/definition.py", "serial=host.serial_of(order.server_uuid)", "serial=host.release",
        spreads=("unit/virt/libvirt/test_guest_xml.py::test_guest_becomes_the_golden_xml",),
        why="The golden definition has all of it, the number too."),
    "OSSN-0033": Mutation(
        "nova/clients/vendordata.py",
        "verify=self._options.certificates or True", "verify=self._options.certificates or False"),
    "OSSN-0044": Mutation(
        "nova/console/app.py",
        'return PageAnswer(200, HTML, [own_pages.with_session(page, path.count("/"))], (SECRET,))',
        'cookie = ("Set-Cookie", f"token={token}")\n'
        '        return PageAnswer(200, HTML, [own_pages.with_session(page, path.count("/"))], (SECRET, cookie))'),
    "OSSN-0049": Mutation(
        "nova/compute/guests/lifecycle.py",
        "        build = Build(order, self._tools, work, permission)\n",
        '        LOG.debug("its password: %s", order.admin_password)\n'
        "        build = Build(order, self._tools, work, permission)\n"),
    "OSSN-0063": Mutation(
        "nova/clients/session.py",
        "token = context.current().token if as_user else None",
        'token = vars(self).setdefault("kept", context.current().token) if as_user else None'),
    "OSSN-0069": Mutation(
        "nova/privileged/files.py",
        '"disable_ipv6", "0" if on else "1")', '"disable_ipv6", "0")'),
    "OSSN-0079": Mutation(
        "nova/privileged/disk_exports.py",
        """    return hashlib.sha256(f"name {secret}".encode()).hexdigest()[:32]
""", """    return secret
"""),
    "OSSN-0089": Mutation(
        "nova/migrationproxy/process.py",
        "        self._tls.load_verify_locations(cadata=plan.certificate)\n",
        "        self._tls.verify_mode = ssl.VerifyMode(0)\n"),
    "OSSN-0094": Mutation(
        "nova/conductor/actions/volume/volume_swaps.py",
        "    if old.migration_status in NOT_MOVED:\n", "    if old.migration_status in NOT_MOVED[:0]:\n"),
    "OSSN-0101": Mutation(
        "nova/console/origins.py",
        "    wanted, _ = _split(access_url_base)",
        "    if isinstance(allowed, list):\n        allowed.append(own)\n    wanted, _ = _split(access_url_base)"),
    "CVE-2011-3147": Mutation(
        "nova/imageinspector/__init__.py",
        """        return Inspected(formats=names, unsafe=f"it may not be opened safely""",
        """        if "backing_file" not in error.failures:
            return Inspected(formats=names, unsafe=f"it may not be opened safely"""),
    "CVE-2022-37394": Mutation(
        "nova/virt/libvirt/vifs/__init__.py",
        """        with contextlib.suppress(errors.HostRefused):
            found.append(record(interface))
""", """        found.append(record(interface))
"""),
    "CVE-2015-2687": Mutation(
        "nova/virt/libvirt/xml/arrival.py",
        'and disk.find("source") is not None and remote_of(disk) is None)', 'and disk.find("source") is not None)'),
    "CVE-2013-6491": Mutation(
        "nova/rpc/transport.py",
        "            conf.set_default(name, value, group=RABBIT)\n",
        "            conf.set_default(name, value, group=RABBIT)\n"
        '    conf.set_override("ssl", False, group=RABBIT)\n'),
}
