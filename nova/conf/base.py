"""``[DEFAULT]``: options that every daemon reads."""

from __future__ import annotations

import datetime
import socket

from oslo_config import cfg

from nova.conf._span import TimeSpan
from nova.conf._urls import BrokerUrl

GROUP = "DEFAULT"

OPTS = [
    cfg.HostDomainOpt("host", default=socket.gethostname(), sample_default="<current_hostname>",
                      help="Name of this host in RPC topics, services and servers' hosts. Never change it on a "
                           "compute host that has servers."),
    cfg.HostAddressOpt("my_ip", default="127.0.0.1", sample_default="<host_ipv4>",
                       help="Address at which other hosts, and guests through DNAT, reach this host."),
    cfg.StrOpt("state_path", default="/var/lib/nova", help="Directory of daemons' persistent state."),
    cfg.StrOpt("rootwrap_config", default="/etc/nova/rootwrap.conf",
               help="Configuration file of nova-rootwrap, with which nova-compute and nova-network start their "
                    "privileged helper if nova-privileged is not installed: sudo nova-rootwrap FILE privsep-helper "
                    "..."),
    cfg.Opt("hosts_transport_url", type=BrokerUrl(more=("local",)), secret=True,
               help="URL of the vhost for messages between hosts and conductors: "
                    "rabbit://USER:PASSWORD@BROKER:5672/nova-hosts. nova-conductor has a user with all rights there. "
                    "Each host has its own user, with the rights that 'nova-manage host rights NAME' prints. "
                    "nova-compute, nova-network and the metadata service need it, and need no transport_url. Without "
                    "it and the other options of bounded mode, hosts and conductors use transport_url: see 'Security "
                    "modes' in doc/security.rst."),
    cfg.IntOpt("long_rpc_timeout", default=1800, min=1,
               help="Seconds allowed for the longest orders to hosts. A host that dies meanwhile is detected after "
                    "long_rpc_silence."),
    cfg.IntOpt("long_rpc_silence", default=30, min=2,
               help="Seconds without a message from a host during such an order after which the host counts as dead. "
                    "Hosts send two keepalive messages in that time."),
    cfg.IntOpt("report_interval", default=30, min=1,
               help="Seconds between two heartbeats of a daemon. Upstream's default is 10. Conductors write "
                    "heartbeats to the database in batches; 30 keeps the load of 10,000 hosts low."),
    cfg.IntOpt("service_down_time", default=90, min=1,
               help="Seconds without a heartbeat after which a daemon counts as down (upstream: 60)."),
    cfg.BoolOpt("enable_new_services", default=True,
                help="Enable the nova-compute of a host that registers for the first time. Off: it is disabled until "
                     "'openstack compute service set --enable'. Read by nova-conductor."),
    cfg.IntOpt("graceful_shutdown_timeout", default=60, min=0, deprecated_name="manager_shutdown_timeout",
               help="Seconds that a daemon may take to finish its work after SIGTERM before it exits."),
    cfg.StrOpt("default_availability_zone", default="nova",
               help="Availability zone of compute hosts that are in no other zone."),
    cfg.StrOpt("internal_service_availability_zone", default="internal",
               help="Availability zone shown for control daemons."),
    cfg.StrOpt("default_schedule_zone", help="Availability zone of servers that request none. Empty: any zone."),
    cfg.StrOpt("instance_name_template", default="instance-%08x",
               help="Guest names on the hypervisor, built from the server's internal id (or %(uuid)s). Never change "
                    "it while there are servers."),
    cfg.IntOpt("shutdown_timeout", default=60, min=0,
               help="Seconds that a guest has to power itself off before it is stopped."),
    cfg.BoolOpt("allow_resize_to_same_host", default=False,
                help="Allow a resize to keep the server on its host if the scheduler selects it."),
    cfg.BoolOpt("force_config_drive", default=False, help="Give every new server a config drive."),
    cfg.Opt("deleted_retention", type=TimeSpan(), default=datetime.timedelta(days=30), sample_default="30",
            help="How long deleted servers stay listed. Then small background batches remove their rows, and other "
                 "rows that ended as long ago: see 'Old rows' in doc/operating.rst. 0: they stay until 'nova-manage "
                 "db purge'."),
]
