"""An object as YAML, without the noise, and without literal passwords in environment variables."""

from __future__ import annotations

import re
from typing import Any

import yaml

from toolsets.kubernetes.api import HIDDEN
from toolsets.kubernetes.fields import Object

NOISE = frozenset({"managedFields", "selfLink", "uid", "resourceVersion"})
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
SECRET_NAME = re.compile(r"PASSW|SECRET|TOKEN|API_?KEY|PRIVATE|CREDENTIAL|ACCESS_?KEY|DSN|AUTH(?!OR)", re.IGNORECASE)


def as_yaml(thing: Any) -> str:
    return yaml.safe_dump(thing, sort_keys=False, allow_unicode=True, width=200).rstrip("\n")


def essential(thing: Object) -> Object:
    """The object without bookkeeping: managed fields, ids, the copy that kubectl apply keeps of it."""
    metadata = {key: value for key, value in (thing.get("metadata") or {}).items() if key not in NOISE}
    if annotations := {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    shown: Object = without_literals({**thing, "metadata": metadata})
    return shown


def without_literals(thing: Any) -> Any:
    """The value with `{name: DB_PASSWORD, value: …}` hidden, wherever it stands."""
    match thing:
        case {"name": str(name), "value": str(value)} if value and SECRET_NAME.search(name):
            return {**thing, "value": HIDDEN}
        case dict():
            return {key: without_literals(value) for key, value in thing.items()}
        case list():
            return [without_literals(value) for value in thing]
    return thing
