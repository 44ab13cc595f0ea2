"""What befalls the fleet, one function a row of the table: each returns once the crawl has come to its end."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.broken_fleet.machines import LEASE_SECONDS, Machine, PoweredRedis
from benchmarks.broken_fleet.trial import Trial
from crawlerproject.errors import EXIT_FORGOTTEN
from tests.stores.redis_servers import sentinel
from tests.web.running import PROJECT, crawl_command
from tests.web.zygote import Process

DAY_SECONDS = 86400.0
# Of a master that is silent before its sentinels take it for dead.
_DOWN_MS = 2000
_DATA = "appendonlydir"


def calm(trial: Trial) -> None:
    """Nothing: what the others are compared with."""
    trial.begin()
    trial.finish()


def partition(trial: Trial, seconds: float) -> None:
    """One machine, then another, is cut off from Redis for so long."""
    first, second, _ = trial.begin()
    for machine in (second, first):
        machine.relay_cut()
        trial.note(f"{machine.name} is cut off")
        time.sleep(seconds)
        machine.relay_heal()
        trial.note(f"{machine.name} is back")
        time.sleep(5)
    trial.finish()


def one_way(trial: Trial) -> None:
    """One machine is not heard by Redis, another does not hear it, for longer than a lease; then for a moment."""
    first, second, third = trial.begin()
    first.relay_cut(back=False)
    second.relay_cut(there=False)
    time.sleep(LEASE_SECONDS + 5)
    first.relay_heal()
    second.relay_heal()
    for _ in range(4):
        for machine, way in ((third, True), (first, False), (second, False)):
            machine.relay_cut(there=way, back=not way)
            time.sleep(trial.chance.uniform(0.5, 3.0))
            machine.relay_heal()
    trial.finish()


def far(trial: Trial) -> None:
    """Two seconds to Redis and back, and a fifth of all packets lost, for all machines."""
    machines = [trial.machine(name) for name in ("m1", "m2", "m3")]
    for machine in machines:
        machine.settings["FLEET_LEASE_SECONDS"] = "60"
    trial.begin()
    for machine in machines:
        machine.relay_far(1.0, 0.2)
    trial.finish()


def kills(trial: Trial) -> None:
    """kill -9 of a worker every few seconds, started again after a while."""
    machines = trial.begin()
    count = 0
    while trial.asked() < 0.9 * len(trial.expected):
        machine = trial.chance.choice(machines)
        machine.kill()
        count += 1
        time.sleep(trial.chance.choice([0.1, 0.1, 1.0, LEASE_SECONDS + 2]))
        machine.start()
        time.sleep(trial.chance.uniform(0.5, 6.0))
    trial.note(f"{count} kills")
    trial.finish()


def freezes(trial: Trial) -> None:
    """SIGSTOP for moments and for longer than a lease; a machine wakes up when others have its partitions."""
    machines = trial.begin()
    for seconds in (1.0, 4.0, LEASE_SECONDS - 2, LEASE_SECONDS, LEASE_SECONDS + 8, 0.5):
        machine = trial.chance.choice(machines)
        machine.signal(signal.SIGSTOP)
        time.sleep(seconds)
        machine.signal(signal.SIGCONT)
        time.sleep(2)
    trial.finish()


def clocks(trial: Trial) -> None:
    """One machine is a day ahead and one a day behind; then the third is set, back and forth."""
    ahead, behind, third = (trial.machine(name) for name in ("m1", "m2", "m3"))
    ahead.power.set_clock(DAY_SECONDS)
    behind.power.set_clock(-DAY_SECONDS)
    trial.begin()
    for share, seconds in ((0.2, DAY_SECONDS), (0.35, -DAY_SECONDS), (0.5, 30.0), (0.65, 0.0)):
        trial.until_asked(share)
        third.power.set_clock(seconds)
        trial.note(f"clock of m3 at {seconds:+.0f} s")
    ahead.power.set_clock(0.0)
    trial.finish()


def store_clock(trial: Trial) -> None:
    """Redis's clock is set: forward by seconds, a minute, an hour, a day; back likewise."""
    trial.begin()
    for at, seconds in enumerate((0.4, 5.0, 65.0, 3600.0, DAY_SECONDS, 3600.0, 0.0, -60.0, 0.0)):
        trial.until_asked(0.1 + at * 0.09)
        trial.redis.power.set_clock(seconds)
        trial.note(f"clock of Redis at {seconds:+.1f} s")
    settle(trial)


def emptied(trial: Trial) -> None:
    """Redis comes back without its data: the workers stop; it gets its data back; then again, for good."""
    trial.begin()
    trial.until_asked(0.3)
    trial.redis.stop(kill=True)
    shutil.move(trial.redis.folder / _DATA, trial.folder / "data")
    trial.redis.start()
    forgotten(trial)
    for machine in trial.machines.values():
        machine.start()
    forgotten(trial, "once more")
    trial.redis.stop()
    shutil.rmtree(trial.redis.folder / _DATA)
    shutil.move(trial.folder / "data", trial.redis.folder / _DATA)
    trial.redis.start()
    trial.begin()
    trial.until_asked(0.65)
    trial.redis.stop(kill=True)
    shutil.rmtree(trial.redis.folder / _DATA)
    trial.redis.start()
    forgotten(trial)
    accept(trial)
    trial.finish()


def snapshot(trial: Trial) -> None:
    """Redis comes back with the data of half a minute ago, twice."""
    trial.begin()
    for share in (0.2, 0.6):
        trial.until_asked(share)
        data = trial.folder / f"data-{share}"
        shutil.copytree(trial.redis.folder / _DATA, data)
        time.sleep(30)
        trial.redis.stop(kill=True)
        shutil.rmtree(trial.redis.folder / _DATA)
        shutil.copytree(data, trial.redis.folder / _DATA)
        trial.redis.start()
        forgotten(trial)
        accept(trial)
    trial.finish()


def evicted(trial: Trial) -> None:
    """Redis is set to throw keys away, and is short of memory; twice."""
    trial.begin()
    for share, policy in ((0.3, "allkeys-random"), (0.6, "allkeys-lru")):
        trial.until_asked(share)
        with trial.redis.client() as client:
            used = int(client.info("memory")["used_memory"])
            client.config_set("maxmemory-policy", policy)
            client.config_set("maxmemory", int(used * 0.9))
        forgotten(trial)
        with trial.redis.client() as client:
            trial.note(f"{client.info('stats')['evicted_keys']} keys gone ({policy})")
            client.config_set("maxmemory", 0)
            client.config_set("maxmemory-policy", "noeviction")
        accept(trial)
    trial.finish()


def promoted(trial: Trial) -> None:
    """Sentinels make a replica master that lacks the last five seconds; the workers give it what they have."""
    master = trial.redis
    replica = PoweredRedis(trial.folder / "replica", trial.power("replica"), "--replicaof", f"127.0.0.1 {master.port}")
    replica.start()
    config = [
        f"sentinel monitor ours 127.0.0.1 {master.port} 2",
        f"sentinel down-after-milliseconds ours {_DOWN_MS}",
        "sentinel failover-timeout ours 10000",
    ]
    with contextlib.ExitStack() as stack:
        stack.callback(replica.stop, kill=True)
        places = [stack.enter_context(sentinel(trial.folder / f"s{number}", *config)) for number in range(3)]
        for place in places:
            place.until_it_knows("ours", replicas=1, sentinels=2)
        where = ",".join(f"127.0.0.1:{place.port}" for place in places)
        for name in ("m1", "m2", "m3"):
            trial.machine(name, f"redis+sentinel://{where}/ours")
        trial.begin()
        trial.until_asked(0.4)
        rule = ["INPUT", "-i", "lo", "-p", "tcp", "--sport", str(master.port), "--dport", str(replica_port(master))]
        subprocess.run(["iptables", "-A", *rule, "-j", "DROP"], check=True)
        time.sleep(5)
        master.stop(kill=True)
        trial.note("the master is gone, and what it had in its last five seconds")
        subprocess.run(["iptables", "-D", *rule, "-j", "DROP"], check=True)
        forgotten(trial)
        master.start()  # the sentinels make it a replica of the new one
        accept(trial)
        trial.finish()


def replica_port(master: PoweredRedis) -> int:
    """That the connection of a master's only replica comes from."""
    with master.client() as client:
        [port] = [int(each["addr"].rpartition(":")[2]) for each in client.client_list() if "S" in each["flags"]]
    return port


def power(trial: Trial) -> None:
    """A machine loses its power, then Redis, then both at once: what was not made durable is gone."""
    first, second, _ = trial.begin()
    trial.until_asked(0.2)
    trial.note(f"m1 loses its power: {first.lose_power()} files cut")
    time.sleep(3)
    first.start()
    trial.until_asked(0.45)
    trial.redis.stop(kill=True)
    trial.note(f"Redis loses its power: {trial.redis.power.lost(trial.redis.folder)} files cut")
    trial.redis.start()
    time.sleep(10)
    settle(trial, until=0.7)
    trial.redis.stop(kill=True)
    cut = second.lose_power(), trial.redis.power.lost(trial.redis.folder)
    trial.note(f"m2 and Redis lose their power at once: {cut[0]} and {cut[1]} files cut")
    trial.redis.start()
    second.start()
    settle(trial)


def copied(trial: Trial) -> None:
    """A crawl that was begun by one process is copied into Redis: its old folder refuses, three workers go on."""
    single = trial.folder / "single"
    settings = {**trial.machine("m1")._settings("one")}
    for name in ("STATE_URL", "FLEET_WORKER"):
        del settings[name]
    command = crawl_command(trial.web.folder / "seeds.txt", single, trial.web.folder / "hosts", settings)
    with (trial.folder / "single.log").open("ab") as output:
        alone = Process(command, output, cwd=PROJECT)
        trial.until_asked(0.3)
        alone.send_signal(signal.SIGTERM)
        alone.wait(60)
    url = trial.redis.url
    said = scrapy(trial, "state", "copy", str(single), url)
    trial.note(f"state copy: status {said}")
    with (trial.folder / "single.log").open("ab") as output:
        status = Process(command, output, cwd=PROJECT).wait(60)
    trial.note(f"the old folder, started: status {status}")
    if status == 0:
        raise RuntimeError("the old folder started")
    shutil.move(single, trial.machine("m1").folder / "single")  # its archive counts
    trial.begin()
    trial.finish()


def store_kills(trial: Trial, count: int = 100) -> None:
    """kill -9 of Redis, again and again.

    With everysec, and a disk that is slow, it may lose what it answered for in the last two seconds: then the workers
    stop, and are let go on.
    """
    trial.begin()
    for number in range(1, count + 1):
        time.sleep(trial.chance.uniform(0.3, 1.7))
        trial.redis.stop(kill=True)
        time.sleep(trial.chance.choice([0.0, 0.0, 0.2, 1.0]))
        trial.redis.start()
        ended = {status for machine in trial.machines.values() for _, status in machine.look()}
        if EXIT_FORGOTTEN in ended:
            forgotten(trial, f"after kill {number}")
            accept(trial)
        elif ended:
            trial.note(f"workers ended after kill {number}")
            break
    trial.note(f"{number} kills, {trial.asked()} requests by then")
    settle(trial)


def disks(trial: Trial, count: int = 10) -> None:
    """A machine is destroyed with its disk, ten times; another joins. At the end what was lost is fetched again."""
    at_work = [*trial.begin()]
    gone: list[str] = []
    for number in range(count):
        trial.until_asked(0.08 + 0.075 * number)
        machine = at_work.pop(trial.chance.randrange(len(at_work)))
        machine.destroy()
        gone.append(machine.name)
        joins = trial.machine(f"m{number + 4}")
        joins.start()
        trial.until(lambda: any((joins.folder / joins.name / "warc").glob("*")), f"{joins.name} archives")  # noqa: B023
        at_work.append(joins)
        trial.note(f"{machine.name} is destroyed, {joins.name} joins")
    trial.finish()
    together = trial.folder / "together"
    together.mkdir()
    for machine in at_work:
        shutil.move(machine.folder / machine.name, together / machine.name)
    lost = [word for name in gone for word in ("--lost", name)]
    status = scrapy(trial, "recover", str(together), *lost, "-s", f"STATE_URL={trial.redis.url}")
    trial.note(f"recover --lost of {len(gone)}: status {status}")
    for machine in at_work:
        shutil.move(together / machine.name, machine.folder / machine.name)
        machine.start()
    trial.finish()


def elastic(trial: Trial) -> None:
    """Two machines with four workers each, in one folder and in many; they leave, are renamed and join meanwhile."""
    first, second = trial.machine("m1"), trial.machine("m2")
    shared = [f"a{number}" for number in range(4)]
    own = [f"b{number}" for number in range(4)]
    first.start(*shared)
    for name in own:
        second.start(name, place=second.folder / f"crawl-{name}")
    trial.until_asked(0.15)
    first.stop("a0")
    first.start("c0")  # its new name has a folder of its own
    trial.until_asked(0.3)
    second.stop("b1")
    refused_renamed(trial, second, "b1", "c1")
    second.start("b1")
    trial.until_asked(0.4)
    first.kill("a1")  # for good
    first.start("c2")
    third = trial.machine("m3")
    third.start("d0", "d1", "d2", "d3")
    trial.until_asked(0.55)
    second.stop("b2", "b3")
    trial.until_asked(0.65)
    first.stop("a2")
    third.kill("d0")
    trial.until_asked(0.75)
    third.start("d0")
    first.start("a2")
    trial.finish()
    status = scrapy(trial, "recover", str(first.folder / "a1"), "-s", f"STATE_URL={trial.redis.url}")
    trial.note(f"recover a1, which was killed for good: status {status}")


def refused_renamed(trial: Trial, machine: Machine, name: str, new: str) -> None:
    """A folder under another name is refused, since Redis knows its worker by the old one. RuntimeError."""
    place = machine.places[name]
    (place / name).rename(place / new)
    machine.start(new, place=place)
    trial.until(lambda: any(ended == new for ended, _ in machine.look()), f"{new} ended")
    (place / new).rename(place / name)
    name, status = machine.ends.pop()
    trial.note(f"its folder renamed: status {status}")
    if status != 2:  # an operator's error
        raise RuntimeError(f"{name} ended with {status}")


# --- what rows have in common -----------------------------------------------------------------------


def forgotten(trial: Trial, what: str = "") -> None:
    """Every worker ends by itself, since Redis has forgotten."""
    statuses = trial.until_all_ended() or {EXIT_FORGOTTEN}  # those that were seen before this was called
    trial.note(f"all workers stop {what}".strip() + f": status {sorted(statuses)}")
    if statuses != {EXIT_FORGOTTEN}:
        raise RuntimeError(f"workers ended with {sorted(statuses)}")


def accept(trial: Trial) -> None:
    """Start every worker once with -a accept=store."""
    for machine in trial.machines.values():
        machine.start(*machine.places, accept="store")
    before = trial.asked()
    trial.until(lambda: trial.asked() > before, "asked again")
    trial.note("goes on with -a accept=store")


def settle(trial: Trial, until: float = 2.0) -> None:
    """To the end (or ``until`` so much is asked for): workers that stop since Redis has forgotten are let go on."""
    while True:
        statuses: set[int] = set()

        def over() -> bool:
            for machine in trial.machines.values():
                statuses.update(status for _, status in machine.look())  # noqa: B023
            return not any(machine.running for machine in trial.machines.values()) or (
                trial.asked() >= until * len(trial.expected) and EXIT_FORGOTTEN not in statuses  # noqa: B023
            )

        trial.until(over, "the end")
        if EXIT_FORGOTTEN in statuses:
            trial.note(f"workers stop: status {sorted(statuses)}")
            accept(trial)
        elif statuses - {0}:
            raise RuntimeError(f"workers ended with {sorted(statuses)}")
        else:
            return


def scrapy(trial: Trial, *arguments: str) -> int:
    """A command of the operator's; its exit status, what it says goes into a file."""
    with (trial.folder / "commands.log").open("ab") as output:
        output.write(f"$ scrapy {' '.join(arguments)}\n".encode())
        output.flush()
        return Process([sys.executable, "-m", "scrapy", *arguments], output, cwd=PROJECT).wait(600)


Row = tuple[Callable[[Trial], None], float]
"""What happens, and for how long an undisturbed crawl of its web would last, in seconds."""
ROWS: dict[str, Row] = {
    "calm": (calm, 40),
    "partition-20": (lambda trial: partition(trial, 20), 70),
    "partition-90": (lambda trial: partition(trial, 90), 200),
    "partition-300": (lambda trial: partition(trial, 300), 500),
    "one-way": (one_way, 60),
    "far": (far, 60),
    "kills": (kills, 60),
    "freezes": (freezes, 70),
    "clocks": (clocks, 60),
    "store-clock": (store_clock, 90),
    "emptied": (emptied, 60),
    "snapshot": (snapshot, 110),
    "evicted": (evicted, 60),
    "promoted": (promoted, 60),
    "power": (power, 70),
    "copied": (copied, 50),
    "store-kills": (store_kills, 50),
    "store-kills-always": (store_kills, 50),
    "disks": (disks, 100),
    "elastic": (elastic, 80),
}
REDIS_OPTIONS = {"store-kills": ("--appendfsync", "everysec"), "power": ("--appendfsync", "everysec")}
