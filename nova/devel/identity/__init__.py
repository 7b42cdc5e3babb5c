"""A small Keystone: tokens, users, projects, roles and credentials, in memory."""
