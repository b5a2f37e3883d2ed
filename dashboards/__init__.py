"""Compiles an SLO file into Grafana dashboards."""
