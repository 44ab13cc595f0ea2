"""A fleet on one machine: what its workers ask their supervisor, and what that one answers.

``start`` locks the folder and makes the plan; ``fleet`` is the supervisor's side, of the tables beside it; a worker has
a ``supervisor_link`` and asks its ``questions`` there. The supervisor keeps nothing that does not follow from the
workers' frontiers and connections, so its death costs a pause.
"""
