"""The helper: performs operations that require root for nova-compute and nova-network, which run as ``nova``.

``table`` contains all calls, by name. Every argument has a type that limits its values, and is validated here, because
the caller may be a compromised daemon. No call runs a given command, writes a given file, or gives away files outside a
guest's directory. Paths must be below the directories that the helper's own configuration names, and are followed by
descriptors, never twice by name. A test attempts forbidden operations with each call.
"""
