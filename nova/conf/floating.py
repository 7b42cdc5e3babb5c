"""``[DEFAULT]`` options of nova-network's floating addresses and of DNS. Read by nova-conductor, which keeps their rows."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

_NOOP = "nova.network.noop_dns_driver.NoopDNSDriver"
_DRIVERS = ("nova.network.noop_dns_driver.NoopDNSDriver (none), nova.network.minidns.MiniDNS (a file in state_path, for "
            "tests), nova.network.ldapdns.LdapDNS, or a class of your own with the same methods.")

OPTS = [
    cfg.StrOpt("default_floating_pool", default="nova",
               help="Pool of floating addresses if a request names none. `nova-manage floating create` uses it too, "
                    "without --pool."),
    cfg.BoolOpt("auto_assign_floating_ip", default=False,
                help="Give every new server a floating address of the default pool. It counts in no quota, and goes "
                     "with the server; a server for which none is left fails."),
    cfg.StrOpt("floating_ip_dns_manager", default=_NOOP,
               help=f"Where names of floating addresses are kept: {_DRIVERS}"),
    cfg.StrOpt("instance_dns_manager", default=_NOOP, help=f"Where names of servers are kept: {_DRIVERS}"),
    cfg.StrOpt("instance_dns_domain", default="",
               help="DNS domain of servers' names: each has two, its own and its uuid. A private domain of that name "
                    "(os-floating-ip-dns) limits it to servers of its availability zone. Empty: no names."),
    cfg.StrOpt("ldap_dns_url", default="ldap://ldap.example.com:389", help="LdapDNS: the LDAP server."),
    cfg.StrOpt("ldap_dns_user", default="uid=admin,ou=people,dc=example,dc=org", help="LdapDNS: who we are there."),
    cfg.StrOpt("ldap_dns_password", default="", secret=True, help="LdapDNS: our password there."),
    cfg.StrOpt("ldap_dns_soa_hostmaster", default="hostmaster@example.org",
               help="LdapDNS: mail address in the SOA record of new domains."),
    cfg.MultiStrOpt("ldap_dns_servers", default=["dns.example.org"],
                    help="LdapDNS: name servers of new domains; the first is the primary."),
    cfg.StrOpt("ldap_dns_base_dn", default="ou=hosts,dc=example,dc=org", help="LdapDNS: below what domains are made."),
    *[cfg.StrOpt(f"ldap_dns_soa_{name}", default=default,
                 help=f"LdapDNS: {what} in the SOA record of new domains, in seconds.") for name, default, what in (
        ("refresh", "1800", "how often secondaries ask for changes"),
        ("retry", "3600", "how soon they ask again after a failure"),
        ("expiry", "86400", "for how long they answer without the primary"),
        ("minimum", "7200", "for how long it is remembered that a name does not exist"))],
]
