"""scrapy forecast: what pauses allow, with names that share an address, ports of one name, hosts' own paces."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.web import zygote

NAMES = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty names at one address, a name with four ports, and a host with a pace of its own."""
    (tmp_path / "hosts").write_text("".join(f"192.0.2.1 n{number}.test\n" for number in range(NAMES)))
    (tmp_path / "shared.txt").write_text("".join(f"http://n{number}.test/\n" for number in range(NAMES)))
    (tmp_path / "ports.txt").write_text("".join(f"http://p.invalid:{port}/\n" for port in (80, 8000, 8080, 8443)))
    (tmp_path / "paces.txt").write_text("p.invalid delay_seconds=20\n")
    return tmp_path


def forecast(folder: Path, seeds: str, *options: str) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "scrapy", "forecast", str(folder / seeds), *options]
    settings = ("-s", f"FETCH_HOSTS_FILE={folder / 'hosts'}", "-s", f"CRAWL_DIR={folder / 'none'}")
    return zygote.run([*command, *settings], check=True).stdout


def facts(folder: Path, seeds: str, *options: str) -> dict[str, Any]:
    """The same for programs."""
    found: dict[str, Any] = json.loads(forecast(folder, seeds, "--json", *options))
    return found


def test_forty_names_at_one_address(folder: Path) -> None:
    """2.0 pages/s and not 8.0; a hundred pages each take 40 x 101 half seconds and not 500 s."""
    text = forecast(folder, "shared.txt", "--pages", "100")

    assert "40 seeds on 40 hosts at 1 known address" in text
    assert "at most 2.0 pages/s" in text
    assert "100 pages of each host: at least 33 min 40 s" in text
    assert "--resolve" not in text
    assert facts(folder, "shared.txt", "-s", "PACE_PER_IP=False")["pages_per_second_at_most"] == 8.0


def test_what_takes_days_takes_longer_for_quiet_hours(folder: Path) -> None:
    """And says so; a crawl of hours does not, nor one that comes at any hour."""
    longer = "What takes days takes up to 20% longer for the hosts' busy hours (QUIET_HOURS)"

    assert longer in forecast(folder, "ports.txt", "--pages", "50000")
    assert longer not in forecast(folder, "ports.txt", "--pages", "100")
    assert longer not in forecast(folder, "ports.txt", "--pages", "50000", "-s", "QUIET_HOURS=False")


def test_what_pages_need_costs_turns_too(folder: Path) -> None:
    """26 for a host's first page and 5 for each further one, or as many as are given; nothing is said without them."""
    plain = facts(folder, "ports.txt", "--pages", "10")
    whole = facts(folder, "ports.txt", "--pages", "10", "-s", "REQUISITES=page")
    given = facts(folder, "ports.txt", "--pages", "10", "--requisites", "0")
    text = forecast(folder, "ports.txt", "--pages", "10", "-s", "REQUISITES=same-domain")

    assert "seconds_with_requisites" not in plain
    pages = whole["seconds_by_pages_of_each_host"]["10"]
    assert whole["seconds_with_requisites"]["10"] == pages + 4 * (26 + 9 * 5) * 5
    assert given["seconds_with_requisites"]["10"] == pages + 4 * 26 * 5
    assert "With what they need to be seen (REQUISITES), 26 requests of its host for the first page and 5" in text


def test_ports_share_the_pace_of_their_name(folder: Path) -> None:
    """Four ports are one name: 0.2 pages/s, or what the file of paces says."""
    found = facts(folder, "ports.txt")

    assert (found["hosts"], found["names"], found["pages_per_second_at_most"]) == (4, 1, 0.2)
    assert found["seconds_of_the_seeds"] == 8 * 5 - 5
    paced = facts(folder, "ports.txt", "-s", f"HOST_PACE_FILE={folder / 'paces.txt'}")
    assert paced["pages_per_second_at_most"] == 0.05


def test_names_without_an_address_are_said(folder: Path) -> None:
    """What is not known may share an address: the line says what that would mean, and how to know."""
    (folder / "hosts").write_text("192.0.2.1 n0.test\n192.0.2.1 n1.test\n")
    text = forecast(folder, "shared.txt")

    assert "Of 38 names the address is not known: those that share one get 2.0 pages/s together (--resolve" in text
