"""A volume claim stays pending: what it asks for and what the volumes offer do not go together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent.report import NextStep
from agent.rules.mechanisms import looks, steps
from agent.rules.mechanisms.port import Account, Finding, Hypothesis, Want
from agent.rules.names import is_object_name
from agent.rules.observation import Fact, Observation, Thing, quantity, quote
from agent.rules.scene import Scene
from agent.rules.toolbox import Act

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_NO_CLASS = re.compile(
    r"storageclass(?:\.storage\.k8s\.io)? \\?\"(?P<missing>[^\"\\]{1,253})\\?\" not found", re.IGNORECASE
)
_UNBOUND = re.compile(r"unbound immediate PersistentVolumeClaims")


class VolumeClaim:
    """Compares a pending claim with the volumes that were listed."""

    name = "volume_claim"
    title = "a volume claim can't be bound"
    depth = 35

    def hypotheses(self, scene: Scene) -> Iterable[Hypothesis]:
        for row in scene.of(Fact.OBJECT):
            if row.about.kind == "persistentvolumeclaim" and row.values.get("status") == "Pending":
                workload = _user(row.about.name, scene)
                findings = (
                    Finding(sign="the claim is pending", weight="supporting", observation=row, quote=quote(row.text)),
                    *_unbound(workload, scene),
                    *list(_mismatch(row.about.name, scene))[:1],
                )
                yield Hypothesis(mechanism=self, component=Thing("workload", workload), findings=findings)

    def follow_ups(self, hypothesis: Hypothesis, scene: Scene) -> Iterable[Want]:
        yield Want(act=Act.GET, arguments={"kind": "persistentvolumes"})
        for row in _pending(scene):
            yield from looks.describe("persistentvolumeclaim", row.about.name, scene)
            if is_object_name(row.about.name):
                yield looks.yaml_of("persistentvolumeclaim", row.about.name, scene)
        yield looks.yaml_of(looks.workload_kind(hypothesis.component.name, scene), hypothesis.component.name, scene)

    def account(self, hypothesis: Hypothesis, _scene: Scene) -> Account:
        claim = next(f.observation.about.name for f in hypothesis.findings if f.sign == "the claim is pending")
        because = hypothesis.part("because") or f"claim {claim} is not bound"
        return Account(did="can't start", because=because, trigger="config", variant=hypothesis.part("variant"))

    def next_steps(self, _hypothesis: Hypothesis, scene: Scene) -> Iterable[NextStep]:
        return [
            steps.look("Compare the claim with the volumes", f"kubectl get pvc,pv{steps.flag(scene)} -o wide"),
            steps.change(
                "Make claim and volume fit, or provide a volume",
                "the pod waits for it",
                risk="a claim can't be changed, only replaced; its data goes with it",
                undo="create the former claim again",
            ),
        ]


def _pending(scene: Scene) -> Iterator[Observation]:
    for row in scene.of(Fact.OBJECT):
        if row.about.kind == "persistentvolumeclaim" and row.values.get("status") == "Pending":
            yield row


def _user(claim: str, scene: Scene) -> str:
    """The workload whose pods wait: by the claim's own description, its name, else the only one pending."""
    for line in scene.of(Fact.CONDITION):
        if line.about.name == claim and line.values.get("section") == "Used By" and line.values["value"] != "<none>":
            return scene.owner(Thing("pod", line.values["value"])).name
    waiting = {scene.owner(pod.row.about).name for pod in scene.pods.values() if pod.status == "Pending"}
    named = [workload for workload in sorted(waiting) if workload in claim]
    return (named or sorted(waiting) or [claim])[0]


def _unbound(workload: str, scene: Scene) -> Iterator[Finding]:
    for event in scene.of(Fact.EVENT):
        if _UNBOUND.search(event.text) and scene.owner(event.about).name == workload and not scene.overcome(event):
            sign = "the scheduler waits for the claim"
            yield Finding(sign=sign, weight="supporting", observation=event, quote=quote(event.text))
            return


def _mismatch(claim: str, scene: Scene) -> Iterator[Finding]:
    """What keeps it from being bound, the certain before the likely."""
    for event in scene.of(Fact.EVENT):
        if event.about.name == claim and (match := _NO_CLASS.search(event.text)):
            because = f"storage class {match['missing']} does not exist"
            yield _found("its storage class does not exist", event, "storage_class", because)
    asked = next((one for one in scene.of(Fact.CLAIM) if one.about.name == claim), None)
    volumes = [row for row in scene.of(Fact.OBJECT) if row.about.kind == "persistentvolume"]
    free = [row for row in volumes if row.values.get("status") == "Available"]
    if asked is not None:
        for volume in free:
            yield from _differences(asked, volume)
    if volumes and not free:
        because = f"volume {volumes[0].about.name} is bound to {volumes[0].values.get('claim', 'another claim')}"
        yield _found("the volumes there are belong to other claims", volumes[0], "occupied", because)


def _differences(asked: Observation, volume: Observation) -> Iterator[Finding]:
    name, wants = volume.about.name, asked.values
    offered = volume.values.get("access_modes", "")
    modes = [_MODES.get(mode, mode) for mode in wants["modes"].split()]
    if wants["class"] != _bare(volume.values.get("storageclass", volume.values.get("class", ""))):
        because = f"it asks for storage class {wants['class'] or 'none'}, which no free volume has"
        yield _found("the storage classes differ", asked, "storage_class", because)
    if modes and offered and not set(modes) <= set(offered.split(",")):
        because = f"it asks for {' '.join(modes)}, volume {name} offers {offered}"
        yield _found("the access modes differ", asked, "access_mode", because)
    more, less = quantity(wants["storage"]), quantity(volume.values.get("capacity", ""))
    if more is not None and less is not None and more > less:
        because = f"it asks for {wants['storage']}, volume {name} has {volume.values['capacity']}"
        yield _found("the volume is too small", asked, "capacity", because)
    if wants["selector"]:
        because = f"it selects volumes with {wants['selector']}, and none is bound"
        yield _found("it selects volumes by labels", asked, "selector", because)


def _bare(storage_class: str) -> str:
    return "" if storage_class in ("<unset>", "<none>") else storage_class


def _found(sign: str, seen: Observation, variant: str, because: str) -> Finding:
    parts = {"variant": variant, "because": because}
    return Finding(sign=sign, weight="decisive", observation=seen, quote=quote(seen.text), parts=parts)


VOLUME_CLAIM = VolumeClaim()
