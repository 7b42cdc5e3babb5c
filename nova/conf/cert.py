"""``[DEFAULT]`` options of nova-cert, and of the VPN guests that its certificates are for (cloudpipe)."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("ca_path", default="$state_path/CA", help="Folder of the cloud's certificate authority, and (below "
                                                         "projects/) of each project's."),
    cfg.StrOpt("ca_file", default="cacert.pem", help="File of an authority's certificate, below its folder."),
    cfg.StrOpt("key_file", default="private/cakey.pem", help="File of its private key."),
    cfg.StrOpt("crl_file", default="crl.pem", help="File of what it revoked."),
    cfg.StrOpt("keys_path", default="$state_path/keys",
               help="Folder of the private keys by which operators enter projects' VPN servers."),
    cfg.BoolOpt("use_project_ca", default=False, help="Each project has an authority of its own."),
    cfg.StrOpt("user_cert_subject", default="/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=%.16s-%.16s-%s",
               help="Subject of users' certificates; the %s take the project, the user and the time."),
    cfg.StrOpt("project_cert_subject", default="/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=project-ca-%.16s-%s",
               help="Subject of a project's authority; the %s take the project and the time. An authority that is "
                    "there keeps its own."),
    cfg.StrOpt("vpn_image_id", default="0", help="Image of projects' VPN servers (cloudpipe). 0: there are none."),
    cfg.StrOpt("vpn_flavor", default="m1.tiny", help="Name of their flavor."),
    cfg.StrOpt("vpn_key_suffix", default="-vpn", help="What is added to a project's id to name the keypair and the "
                                                      "security group of its VPN server."),
    cfg.StrOpt("boot_script_template", help="File of the script that a VPN server runs at its boot, with $cc_dmz, "
                                            "$cc_port, $dmz_net, $dmz_mask and $num_vpn in it. Unset: nova's own "
                                            "template, for an image that has OpenVPN."),
    cfg.StrOpt("dmz_net", default="10.0.0.0", help="Network that a VPN's clients are given a route to."),
    cfg.StrOpt("dmz_mask", default="255.255.255.0", help="Its netmask."),
]
