"""What a daemon says of itself to those who watch it: ``/metrics``, ``/health/live``, ``/health/ready``.

One address a daemon, whatever the number of its workers: the socket is bound before they fork, each of them may answer,
and what each counts is in files that all of them read (prometheus_client's way for many processes).
"""
