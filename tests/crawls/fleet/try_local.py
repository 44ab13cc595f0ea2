import sys, shutil
from pathlib import Path
from tests.crawls.fleet.local_fleets import local_fleet
from tests.web.running import synthetic_web
from tests.web.judge import judge_folder, show
folder = Path("/tmp/supervisor/try"); shutil.rmtree(folder, ignore_errors=True); folder.mkdir(parents=True)
with synthetic_web(folder / "web") as web, local_fleet(web, folder / "crawl") as fleet:
    print("status", fleet.wait())
    print(fleet.said())
    for n in fleet.names: print(fleet.output(n)[-1500:])
    show(judge_folder(web.folder, None, workers=[folder/"crawl"/n for n in fleet.names], host_seconds=0.25, ip_seconds=0.5))
