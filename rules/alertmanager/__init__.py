"""Who is told: the Alertmanager tree of a service, the tests of its routing, and a client."""
