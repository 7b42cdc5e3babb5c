"""``[DEFAULT]`` options of nova-cert, and of the VPN guests that use its certificates (cloudpipe)."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("ca_path", default="$state_path/CA",
               help="Directory of the cloud's certificate authority, and (below projects/) of each project's."),
    cfg.StrOpt("ca_file", default="cacert.pem", help="Certificate file of an authority, relative to its directory."),
    cfg.StrOpt("key_file", default="private/cakey.pem", help="Private key file of an authority."),
    cfg.StrOpt("crl_file", default="crl.pem", help="Certificate revocation list of an authority."),
    cfg.StrOpt("keys_path", default="$state_path/keys",
               help="Directory of the private keys with which operators log in to projects' VPN servers."),
    cfg.BoolOpt("use_project_ca", default=False, help="Use a separate certificate authority for each project."),
    cfg.StrOpt("user_cert_subject", default="/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=%.16s-%.16s-%s",
               help="Subject of users' certificates; the %s take the project, the user and the time."),
    cfg.StrOpt("project_cert_subject", default="/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=project-ca-%.16s-%s",
               help="Subject of a project's authority; the %s take the project and the time. Existing authorities "
                    "keep theirs."),
    cfg.StrOpt("vpn_image_id", default="0", help="Image of projects' VPN servers (cloudpipe). 0: there are none."),
    cfg.StrOpt("vpn_flavor", default="m1.tiny", help="Flavor name of projects' VPN servers."),
    cfg.StrOpt("vpn_key_suffix", default="-vpn", help="Suffix added to a project's id for the names of the keypair "
                                                      "and security group of its VPN server."),
    cfg.StrOpt("boot_script_template", help="Template of the boot script of VPN servers, with $cc_dmz, $cc_port, "
                                            "$dmz_net, $dmz_mask and $num_vpn in it. Unset: nova's own template, for "
                                            "an image with OpenVPN."),
    cfg.StrOpt("dmz_net", default="10.0.0.0", help="Network to which VPN clients get a route."),
    cfg.StrOpt("dmz_mask", default="255.255.255.0", help="Netmask of dmz_net."),
]
