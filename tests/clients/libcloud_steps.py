"""Steps through libcloud's OpenStack driver, each with a check of its answer. Runs in libcloud's own environment.

Standard input: JSON with ``login``, ``region``, ``image``, ``pool``, ``size``, ``larger``. Standard output: a line of
JSON a step: name, status (success, fail or skip), reason.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from libcloud.compute.providers import get_driver
from libcloud.compute.types import NodeState, Provider

PLAIN_S, STEP_S = 60, 0.5
NAME, OTHER = "libcloud-node", "libcloud-other"


class Steps:
    """What they share: the driver for all that is nova's own, the one of today for the rest (it asks Neutron for
    groups and addresses), and what earlier steps made."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        login = given["login"]
        driver = get_driver(Provider.OPENSTACK)
        words = (login["username"], login["password"])
        own = {"ex_force_auth_url": login["auth_url"].removesuffix("/v3"), "ex_domain_name": "Default",
               "ex_force_auth_version": "3.x_password", "ex_tenant_name": login["project_name"],
               "ex_force_service_region": given["region"]}
        self.driver, self.newer = driver(*words, **own), driver(*words, api_version="2.2", **own)
        self.made: dict[str, Any] = {}

    # --- to look at

    def list_sizes(self) -> None:
        self.sizes = {size.name: size for size in self.driver.list_sizes()}
        assert self.given["size"] in self.sizes and self.sizes[self.given["size"]].ram == 256, sorted(self.sizes)

    def list_images(self) -> None:
        [self.image] = [image for image in self.driver.list_images() if image.name == self.given["image"]]

    def list_networks(self) -> None:
        assert any(network.name == "private" for network in self.driver.ex_list_networks())

    def list_locations(self) -> None:
        assert self.driver.list_locations()

    def list_images_of_glance(self) -> None:
        assert self.image.id in [image.id for image in self.newer.list_images()]

    def quota(self) -> None:
        project = self.newer.connection.request("/limits").object["limits"]["absolute"]
        assert project["maxTotalInstances"] > 0

    # --- key pairs and groups

    def create_key_pair(self) -> None:
        pair = self.driver.create_key_pair("libcloud-key")
        assert pair.private_key and pair.fingerprint

    def list_key_pairs(self) -> None:
        assert "libcloud-key" in [pair.name for pair in self.driver.list_key_pairs()]

    def security_group(self) -> None:
        group = self.driver.ex_create_security_group("libcloud-group", "about it")
        rule = self.driver.ex_create_security_group_rule(group, "tcp", 22, 22, "0.0.0.0/0")
        [listed] = [one for one in self.driver.ex_list_security_groups() if one.id == group.id]
        assert [(one.from_port, one.ip_range) for one in listed.rules] == [(22, "0.0.0.0/0")]
        self.driver.ex_delete_security_group_rule(rule)  # its answer is about 204, and nova's is 202
        [listed] = [one for one in self.driver.ex_list_security_groups() if one.id == group.id]
        assert not listed.rules
        self.made["group"] = group

    def server_group(self) -> None:
        group = self.newer.ex_add_server_group("libcloud-affine", "anti-affinity")
        assert group.id in [one.id for one in self.newer.ex_list_server_groups()]
        assert self.newer.ex_del_server_group(group)

    # --- a node's life

    def create_node(self) -> None:
        node = self.driver.create_node(
            name=NAME, image=self.image, size=self.sizes[self.given["size"]], ex_keyname="libcloud-key",
            ex_metadata={"role": "web"}, ex_security_groups=[self.made["group"]], ex_userdata="#cloud-config")
        self.made["node"] = node
        self.wait(NodeState.RUNNING)
        assert self.node.private_ips and self.node.extra["key_name"] == "libcloud-key", self.node.extra

    def list_nodes(self) -> None:
        assert NAME in [node.name for node in self.driver.list_nodes()]

    def metadata(self) -> None:
        assert self.driver.ex_get_metadata(self.node) == {"role": "web"}
        self.driver.ex_set_metadata(self.node, {"role": "db", "owner": "me"})
        assert self.driver.ex_get_metadata(self.node) == {"role": "db", "owner": "me"}

    def rename(self) -> None:
        assert self.driver.ex_set_server_name(self.node, OTHER).name == OTHER

    def console_output(self) -> None:
        assert "output" in self.driver.ex_get_console_output(self.node, 5)

    def stop(self) -> None:
        self.acted(self.driver.ex_stop_node, NodeState.STOPPED)

    def start(self) -> None:
        self.acted(self.driver.ex_start_node, NodeState.RUNNING)

    def pause(self) -> None:
        assert self.driver.ex_pause_node(self.node)
        self.wait_for(lambda: self.node.extra["vm_state"] == "paused")  # a state that the driver does not know

    def unpause(self) -> None:
        self.acted(self.driver.ex_unpause_node, NodeState.RUNNING)

    def suspend(self) -> None:
        self.acted(self.driver.ex_suspend_node, NodeState.SUSPENDED)

    def resume(self) -> None:
        self.acted(self.driver.ex_resume_node, NodeState.RUNNING)

    def reboot_soft(self) -> None:
        self.acted(self.driver.ex_soft_reboot_node, NodeState.RUNNING)

    def reboot_hard(self) -> None:
        self.acted(self.driver.ex_hard_reboot_node, NodeState.RUNNING)

    def resize_and_confirm(self) -> None:
        assert self.driver.ex_resize(self.node, self.sizes[self.given["larger"]])
        self.wait_for(lambda: self.node.extra["vm_state"] == "resized" and not self.node.extra["task_state"])
        assert self.driver.ex_confirm_resize(self.node)
        self.wait(NodeState.RUNNING)

    def rebuild(self) -> None:
        assert self.driver.ex_rebuild(self.node, self.image)
        self.wait(NodeState.RUNNING)

    def rescue(self) -> None:
        self.driver.ex_rescue(self.node)
        self.wait_for(lambda: self.node.extra["vm_state"] == "rescued")
        assert self.driver.ex_unrescue(self.node)
        self.wait(NodeState.RUNNING)

    def create_image(self) -> None:
        image = self.driver.create_image(self.node, "libcloud-image")
        self.wait_for(lambda: self.driver.get_image(image.id).extra["status"] == "ACTIVE")
        self.wait(NodeState.RUNNING)
        assert self.driver.delete_image(image)

    def floating_address(self) -> None:
        address = self.driver.ex_create_floating_ip(self.given["pool"])
        assert address.ip_address in [one.ip_address for one in self.driver.ex_list_floating_ips()]
        assert self.driver.ex_attach_floating_ip_to_node(self.node, address.ip_address)
        self.wait_for(lambda: address.ip_address in [*self.node.public_ips, *self.node.private_ips])
        assert self.driver.ex_detach_floating_ip_from_node(self.node, address.ip_address)
        assert self.driver.ex_delete_floating_ip(address)

    def destroy_node(self) -> None:
        node = self.node
        assert self.driver.destroy_node(node)
        self.wait_for(lambda: node.id not in [one.id for one in self.driver.list_nodes()])

    def delete_security_group(self) -> None:
        assert self.driver.ex_delete_security_group(self.made["group"])

    def delete_key_pair(self) -> None:
        [pair] = [one for one in self.driver.list_key_pairs() if one.name == "libcloud-key"]
        assert self.driver.delete_key_pair(pair)

    # --- inside

    @property
    def node(self) -> Any:
        return self.driver.ex_get_node_details(self.made["node"].id)

    def acted(self, action: Callable[[Any], Any], state: str) -> None:
        assert action(self.node)
        self.wait(state)

    def wait(self, state: str) -> None:
        def there() -> bool:
            node = self.node
            return node.state == state and not node.extra["task_state"]
        self.wait_for(there)

    def wait_for(self, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PLAIN_S
        while not there():
            node = self.node if "node" in self.made else None
            assert time.monotonic() < deadline, f"not within {PLAIN_S} s: {node and (node.state, node.extra)}"
            time.sleep(STEP_S)


ORDER = (
    "list_sizes", "list_images", "list_networks", "list_locations", "list_images_of_glance", "quota",
    "create_key_pair", "list_key_pairs", "security_group", "server_group", "create_node", "list_nodes", "metadata",
    "rename", "console_output", "stop", "start", "pause", "unpause", "suspend", "resume", "reboot_soft", "reboot_hard",
    "resize_and_confirm", "rebuild", "rescue", "create_image", "floating_address", "destroy_node",
    "delete_security_group", "delete_key_pair")


def main() -> None:
    steps = Steps(json.load(sys.stdin))
    for name in ORDER:
        status, reason = "success", ""
        try:
            getattr(steps, name)()
        except Exception as error:
            status, reason = "fail", f"{type(error).__name__}: {error}"[:400]
        print(json.dumps({"name": name, "status": status, "reason": reason}), flush=True)


if __name__ == "__main__":
    main()
