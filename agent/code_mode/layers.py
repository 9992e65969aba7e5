"""The names of the layers of isolation. Standard library only."""

from __future__ import annotations

RLIMITS = "rlimits"
OWN_USER = "own_user"
NOT_DUMPABLE = "not_dumpable"
PARENT_DEATH = "parent_death"
NO_NEW_PRIVILEGES = "no_new_privileges"
LANDLOCK = "landlock"
SECCOMP = "seccomp"
