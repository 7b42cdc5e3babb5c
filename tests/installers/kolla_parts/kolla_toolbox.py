"""In the place of kolla-ansible's module of that name: another module of Ansible's, run here instead of in a container
that has Ansible."""

from __future__ import annotations

import json
import os
import re
import subprocess

from ansible.module_utils.basic import AnsibleModule

ANSIBLE = "/opt/kolla/bin/ansible"


def main() -> None:
    module = AnsibleModule(argument_spec={name: {"type": "raw"} for name in (
        "container_engine", "module_name", "module_args", "module_extra_vars", "user", "api_version", "timeout")})
    words = [ANSIBLE, "localhost", "-c", "local", "-m", module.params["module_name"],
             "-a", json.dumps(module.params["module_args"] or {}),
             "-e", "ansible_python_interpreter=/opt/kolla/bin/python"]
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    found = re.search(r"=>\s*(\{.*\})", done.stdout, re.S)
    if not found:
        module.fail_json(msg=done.stdout + done.stderr)
    told = json.loads(found[1])
    if done.returncode:
        module.fail_json(msg=str(told.pop("msg", done.stdout)), **{k: v for k, v in told.items() if k != "failed"})
    module.exit_json(**told)


if __name__ == "__main__":
    main()
