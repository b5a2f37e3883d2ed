"""An inference service in simulated time: engines, GPUs, hosts, clients, and faults as data.

What it shows is shaped like a real service and is none: docs/simulator.md says what is modelled.
"""
