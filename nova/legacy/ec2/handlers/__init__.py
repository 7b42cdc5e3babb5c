"""Handlers of the EC2 actions, one module per resource. Each takes the request and its arguments and returns the
response's element tree.

Errors of handlers have a code of ``nova.legacy.ec2.faults``. A dry run ends at the first conductor call that would
change something, so a handler makes all checks before its first change.
"""
