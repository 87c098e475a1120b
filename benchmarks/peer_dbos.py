"""DBOS steps on SQLite: how many a second."""

import sys
import time
from pathlib import Path

from benchmarks.journal import BODY

COUNT = 150


def main(folder: Path) -> None:
    from dbos import DBOS, DBOSConfig

    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": f"sqlite:///{folder / 'dbos.sqlite'}",
        "run_admin_server": False,
    }
    DBOS(config=config)

    @DBOS.step()
    def step(body: str) -> str:
        return body

    @DBOS.workflow()
    def workflow() -> float:
        begin = time.perf_counter()
        for _ in range(COUNT):
            step(BODY)
        return COUNT / (time.perf_counter() - begin)

    DBOS.launch()
    print(workflow(), flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
