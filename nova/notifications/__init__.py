"""Events out: what happened, told to whoever listens on the notification topics.

``kinds`` is the table of events; ``payloads`` the tables of what each tells; ``versioned`` and ``legacy`` make messages
of both forms; ``notifier`` sends them from a thread of its own. Only the conductor tells events: it alone sees every
operation from its begin to its end, whichever process runs it. Facts: the notification reference of the Compute API
(https://docs.openstack.org/nova/latest/reference/notifications.html).
"""
