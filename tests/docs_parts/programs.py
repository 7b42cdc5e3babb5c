"""Texts of the man pages that are not in the command lines: one row for each program."""

from __future__ import annotations

#: All programs read the same file of options.
CONF = "/etc/nova/nova.conf"
SAMPLE = "Options of all daemons. `share/nova/etc/nova/nova.conf.sample` describes all options. The variable " \
         "`OS_NOVA_CONFIG_DIR` names another folder instead of `/etc/nova`."
#: path -> its purpose, for a daemon; ``{name}`` is the program's.
FILES = {CONF: SAMPLE,
         "/etc/nova/{name}.conf": "Options of this daemon only. If the file exists, it is read after `nova.conf`.",
         "/var/lib/nova": "State that survives a restart (`[DEFAULT]state_path`).",
         "/var/log/nova/{name}.log": "The log, if `[DEFAULT]log_dir` is `/var/log/nova`. Otherwise log lines go to "
                                     "standard error, and so to the journal of systemd."}
SECRET = "The URLs of the databases and the conductors' keys. Mode 0600: only its owner and root may read it."
POLICY = {"/etc/nova/policy.yaml": "Changes to the access rules (`[oslo_policy]policy_file`)."}
HOST = {"/var/lib/nova/host_token": "The enrolment token of this host, from `nova-manage host enroll`. The daemon "
                                    "reads it at its start."}
#: program -> its files, if they differ.
OWN_FILES = {
    "nova-all": {"nova.conf": "Options that differ from the defaults, in the folder of `--state`. Each start writes "
                              "it again.",
                 "nova-all.log": "The log of all services, in the same folder."},
    "nova-api": {**FILES, **POLICY, **HOST},
    "nova-api-ec2": {**FILES, **POLICY},
    "nova-api-metadata": {**FILES, **HOST},
    "nova-api-os-compute": {**FILES, **POLICY},
    "nova-compute": {**FILES, **HOST, "/var/lib/nova/instances": "Disks of the guests (`[DEFAULT]instances_path`)."},
    "nova-conductor": {CONF: SAMPLE, "/etc/nova/nova-conductor.conf": SECRET,
                       "/var/log/nova/nova-conductor.log": FILES["/var/log/nova/{name}.log"]},
    "nova-dhcpbridge": {"/var/lib/nova/networks": "Leases that nova-network will read (`[DEFAULT]networks_path`)."},
    "nova-manage": {CONF: SAMPLE, "/etc/nova/nova-conductor.conf": SECRET},
    "nova-network": {**FILES, **HOST},
    "nova-policy": {CONF: SAMPLE, **POLICY},
    "nova-status": {CONF: SAMPLE, "/etc/nova/nova-conductor.conf": SECRET},
}
_DAEMON = {"0": "The daemon was stopped.", "1": "The daemon could not start. The last line of the log has the reason.",
           "2": "The command line or the configuration is wrong."}
#: program -> exit status -> its meaning; ``daemon`` and ``proxy`` are for programs without an entry.
EXIT = {
    "daemon": _DAEMON,
    "proxy": {**_DAEMON, "255": "The certificate for `ssl_only` is missing, or `web` is not a folder."},
    "nova-all": _DAEMON,
    "nova-dhcpbridge": {"0": "Always, if dnsmasq called it: a guest's address does not depend on nova-network.",
                        "2": "The arguments or the environment are not the ones that dnsmasq uses."},
    "nova-manage": {"0": "Success.", "1": "The command failed; `db archive_deleted_rows`: some rows were archived, "
                                          "run it again.",
                    "2": "The command line is wrong, or has no command.",
                    "3": "There was nothing to do (`db purge`, `cleanup drop`, `x509 revoke`)."},
    "nova-policy": {"0": "All given rules pass, or no rule was given.", "1": "Some of the given rules do not pass.",
                    "2": "The command line, the configuration or the policy file is wrong."},
    "nova-status": {"0": "All checks passed; the daemon is healthy (`health`).",
                    "1": "A check has a warning; the daemon is not healthy, and one line has the reason (`health`).",
                    "2": "A check failed, or the configuration is wrong.", "255": "The checks could not run."},
}
_BUS = "It has no access to the databases: it calls `nova-conductor` over the broker (`[DEFAULT]transport_url`)."
_HOSTS_BUS = "It has no database access and no password of the cloud: it calls `nova-conductor` over the broker " \
             "(`[DEFAULT]hosts_transport_url`), as the host that `nova-manage host enroll` enrolled."
_PROXY = ("`nova-consoleauth` validates the token of each console, and returns the guest's host.",)
#: program -> paragraphs of its description.
ABOUT: dict[str, tuple[str, ...]] = {
    "nova-all": ("It is for developers and tests of clients, and for a first look at nova. Do not use it in "
                 "production: its Keystone and its Glance are small fakes, and one process has all keys.",),
    "nova-api": ("It serves the APIs in `[DEFAULT]enabled_apis`: the compute API on port 8774, the metadata "
                 "service on port 8775 and, if it is enabled, the EC2 API on port 8773. Separate daemons can serve "
                 "each of them instead: `nova-api-os-compute`, `nova-api-metadata` and `nova-api-ec2`.", _BUS),
    "nova-api-ec2": ("It listens on port 8773 for clients of Amazon's dialect, such as `aws ec2`. Keystone checks "
                     "their signatures. It runs next to `nova-api`, unless `nova-api` serves `ec2` itself.", _BUS),
    "nova-api-metadata": ("Guests get their metadata from it at 169.254.169.254. It listens on port 8775. It replaces "
                          "a part of `nova-api`: a host runs one of the two.", _HOSTS_BUS),
    "nova-api-os-compute": ("It listens on port 8774. It replaces a part of `nova-api`: a host runs one of the two.",
                            _BUS),
    "nova-cert": ("It creates and revokes users' certificates, and decrypts data that was encrypted with the cloud's. "
                  "Projects' VPN servers need it, too. It runs on one host. It keeps the keys of the certificate "
                  "authorities (`[DEFAULT]ca_path`, `keys_path`) there: include them in backups. `nova-manage x509 "
                  "revoke` revokes certificates.", _BUS),
    "nova-compute": ("It creates guests with libvirt; it starts, stops and moves them, and provides their images, "
                     "networks and consoles. Guests keep running while it is stopped. It runs as the user nova; "
                     "`nova-privileged` does the work that needs root.", _HOSTS_BUS),
    "nova-conductor": ("Every long operation is a row in the database. When a conductor dies, another one continues "
                       "where it stopped, so several may run. They are the only daemons with access to the databases, "
                       "and they have a user of their own.",),
    "nova-consoleauth": ("It is stateless, so several may run. While none runs, open consoles continue to work, but "
                         "new ones do not open.", _BUS),
    "nova-dhcpbridge": ("dnsmasq calls this program for nova-network. Users do not call it. "
                        "`NOVA_NETWORKS_PATH` and `NETWORK_ID` must be in its environment.",
                        "It writes a lease to a file, and then notifies nova-network on this host. If nova-network is "
                        "down, it reads the file at its next start. `init` prints the leases of the network "
                        "`NETWORK_ID` that nova-network has."),
    "nova-imageproxy": ("A ticket is valid for one image and one host, so hosts need no password of Glance. It "
                        "listens on port 9293. It uses neither the broker nor a database: it has the key of the "
                        "tickets (`[image_proxy]key`) and the credentials for Glance.",),
    "nova-manage": ("Commands that need the databases read their URLs from `nova-conductor.conf` next to `nova.conf`: "
                    "run them on the host of a conductor. Other commands call `nova-conductor` over the broker.",
                    "`nova-manage doctor` reports problems and their remedies. Some commands of older releases have no "
                    "effect here, and print this."),
    "nova-network": ("It creates bridges, VLANs, firewall rules and floating addresses, and runs dnsmasq. They stay "
                     "active while it is stopped. It runs as the user nova; `nova-privileged` does the work that needs "
                     "root. Clouds with Neutron do not need it.",
                     _HOSTS_BUS),
    "nova-novncproxy": _PROXY,
    "nova-objectstore": ("It is a small S3 on files, for image bundles and other objects of projects. It listens on "
                         "port 3333. Keystone checks signatures for it. It runs on one host, which has the objects "
                         "(`[DEFAULT]buckets_path`). It creates images from bundles: for this it calls nova-cert over "
                         "the broker, and needs credentials for Glance.", _BUS),
    "nova-placement-api": ("It listens on port 8778. Servers do not need it: it is for users and programs that read "
                           "the inventory and the allocations of hosts.", _BUS),
    "nova-policy": ("It reads the defaults of the access rules from the code, and changes to them from "
                    "`policy.yaml`. Credentials can precede or follow the words of a command, or be set in the "
                    "variables that the options name.",),
    "nova-privileged": ("It runs as root, and listens on a unix socket (`[privileged]socket`) for processes of root "
                        "and of one user (`[privileged]user`). It performs only the operations in its table: each "
                        "argument of a call is checked, and paths must be below the folders in its own `nova.conf`. "
                        "Restart it when this file changes. If it does not run, nova-compute and nova-network start "
                        "the same helper by `sudo nova-rootwrap`; as root they do not need a helper.",),
    "nova-scheduler": ("It selects a host for each server: filters reject unsuitable hosts, weighers rank the other "
                       "ones. Its data about hosts is from their reports. Several may run.", _BUS),
    "nova-serialproxy": _PROXY,
    "nova-spicehtml5proxy": _PROXY,
    "nova-status": ("It only reads. `upgrade check` checks the databases and the configuration: run it on a host with "
                    "`nova-conductor.conf`. `health` checks one daemon of this machine: it is for the health checks of "
                    "containers.",),
    "nova-xvpvncproxy": _PROXY,
}
_CONSOLES = ("nova-consoleauth", "nova-manage")
#: program -> related programs for SEE ALSO.
SEE: dict[str, tuple[str, ...]] = {
    "nova-all": ("nova-api", "nova-compute", "nova-conductor"),
    "nova-api": ("nova-api-ec2", "nova-api-metadata", "nova-api-os-compute", "nova-conductor", "nova-manage",
                 "nova-policy"),
    "nova-api-ec2": ("nova-api", "nova-conductor", "nova-manage", "nova-policy"),
    "nova-api-metadata": ("nova-api", "nova-conductor", "nova-manage", "nova-network"),
    "nova-api-os-compute": ("nova-api", "nova-conductor", "nova-manage", "nova-policy"),
    "nova-cert": ("nova-conductor", "nova-manage", "nova-network"),
    "nova-compute": ("nova-conductor", "nova-imageproxy", "nova-manage", "nova-network", "nova-privileged"),
    "nova-conductor": ("nova-api", "nova-compute", "nova-manage", "nova-scheduler", "nova-status"),
    "nova-consoleauth": ("nova-manage", "nova-novncproxy", "nova-serialproxy", "nova-spicehtml5proxy"),
    "nova-dhcpbridge": ("nova-network",),
    "nova-imageproxy": ("nova-compute", "nova-conductor", "nova-manage"),
    "nova-manage": ("nova-conductor", "nova-policy", "nova-status"),
    "nova-network": ("nova-api-metadata", "nova-conductor", "nova-dhcpbridge", "nova-manage",
                     "nova-privileged"),
    "nova-novncproxy": _CONSOLES,
    "nova-objectstore": ("nova-api", "nova-manage"),
    "nova-placement-api": ("nova-api", "nova-conductor", "nova-manage"),
    "nova-policy": ("nova-api", "nova-manage"),
    "nova-privileged": ("nova-compute", "nova-manage", "nova-network"),
    "nova-scheduler": ("nova-compute", "nova-conductor", "nova-manage"),
    "nova-serialproxy": _CONSOLES,
    "nova-spicehtml5proxy": _CONSOLES,
    "nova-status": ("nova-conductor", "nova-manage"),
    "nova-xvpvncproxy": _CONSOLES,
}
