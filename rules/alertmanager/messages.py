"""What the notifications of a receiver say: Go templates of Alertmanager.

Read on a phone, at night: what happened, what users feel, what to do first, where to read on. Of
several alerts in one notification the first is told in full, the others by their summaries.
"""

from __future__ import annotations

from typing import Any

from ...slo.plan import Receiver

# printf "%.700s" cuts by runes, as PagerDuty counts: it takes 1024 of them as a summary.
TITLE = (
    '{{ if eq .Status "resolved" }}Resolved: {{ end }}'
    '{{ printf "%.100s" .CommonLabels.service }} tier {{ printf "%.10s" .CommonLabels.tier }}: '
    "{{ with index (or .Alerts.Firing .Alerts) 0 }}"
    '{{ printf "%.700s" (or .Annotations.summary .Labels.alertname) }}{{ end }}'
    "{{ if gt (len .Alerts) 1 }} ({{ len .Alerts }} alerts){{ end }}"
)
_IN_FULL = """\
{{ or .Annotations.summary .Labels.alertname }}
{{- with .Annotations.impact }}
Users: {{ . }}{{ end }}
{{- with .Annotations.actions }}
Do first:
{{ . }}{{ end }}
{{- with .Annotations.runbook_url }}
Runbook: {{ . }}{{ end }}
{{- with .Annotations.dashboard_url }}
Dashboard: {{ . }}{{ end }}
"""
_SUMMARY = "{{ or .Annotations.summary .Labels.alertname }}\n"
BODY = (
    "{{ range $i, $_ := .Alerts.Firing }}{{ if eq $i 0 }}" + _IN_FULL + "{{ else if lt $i 10 }}"
    "Also: " + _SUMMARY + "{{ end }}{{ end }}"
    "{{ if gt (len .Alerts.Firing) 10 }}In all {{ len .Alerts.Firing }} alerts.\n{{ end }}"
    "{{ range $i, $_ := .Alerts.Resolved }}{{ if lt $i 10 }}Resolved: " + _SUMMARY
    + "{{ end }}{{ end }}"
)  # fmt: skip
_NOT_RESOLVED = "Close this yourself: outside office hours nobody is told that it is over.\n"
_RUNBOOK, _DASHBOARD = (
    "{{ with index (or .Alerts.Firing .Alerts) 0 }}{{ .Annotations." + name + " }}{{ end }}"
    for name in ("runbook_url", "dashboard_url")
)


def configs(receiver: Receiver, *, send_resolved: bool) -> dict[str, Any]:
    """The part of a receiver beside its name. Settings of the file win over our messages."""
    body = BODY if send_resolved else BODY + _NOT_RESOLVED
    config = _message(receiver.kind, body) | dict(receiver.settings)
    config["send_resolved"] = send_resolved
    return {f"{receiver.kind}_configs": [config]}


def _message(kind: str, body: str) -> dict[str, Any]:
    if kind == "pagerduty":
        return _pagerduty(body)
    if kind == "slack":
        return {"title": TITLE, "title_link": _RUNBOOK, "fallback": TITLE, "text": body}
    if kind == "email":
        return {"headers": {"Subject": TITLE}, "text": body, "html": ""}
    return {}  # a webhook gets labels and annotations as JSON


def _pagerduty(body: str) -> dict[str, Any]:
    links = [("Runbook", _RUNBOOK), ("Dashboard", _DASHBOARD)]
    return {
        "description": TITLE,
        "severity": '{{ if eq .CommonLabels.severity "page" }}critical{{ else }}warning{{ end }}',
        "component": "{{ .CommonLabels.service }}",
        "group": "{{ .CommonLabels.team }}",
        "client": "inferslo",
        "details": {"firing": body, "resolved": ""},
        "links": [{"text": text, "href": href} for text, href in links],
    }
