"""``[DEFAULT]`` options of nova-network's floating IPs and of DNS. Read by nova-conductor, which stores them."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

_NOOP = "nova.network.noop_dns_driver.NoopDNSDriver"
_DRIVERS = ("nova.network.noop_dns_driver.NoopDNSDriver (none), nova.network.minidns.MiniDNS (a file in state_path, for "
            "tests), nova.network.ldapdns.LdapDNS, or a custom class with the same methods.")

OPTS = [
    cfg.StrOpt("default_floating_pool", default="nova",
               help="Pool of floating IPs if a request names none. `nova-manage floating create` also uses it, "
                    "without --pool."),
    cfg.BoolOpt("auto_assign_floating_ip", default=False,
                help="Assign every new server a floating IP of the default pool. It does not count in quota, and is "
                     "released with the server. If the pool is empty, the server fails."),
    cfg.StrOpt("floating_ip_dns_manager", default=_NOOP,
               help=f"Driver for DNS names of floating IPs: {_DRIVERS}"),
    cfg.StrOpt("instance_dns_manager", default=_NOOP, help=f"Driver for DNS names of servers: {_DRIVERS}"),
    cfg.StrOpt("instance_dns_domain", default="",
               help="DNS domain of servers' names. Each server has two entries, its name and its UUID. A private "
                    "domain of that name (os-floating-ip-dns) limits it to servers of its availability zone. Empty: "
                    "no names."),
    cfg.StrOpt("ldap_dns_url", default="ldap://ldap.example.com:389", help="LdapDNS: URL of the LDAP server."),
    cfg.StrOpt("ldap_dns_user", default="uid=admin,ou=people,dc=example,dc=org", help="LdapDNS: DN of nova's user."),
    cfg.StrOpt("ldap_dns_password", default="", secret=True, help="LdapDNS: password of nova's user."),
    cfg.StrOpt("ldap_dns_soa_hostmaster", default="hostmaster@example.org",
               help="LdapDNS: mail address in the SOA record of new domains."),
    cfg.MultiStrOpt("ldap_dns_servers", default=["dns.example.org"],
                    help="LdapDNS: name servers of new domains; the first is the primary."),
    cfg.StrOpt("ldap_dns_base_dn", default="ou=hosts,dc=example,dc=org", help="LdapDNS: base DN of new domains."),
    *[cfg.StrOpt(f"ldap_dns_soa_{name}", default=default,
                 help=f"LdapDNS: {what} in the SOA record of new domains, in seconds.") for name, default, what in (
        ("refresh", "1800", "refresh interval of secondaries"),
        ("retry", "3600", "retry interval of secondaries after a failure"),
        ("expiry", "86400", "time for which secondaries answer without the primary"),
        ("minimum", "7200", "caching time of nonexistent names"))],
]
