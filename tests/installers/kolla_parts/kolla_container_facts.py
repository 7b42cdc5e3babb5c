"""In the place of kolla-ansible's module of that name: which of the containers run, and whether they are well."""

from __future__ import annotations

import sys

sys.path.insert(0, "/usr/local/lib/played")

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from engine import Container  # noqa: E402


def main() -> None:
    module = AnsibleModule(argument_spec={name: {"type": "raw"} for name in (
        "action", "container_engine", "name", "args", "api_version")})
    found = {}
    for name in module.params["name"] or ():
        container = Container(name)
        if container.pid and container.spec:
            found[name] = {"Image": container.spec["image"], "Status": status(container)}
    module.exit_json(containers=found)


def status(container: Container) -> str:
    """As `docker ps` has it."""
    test = ((container.spec or {}).get("healthcheck") or {}).get("test")
    if not isinstance(test, list):
        return "Up"
    return "Up (healthy)" if not container.run(["sh", "-c", test[1]], "root").returncode else "Up (unhealthy)"


if __name__ == "__main__":
    main()
