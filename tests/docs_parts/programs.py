"""What the man pages say beside what the command lines say themselves: a row a program."""

from __future__ import annotations

#: Of options there is one list for all programs.
CONF = "/etc/nova/nova.conf"
SAMPLE = "Options of all daemons. `share/nova/etc/nova/nova.conf.sample` has all of them with their meaning. The " \
         "variable `OS_NOVA_CONFIG_DIR` names another folder in place of `/etc/nova`."
#: path -> what it is for, for a daemon; ``{name}`` is the program's.
FILES = {CONF: SAMPLE,
         "/etc/nova/{name}.conf": "Options of this daemon alone. It is read after `nova.conf`, where it is there.",
         "/var/lib/nova": "What survives a restart (`[DEFAULT]state_path`).",
         "/var/log/nova/{name}.log": "The log, where `[DEFAULT]log_dir` is `/var/log/nova`. Else log lines go to "
                                     "standard error, and so to the journal of systemd."}
SECRET = "The URLs of the databases and the conductors' keys. Mode 0600: only its owner and root may read it."
POLICY = {"/etc/nova/policy.yaml": "Changes to the access rules (`[oslo_policy]policy_file`)."}
HOST = {"/var/lib/nova/host_token": "What enrols this host: `nova-manage host enroll` prints it. The daemon takes it "
                                    "at its start."}
#: program -> the same, where it differs.
OWN_FILES = {
    "nova-all": {"nova.conf": "What differs from the defaults, in the folder of `--state`. It is written at each "
                              "start.",
                 "nova-all.log": "The log of all parts, in the same folder."},
    "nova-api": {**FILES, **POLICY, **HOST},
    "nova-api-ec2": {**FILES, **POLICY},
    "nova-api-metadata": {**FILES, **HOST},
    "nova-api-os-compute": {**FILES, **POLICY},
    "nova-compute": {**FILES, **HOST, "/var/lib/nova/instances": "Disks of the guests (`[DEFAULT]instances_path`)."},
    "nova-conductor": {CONF: SAMPLE, "/etc/nova/nova-conductor.conf": SECRET,
                       "/var/log/nova/nova-conductor.log": FILES["/var/log/nova/{name}.log"]},
    "nova-dhcpbridge": {"/var/lib/nova/networks": "Where leases wait for nova-network (`[DEFAULT]networks_path`)."},
    "nova-manage": {CONF: SAMPLE, "/etc/nova/nova-conductor.conf": SECRET},
    "nova-network": {**FILES, **HOST},
    "nova-policy": {CONF: SAMPLE, **POLICY},
    "nova-status": {CONF: SAMPLE, "/etc/nova/nova-conductor.conf": SECRET},
}
_DAEMON = {"0": "It was asked to stop.", "1": "It could not start. The last line of the log says why.",
           "2": "The command line or the configuration is wrong."}
#: program -> exit status -> what it means; ``daemon`` and ``proxy`` are for the others.
EXIT = {
    "daemon": _DAEMON,
    "proxy": {**_DAEMON, "255": "There is no certificate for `ssl_only`, or `web` names no folder."},
    "nova-all": _DAEMON,
    "nova-dhcpbridge": {"0": "Always, when dnsmasq called it: a guest's address does not depend on nova-network.",
                        "2": "It was not called as dnsmasq calls it."},
    "nova-manage": {"0": "Done.", "1": "Something is wrong; `db archive_deleted_rows`: some are archived, repeat it.",
                    "2": "The command line is wrong, or no command was named.",
                    "3": "There was nothing to do (`db purge`, `cleanup drop`, `x509 revoke`)."},
    "nova-policy": {"0": "All rules that were named pass, or none was named.", "1": "Some of them do not pass.",
                    "2": "The command line, the configuration or the policy file is wrong."},
    "nova-status": {"0": "All is well; the daemon is healthy (`health`).",
                    "1": "There is a warning; the daemon is not healthy, and one line says why (`health`).",
                    "2": "There is a failure, or the configuration is wrong.", "255": "It could not look."},
}
_BUS = "It knows no database: it asks `nova-conductor` over the broker (`[DEFAULT]transport_url`)."
_HOSTS_BUS = "It knows no database and no password of the cloud's: it speaks with `nova-conductor` over the broker " \
             "(`[DEFAULT]hosts_transport_url`), as the host that `nova-manage host enroll` enrolled."
_PROXY = ("`nova-consoleauth` checks the token of each console, and names the host where the guest is.",)
#: program -> paragraphs of its description.
ABOUT: dict[str, tuple[str, ...]] = {
    "nova-all": ("It is for who writes or tries clients, and for who wants to look. It is not for a cloud that "
                 "somebody relies on: its Keystone and its Glance are small fakes, and one process has all keys.",),
    "nova-api": ("It serves the APIs that `[DEFAULT]enabled_apis` names: the compute API on port 8774, the metadata "
                 "service on port 8775 and, where it is named, the EC2 API on port 8773. Each can be a daemon of its "
                 "own in place of it: `nova-api-os-compute`, `nova-api-metadata` and `nova-api-ec2`.", _BUS),
    "nova-api-ec2": ("It listens on port 8773 for clients of Amazon's dialect, such as `aws ec2`. Keystone checks "
                     "their signatures. It runs beside `nova-api`, unless that serves `ec2` itself.", _BUS),
    "nova-api-metadata": ("Guests ask it at 169.254.169.254 who they are. It listens on port 8775. It takes the place "
                          "of a part of `nova-api`: a host runs one of the two.", _HOSTS_BUS),
    "nova-api-os-compute": ("It listens on port 8774. It takes the place of a part of `nova-api`: a host runs one of "
                            "the two.", _BUS),
    "nova-cert": ("It makes and revokes users' certificates, and decrypts what was encrypted with the cloud's. "
                  "Projects' VPN servers need it, too. It runs on one host. It keeps the keys of the certificate "
                  "authorities (`[DEFAULT]ca_path`, `keys_path`) there: have them in a backup. `nova-manage x509 "
                  "revoke` revokes.", _BUS),
    "nova-compute": ("It makes guests by libvirt, starts, stops and moves them, and gives images, networks and "
                     "consoles to them. Guests run on while it does not. It runs as the user nova: what root "
                     "alone may, `nova-privileged` does for it.", _HOSTS_BUS),
    "nova-conductor": ("Every long operation is a row in the database. When a conductor dies, another one goes on "
                       "where it stopped, so several may run. They are the only daemons that know the databases, and "
                       "they have a user of their own.",),
    "nova-consoleauth": ("It keeps nothing, so several may run. While none runs, consoles that are open go on, and new "
                         "ones do not open.", _BUS),
    "nova-dhcpbridge": ("nova-network tells dnsmasq to call this program. People do not call it. "
                        "`NOVA_NETWORKS_PATH` and `NETWORK_ID` must be in its environment.",
                        "A lease is written to a file first. Then nova-network on this host is told to look. While "
                        "that is down the file waits for its next start. `init` prints the leases of the network "
                        "`NETWORK_ID`, as nova-network knows them."),
    "nova-imageproxy": ("A ticket is good for one image and one host. So hosts need no password of Glance's. It "
                        "listens on port 9293. It knows neither the broker nor a database: it has the key of the "
                        "tickets (`[image_proxy]key`) and the credentials for Glance.",),
    "nova-manage": ("Commands that need the databases read their URLs from `nova-conductor.conf` beside `nova.conf`: "
                    "run them where a conductor runs. Other commands ask `nova-conductor` over the broker.",
                    "`nova-manage doctor` tells what is wrong, and what to do about it. Some commands of older "
                    "releases have nothing to do here: they say so."),
    "nova-network": ("It makes bridges, VLANs, firewall rules and floating addresses, and runs dnsmasq. They stay "
                     "while it does not run. It runs as the user nova: what root alone may, `nova-privileged` does "
                     "for it. Where networks are Neutron's it is not needed.",
                     _HOSTS_BUS),
    "nova-novncproxy": _PROXY,
    "nova-objectstore": ("It is a small S3 on files, for image bundles and other objects of projects. It listens on "
                         "port 3333. Keystone checks signatures for it. It runs on one host, which has the objects "
                         "(`[DEFAULT]buckets_path`). It makes images of bundles: for that it asks nova-cert over the "
                         "broker, and needs credentials for Glance.", _BUS),
    "nova-placement-api": ("It listens on port 8778. Servers come and go without it: it is for people and programs "
                           "that look at what hosts have and who holds it.", _BUS),
    "nova-policy": ("It reads the defaults of the access rules from the code, and changes to them from "
                    "`policy.yaml`. Credentials can stand before or behind the words of a command, or in the variables "
                    "that the options name.",),
    "nova-privileged": ("It runs as root, and listens on a unix socket (`[privileged]socket`) for processes of root "
                        "and of one user (`[privileged]user`). It does what is in its table and nothing else: each "
                        "argument of a call is checked, and paths lie below the folders that its own `nova.conf` "
                        "names. When that file changes, start it anew. Where it does not run, nova-compute and "
                        "nova-network start the same helper by `sudo nova-rootwrap`; as root they need none.",),
    "nova-scheduler": ("It chooses a host for each server: filters say which hosts can have it, weighers which of "
                       "these is the best. It knows all hosts from what they report. Several may run.", _BUS),
    "nova-serialproxy": _PROXY,
    "nova-spicehtml5proxy": _PROXY,
    "nova-status": ("It looks, and changes nothing. `upgrade check` looks at the databases and the configuration: run "
                    "it where `nova-conductor.conf` is. `health` asks one daemon of this machine: it is for the health "
                    "checks of containers.",),
    "nova-xvpvncproxy": _PROXY,
}
_CONSOLES = ("nova-consoleauth", "nova-manage")
#: program -> those that one reads next.
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
