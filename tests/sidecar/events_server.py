"""A real server with nothing but the events router: `python events_server.py PORT JOURNAL`.

GET /totals gives every point as "family{values}": value.
"""

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from inferslo.sidecar.business import Business
from inferslo.sidecar.events_api import events_router
from inferslo.sidecar.journal import Journal


def main(port: str, journal: str) -> None:
    business = Business(Journal(Path(journal)))
    app = FastAPI()
    app.include_router(events_router(business))

    @app.get("/totals")
    def totals() -> dict[str, object]:
        return {
            f"{point.family.name}{{{','.join(point.labels)}}}": point.value
            for point in business.points()
        }

    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
    business.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
