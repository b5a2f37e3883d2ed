"""OpenSLO v1: documents of the kinds SLO, SLI, Service, DataSource, AlertPolicy and others.

github.com/OpenSLO/OpenSLO, README. Documents refer to each other by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .draft import Draft, clean, percent, team
from .indicators import UnreadableError, indicator_keys
from .reading import Node
from .windows import period

_ALERTS = (
    "it can hold one burn rate over one window: the multi-window alerts of inferslo stand in its"
    " place"
)
_KINDS_LEFT_OUT = {
    "AlertPolicy": _ALERTS,
    "AlertCondition": _ALERTS,
    "AlertNotificationTarget": "it tells no address: write `response` and `receivers`",
}


def read_openslo(roots: Sequence[Node]) -> list[Draft]:
    """One draft for each service that an SLO names."""
    by_kind: dict[str, dict[str, Node]] = {}
    for root in roots:
        kind, name = root.text("kind"), root.child("metadata").text("name")
        known = by_kind.setdefault(kind, {})
        if kind in _KINDS_LEFT_OUT:
            root.lose_all(f"{kind} {name}", _KINDS_LEFT_OUT[kind])
        elif known.setdefault(name, root) is not root:
            root.lose_all(f"{kind} {name}", "there is one of that name already")
    for source in by_kind.get("DataSource", {}).values():
        source.child("spec").text("type")
        source.child("spec").change("connectionDetails", "the rules run in Prometheus itself")
    return _Reader(by_kind).drafts()


@dataclass(frozen=True, slots=True)
class _Reader:
    """by_kind: kind → name → document. used: the names of SLIs that were followed."""

    by_kind: Mapping[str, Mapping[str, Node]]
    used: set[str] = field(default_factory=set)

    def drafts(self) -> list[Draft]:
        drafts: dict[str, Draft] = {}
        for name, root in self._all("SLO").items():
            service = root.child("spec").text("service")
            if not service:
                root.lose_all(f"SLO {name}", "service is missing")
                continue
            if service not in drafts:
                drafts[service] = self._service(service)
            if drafts[service].service != service:
                root.child("spec").change("service", f"is called {clean(service)} here")
            self._slo(name, root, drafts[service])
        for name, root in self._all("SLI").items():
            if name not in self.used:
                root.lose_all(f"SLI {name}", "no SLO that was imported refers to it")
        return list(drafts.values())

    def _all(self, kind: str) -> Mapping[str, Node]:
        return self.by_kind.get(kind, {})

    def _service(self, name: str) -> Draft:
        root = self._all("Service").get(name)
        if root is None:
            return Draft(clean(name))
        return Draft(clean(name), team(root.child("metadata", "labels")), _about(root))

    def _slo(self, name: str, root: Node, draft: Draft) -> None:
        spec, about = root.child("spec"), _about(root)
        spec.lose("alertPolicies", _ALERTS)
        shared = ({"description": about} if about else {}) | period(spec)
        objectives, problem = spec.children("objectives"), "it has no objectives"
        before = len(draft.objectives)
        for index, objective in enumerate(objectives, start=1):
            title = objective.text("displayName") or str(index)
            try:
                keys = self._objective(objective, spec)
            except UnreadableError as error:
                problem = str(error)
                objective.lose_all(f"{name}, objective {title}", problem)
                continue
            wanted = name if len(objectives) == 1 else f"{name}-{clean(title).lower()}"
            unique = draft.unique(wanted, root.child("metadata"))
            draft.objectives.append({"name": unique} | shared | keys)
        if len(draft.objectives) == before:
            root.lose_all(f"SLO {name}", problem)

    def _objective(self, objective: Node, spec: Node) -> dict[str, Any]:
        objective.lose(
            "compositeWeight", "a composite here is of quality checks: this objective stands alone"
        )
        by_percent = percent(objective.text("targetPercent"))
        target = by_percent or percent(objective.text("target"), scale=2)
        if target is None:
            raise UnreadableError(
                _no_target(objective.text("target") or objective.text("targetPercent"))
            )
        indicator = self._indicator(objective) or self._indicator(spec)
        if indicator is None:
            raise UnreadableError("its indicator is not among what is imported")
        method = spec.text("budgetingMethod")
        keys = indicator_keys(indicator, objective, method, self._all("DataSource"))
        return {"objective": target} | keys

    def _indicator(self, node: Node) -> Node | None:
        """The specification of the SLI that is written here or named; None if there is none."""
        node.child("indicator").change(
            "metadata", "the name of the objective is the one that stays"
        )
        inline = node.child("indicator", "spec")
        if inline.fields():
            return inline
        name = node.text("indicatorRef")
        self.used.add(name)
        sli = self._all("SLI").get(name)
        return sli.child("spec") if sli else None


def _no_target(written: str) -> str:
    if not written:
        return "its target is missing: write target: 0.995"
    as_percent = percent(written)
    if as_percent is None or as_percent == 1:
        return (
            f"{written} is no target between 0 and 1, both excluded: there would be no budget to"
            " judge by"
        )
    ratio = as_percent.scaleb(-2).normalize()
    return f"target is a ratio: for {written} % write {ratio:f}, or targetPercent"


def _about(root: Node) -> str:
    """displayName and description, as one text."""
    title = root.child("metadata").text("displayName")
    text = root.child("spec").text("description")
    return f"{title}: {text}" if title and text else title or text
