"""SLO files of tests: one that has every key, and those of the docs."""

from pathlib import Path

FULL = """
service: s
owner: o
description: d
match: {model_name: [a, b], job: j}
classes: {header: x-class, S: {ttft: 1s, tpot: 50ms, e2e: 9s, urgency: office-hours}}
window: {calendar: week}
objectives:
- name: a
  signal: ttft
  objective: 99.5
  description: d
  threshold: 2s
  class: S
  prompt_tokens: "> 8000"
  per: [model_name]
  budgeting: timeslices
  slice_target: 95 %
  window: 7d
  urgency: always
  pages: true
  bad_outcomes: [aborted]
  response: [{tier: 1, team: t, receiver: r}]
  alerting: {outage: {ratio: 60}}
  min_coverage: 10
  expect_traffic: true
- {name: b, check: negation, tenant: t, objective: 90}
- {name: c, composite: {a: 0.5, b: 0.5}, objective: 90}
- {name: d, promql: {bad: x, total: y}, objective: 90}
- {name: e, promql: {value: x}, threshold: 15 %, objective: 90}
- {name: f, signal: tail_ratio, over: 10m, objective: 90}
response:
- {tier: 1, team: t, receiver: r, tickets: m}
- {tier: 2, team: t, receiver: w, when: [fast burn], after: 30m}
- {tier: 3, team: t, receiver: p, when: repeated, times: 5, within: 1d}
receivers:
  r: {slack: {api_url_file: /f, channel: "#c"}}
  m: {email: {to: a@b, from: c@d, smarthost: "h:25", auth_username: u, auth_password_file: /f,
              require_tls: false}}
  w: {webhook: {url: "https://h/x"}}
  p: {pagerduty: {routing_key_file: /f}}
office_hours: {weekdays: "monday:saturday", start: 08:00, end: 17:30, location: Europe/Berlin}
evaluation: {scrape_interval: 10s, interval: 15s, base: 2m}
alerting:
  burns: [{name: fast, long: 1h, short: 5m, budget: 2, severity: page, min_bad: 5, min_total: 9}]
  outage: {ratio: 50, window: 5m, min_bad: 3, min_total: 3}
runbook_url: https://h/{alert}
dashboard_url: https://h/d
warnings: {kv_full: off, queue_wait: 300ms, fragmentation: 15 %}
canary: {label: revision, canary: b, baseline: a}
"""

_PAGE = Path(__file__).parent.parent / "docs" / "slo.md"
_BLOCKS = [block.partition("```")[0] for block in _PAGE.read_text("utf-8").split("```yaml\n")[1:]]
EXAMPLE, QUERIES = _BLOCKS[0], f"service: s\n{_BLOCKS[-1]}"
