"""Server actions, one module each: the checks on the request, the action's own steps, its workflow and its endings."""
