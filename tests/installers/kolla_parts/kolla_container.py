"""In the place of kolla-ansible's module of that name: containers of the played engine."""

from __future__ import annotations

import sys

sys.path.insert(0, "/usr/local/lib/played")

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from engine import Container  # noqa: E402

ARGUMENTS = {"action": {"type": "str", "required": True}, "name": {"type": "str"}, "image": {"type": "str"},
             "command": {"type": "str"}, "detach": {"type": "bool", "default": True},
             **{name: {"type": "raw"} for name in (
                 "common_options", "environment", "labels", "volumes", "volumes_from", "restart_policy", "privileged",
                 "dimensions", "healthcheck", "pid_mode", "ipc_mode", "cgroupns_mode", "tmpfs", "cap_add",
                 "security_opt", "remove_on_exit", "container_engine", "restart_retries", "ignore_missing")}}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted = {key: value for key, value in module.params.items() if value is not None}
    if "volumes" in wanted:  # some are left empty by templates
        wanted["volumes"] = [volume for volume in wanted["volumes"] if volume]
    ACTIONS[module.params["action"]](module, Container(module.params["name"]), wanted)


def compare(module: AnsibleModule, container: Container, wanted: dict) -> None:
    module.exit_json(changed=container.differs(wanted))


def recreate_or_restart(module: AnsibleModule, container: Container, wanted: dict) -> None:
    container.stop()
    container.make(wanted)
    container.start()
    module.exit_json(changed=True)


def start(module: AnsibleModule, container: Container, wanted: dict) -> None:
    if module.params["detach"]:
        recreate_or_restart(module, container, wanted)
    container.make(wanted)
    done = container.run_once()
    if done.returncode:
        module.fail_json(msg=f"Container exited with non-zero return code {done.returncode}", changed=True,
                         rc=done.returncode, stdout=done.stdout, stderr=done.stderr)
    module.exit_json(changed=True, rc=0, stdout=done.stdout, stderr=done.stderr)


def stop(module: AnsibleModule, container: Container, wanted: dict) -> None:
    ran = bool(container.pid)
    container.stop()
    module.exit_json(changed=ran)


ACTIONS = {"compare_container": compare, "recreate_or_restart_container": recreate_or_restart,
           "start_container": start, "stop_container": stop, "stop_and_remove_container": stop}

if __name__ == "__main__":
    main()
