"""Resource providers as read and changed by the Placement API: one module for each kind of resource.

Any change in a tree first locks the root's row (:func:`locks.tree`), as claims do. Consumers named in a request are
locked before the roots.
"""
