"""`python -m inferslo.sidecar` is the command `inferslo`."""

from .cli import main

raise SystemExit(main())
