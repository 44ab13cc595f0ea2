"""Which events a crawl brings, by looks at moments that the test makes up."""

from __future__ import annotations

from crawlerproject.hooks.watch import ERRORS_APART_SECONDS, Event, Look, Watch


def look(pages: int = 0, halted: str = "", errors: int = 0, free: float | None = 3.0) -> Look:
    """A crawl at one moment."""
    return Look(halted, pages, errors, free)


def test_a_pause_is_said_once_and_its_end_too() -> None:
    """Another reason within one pause is no other pause."""
    watch = Watch(0)

    said = [watch.look(look(halted=halted), at) for at, halted in enumerate(["", "disk", "disk", "more", "", ""])]

    assert said == [[], [Event("paused", "disk")], [], [], [Event("resumed", "more")], []]


def test_silence_is_said_once_until_there_is_a_page_again() -> None:
    """Not while the crawl is paused; the time counts from the last page, or from the pause's end."""
    watch = Watch(900)
    looks = [(0, look(5)), (899, look(5)), (900, look(5)), (2000, look(5)), (2001, look(6)), (2901, look(6, free=None))]

    said = [[event.name for event in watch.look(now, at)] for at, now in looks]
    reason = Watch(10)
    reason.look(look(1), 0)

    assert said == [[], [], ["silent"], [], [], ["silent"]]
    assert reason.look(look(1, free=59.0), 12) == [
        Event("silent", "no page for 12 s; the next host may be asked in 59 s")
    ]
    paused = Watch(10)
    assert [paused.look(look(1, halted="disk"), at)[1:] for at in (0, 50, 100)] == [[], [], []]
    assert [event.name for event in paused.look(look(1), 105)] == ["resumed"]
    assert [event.name for event in paused.look(look(1), 110)] == ["silent"]


def test_errors_come_together() -> None:
    """The first at once, those of the next minute in one word."""
    watch = Watch(0)

    assert watch.look(look(errors=1), 0) == [Event("error", "1 errors of the program itself, see log/errors.log")]
    assert watch.look(look(errors=4), ERRORS_APART_SECONDS - 1) == []
    assert [event.reason[:8] for event in watch.look(look(errors=5), ERRORS_APART_SECONDS)] == ["4 errors"]
    assert watch.look(look(errors=5), 3 * ERRORS_APART_SECONDS) == []
