"""EC2's actions, a module a noun. Each is a function of the request and of its arguments that gives the answer's tree.

What a handler refuses has a code of ``nova.legacy.ec2.faults``. A dry run ends where a call of the conductor would
change something, so a handler makes its checks before its first change.
"""
