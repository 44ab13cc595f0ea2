"""A fleet on one machine: what its workers ask their supervisor, and what that one answers.

``local_fleet`` locks the folder, makes the plan, and is the supervisor's side of the tables beside it; a worker asks by
its ``supervisor_link``. The supervisor keeps nothing that does not follow from the workers' frontiers and connections,
so its death costs a pause.
"""
