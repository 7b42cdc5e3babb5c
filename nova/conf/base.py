"""``[DEFAULT]``: what every daemon reads."""

from __future__ import annotations

import datetime
import socket
from typing import Any

from oslo_config import cfg

from nova.conf._span import TimeSpan
from nova.conf._urls import BrokerUrl

#: A section of nova.conf, or all of it: oslo.config gives options as attributes, without types.
Options = Any

GROUP = "DEFAULT"

OPTS = [
    cfg.HostDomainOpt("host", default=socket.gethostname(), sample_default="<current_hostname>",
                      help="The name this host is known by: in RPC topics, services and servers' hosts. Never change "
                           "it on a compute host that has servers."),
    cfg.HostAddressOpt("my_ip", default="127.0.0.1", sample_default="<host_ipv4>",
                       help="The address other hosts and guests' DNAT reach this host by."),
    cfg.StrOpt("state_path", default="/var/lib/nova", help="Where daemons keep what must survive a restart."),
    cfg.StrOpt("rootwrap_config", default="/etc/nova/rootwrap.conf",
               help="The configuration of nova-rootwrap, by which nova-compute and nova-network start their helper "
                    "where there is no nova-privileged: sudo nova-rootwrap FILE privsep-helper ..."),
    cfg.Opt("hosts_transport_url", type=BrokerUrl(more=("local",)), secret=True,
               help="The URL of the vhost in which hosts and conductors meet: rabbit://USER:PASSWORD@BROKER:5672/"
                    "nova-hosts. nova-conductor has a user there that may do everything; each host has one of its own, "
                    "with the rights that 'nova-manage host rights NAME' prints. nova-compute, nova-network and the "
                    "metadata service need it, and need no transport_url. Without it and the other options of bounded "
                    "mode, hosts and conductors meet at transport_url: see 'Security modes' in doc/security.rst."),
    cfg.IntOpt("long_rpc_timeout", default=1800, min=1,
               help="Seconds the longest orders to hosts may take. A host that dies meanwhile is noticed after "
                    "long_rpc_silence."),
    cfg.IntOpt("long_rpc_silence", default=30, min=2,
               help="Seconds for which a host may say nothing during such an order; then it counts as dead. It says "
                    "that it is alive twice in that time."),
    cfg.IntOpt("report_interval", default=30, min=1,
               help="Seconds between two heartbeats of a daemon. Upstream's default is 10; ours are cheap for the "
                    "database because conductors write them in batches, and 30 keeps 10,000 hosts quiet."),
    cfg.IntOpt("service_down_time", default=90, min=1,
               help="Seconds without a heartbeat after which a daemon counts as down (upstream: 60)."),
    cfg.BoolOpt("enable_new_services", default=True,
                help="Let a host that registers for the first time take servers. Off: its nova-compute is disabled, until "
                     "'openstack compute service set --enable'. Read by nova-conductor."),
    cfg.IntOpt("graceful_shutdown_timeout", default=60, min=0, deprecated_name="manager_shutdown_timeout",
               help="Seconds a daemon may take to finish what it began after SIGTERM, before it goes anyway."),
    cfg.StrOpt("default_availability_zone", default="nova", help="The zone of compute hosts in no other."),
    cfg.StrOpt("internal_service_availability_zone", default="internal", help="The zone control daemons show."),
    cfg.StrOpt("default_schedule_zone", help="The zone of servers that ask for none; any zone when empty."),
    cfg.StrOpt("instance_name_template", default="instance-%08x",
               help="A guest's name on its hypervisor, from the server's internal id (or %(uuid)s). Never change it "
                    "while there are servers."),
    cfg.IntOpt("shutdown_timeout", default=60, min=0,
               help="Seconds a guest has to power itself off before it is stopped."),
    cfg.BoolOpt("allow_resize_to_same_host", default=False,
                help="Let a resize keep the server on its host, where that is the best one."),
    cfg.BoolOpt("force_config_drive", default=False, help="Give every server that is created a config drive."),
    cfg.Opt("deleted_retention", type=TimeSpan(), default=datetime.timedelta(days=30), sample_default="30",
            help="How long deleted servers stay listed; then small background batches remove their rows, and other "
                 "rows that were over as long ago: see 'Old rows' in doc/operating.rst. 0: they stay until "
                 "'nova-manage db purge'."),
]
