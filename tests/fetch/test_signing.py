"""Signatures of requests as they leave: kept for an authority, made for a path, as a server asks, by rotated keys."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scrapy import Request
from scrapy.settings import Settings

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.http1 import RequestWriter, parse_target
from crawlerproject.fetch.signing import COVERS, Signer, signer_in
from crawlerproject.inspection.identity_checks import read_request
from crawlerproject.rules.identity.key_ring import (
    CLOCK_SECONDS,
    LOOK_SECONDS,
    REUSED_SECONDS,
    VALID_SECONDS,
    KeyRing,
    new_key,
)
from crawlerproject.rules.identity.message_signatures import Proof, proofs
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.stores.operator_files.key_file import read_keys, write_keys
from tests.fetch.handlers import handler, wire_of
from tests.fetch.servers import answering, ok, run

NOW = 1_800_000_000.0


@dataclass
class World:
    """A clock, keys and what signs by them."""

    covers: str = "authority"
    excepted: str = "private.example"
    now: float = NOW
    ring: KeyRing = field(
        default_factory=lambda: KeyRing("https://bot.example", (new_key(Ed25519PrivateKey.generate(), NOW),))
    )
    unreadable: str = ""

    def __post_init__(self) -> None:
        excepted, _ = Exclusion.parse([self.excepted])
        self.signer = Signer(self.read, COVERS[self.covers], excepted, clock=lambda: self.now)
        self.writer = RequestWriter("Test/1.0", self.signer.fields)

    def read(self) -> KeyRing:
        if self.unreadable:
            raise OperatorError(self.unreadable)
        return self.ring

    def sent(self, url: str, headers: dict[bytes, list[bytes]] | None = None) -> bytes:
        return self.writer.write("GET", parse_target(url), headers or {}, b"")

    def proof(self, url: str, headers: dict[bytes, list[bytes]] | None = None) -> Proof:
        (found,) = proofs(read_request(self.sent(url, headers).decode("latin-1"), url), self.ring.public_keys())
        return found

    def asked(self, url: str, status: int, text: bytes) -> bool:
        return self.signer.asked(parse_target(url), status, [text])


def test_one_signature_serves_an_authority_for_hours() -> None:
    """Port and case make no other one; another authority, and another span, have their own."""
    world = World()
    first = world.proof("https://a.example/x")

    assert first.flaw == ""
    assert first.span == (NOW - CLOCK_SECONDS, NOW + VALID_SECONDS)
    assert first.covers == ('"@authority"', '"signature-agent";key="sig1"')
    signature = read_request(world.sent("https://a.example/x").decode()).fields["signature"]
    world.now += REUSED_SECONDS - 1
    assert read_request(world.sent("https://A.example:443/y?z").decode()).fields["signature"] == signature
    assert world.proof("https://b.example/").flaw == ""
    assert read_request(world.sent("https://b.example/").decode()).fields["signature"] != signature
    world.now += 1
    assert world.proof("https://a.example/x").span.created == world.now - CLOCK_SECONDS
    world.now = NOW - 86_400  # the clock was set back
    assert world.proof("https://a.example/x").span.created == world.now - CLOCK_SECONDS


def test_a_path_has_its_own() -> None:
    """Method and path are covered, for ten minutes."""
    world = World(covers="path")
    one, two = world.sent("https://a.example/x?q"), world.sent("https://a.example/y")

    assert world.proof("https://a.example/x?q").flaw == ""
    assert world.proof("https://a.example/x").covers[1:3] == ('"@method"', '"@path"')
    swapped = one.replace(b"GET /x?q", b"GET /y")
    assert proofs(read_request(swapped.decode()), world.ring.public_keys())[0].flaw == "it does not fit this request"
    assert one.split(b"Signature: ")[1] != two.split(b"Signature: ")[1]


def test_requests_in_every_form_are_signed() -> None:
    """With headers and a body of their own, and as a plain proxy wants them; the project's signature gives way."""
    world = World()
    target = parse_target("http://a.example:8080/p")
    given = {b"X-Own": [b"1"], b"Signature": [b"sig1=:AAAA:"], b"Signature-Agent": [b'"https://evil.example"']}
    for sent in (
        world.writer.write("POST", target, given, b"body"),
        world.writer.write("POST", target, {}, b"body"),
        world.writer.write("GET", target, given, b"", absolute=True),
        world.writer.write("HEAD", target, {}, b""),
    ):
        (proof,) = proofs(read_request(sent.decode(), "http://a.example:8080/p"), world.ring.public_keys())
        assert (proof.flaw, sent.count(b"\r\nSignature: "), sent.count(b"Signature-Agent")) == ("", 1, 1)


def test_excepted_hosts_get_none() -> None:
    """Nor do those below them, of the project's either."""
    world = World()

    assert b"Signature" not in world.sent("https://www.private.example/")
    assert b"Signature" not in world.sent("https://private.example/", {b"Signature": [b"own"]})
    assert not world.asked("https://private.example/", 403, b'a=("@authority")')
    assert b"Signature" in world.sent("https://notprivate.example/")


def test_what_a_server_asks_for_is_remembered() -> None:
    """A 403 is worth one more request, and no second one; a nonce is for one."""
    world = World()
    url = "https://a.example/x"
    world.sent(url)

    assert world.asked(url, 403, b's2=("@method" "user-agent");created;nonce="n1";tag="web-bot-auth"')
    first = world.sent(url)
    (proof,) = proofs(read_request(first.decode()), world.ring.public_keys())
    assert (proof.flaw, proof.label) == ("", "s2")
    assert proof.covers == ('"@authority"', '"@method"', '"user-agent"', '"signature-agent";key="s2"')
    assert b'nonce="n1"' in first
    assert b'Signature-Agent: s2="https://bot.example"' in first
    assert b"nonce" not in world.sent(url)
    assert world.proof(url, {b"User-Agent": [b"Other"]}).flaw == ""
    assert not world.asked(url, 403, b's2=("@method" "user-agent");nonce="n2"')
    assert b'nonce="n2"' in world.sent(url)
    assert world.proof("https://b.example/").label == "sig1"


def test_a_fresh_nonce_is_sent_with_the_next_request() -> None:
    """429: the host rests in any case, so that the answer makes no request of its own."""
    world = World()

    assert not world.asked("https://a.example/", 429, b'sig1=("@authority");nonce="again"')
    assert b'nonce="again"' in world.sent("https://a.example/y")
    assert b"nonce" not in world.sent("https://a.example/y")


@pytest.mark.parametrize(
    "asked", [b'sig1=("@authority" "signature-agent";key="sig1")', b"sig1=(", b'sig1=("@authority");tag="x"', b"\xff"]
)
def test_what_was_sent_already_or_cannot_be_is_not_sent_again(asked: bytes) -> None:
    """It would be refused again."""
    assert not World().asked("https://a.example/", 403, asked)


def test_a_header_that_a_request_has_not_is_left_out() -> None:
    """It is signed as usual then."""
    world = World()

    assert world.asked("https://a.example/", 403, b'sig1=("@authority" "content-type")')
    assert world.proof("https://a.example/").covers == ('"@authority"', '"signature-agent";key="sig1"')
    assert '"content-type"' in world.proof("https://a.example/", {b"Content-Type": [b"a/b"]}).covers


def test_a_running_crawl_takes_up_rotated_keys(caplog: pytest.LogCaptureFixture) -> None:
    """Within an hour of the moment from which the new one signs; a file that cannot be read changes nothing."""
    world = World()
    url, begins = "https://a.example/", NOW + 7200
    old = world.proof(url).keyid
    world.ring = world.ring.rotated(NOW, new_key(Ed25519PrivateKey.generate(), begins))

    world.now = begins - 1
    assert {world.proof(f"https://{n}.example/").keyid for n in range(3)} == {old}
    world.now, world.unreadable = begins + 1, "It is gone."
    with caplog.at_level(logging.ERROR):
        world.now += LOOK_SECONDS
        assert world.proof("https://c.example/").keyid == world.ring.keys[1].keyid
    world.unreadable = ""
    world.now += LOOK_SECONDS
    assert world.proof("https://d.example/").keyid == world.ring.keys[1].keyid
    assert world.proof(url).keyid == world.ring.keys[1].keyid
    assert caplog.messages == ["It is gone. Until then requests are signed with the keys as they were."]


def key_file(tmp_path: Path) -> Path:
    """A new key's file."""
    path = tmp_path / "identity.json"
    write_keys(path, KeyRing("https://bot.example", (new_key(Ed25519PrivateKey.generate(), 0),)))
    return path


def test_the_handler_sends_and_archives_what_is_signed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The server's bytes are the archive's; a 403 that asks is told to the crawl, once."""
    path = key_file(tmp_path)

    async def main() -> None:
        asks = ok().replace(b"200 OK", b'403 No\r\nAccept-Signature: a=("@method");tag="web-bot-auth"')
        async with handler(tmp_path, IDENTITY_KEY_FILE=str(path)) as made, answering(asks) as server:
            url = f"http://site.test:{server.port}/x"
            for again in (True, False):
                request = Request(url, headers={"Signature": "own"})
                await made.download_request(request)
                assert wire_of(request).signature_asked is again
                assert wire_of(request).request_bytes == server.requests[-1]
                (proof,) = proofs(read_request(server.requests[-1].decode(), url), read_keys(path).public_keys())
                assert proof.flaw == ""
            assert '"@method"' in proof.covers

    with caplog.at_level(logging.WARNING):
        run(main())
    assert [message for message in caplog.messages if "Signature headers" in message] != []


def test_settings_that_cannot_be_meant_stop_the_start(tmp_path: Path) -> None:
    """One sentence each: a file that others can read, one that is none, hosts that are none."""
    path = key_file(tmp_path)
    settings = {"IDENTITY_KEY_FILE": str(path), "IDENTITY_EXCEPT": ["a b"]}
    with pytest.raises(OperatorError, match="IDENTITY_EXCEPT has 'a b', which is neither a domain"):
        signer_in(Settings(settings))
    with pytest.raises(OperatorError, match="IDENTITY_COVERS is 'all'; use one of authority, path"):
        signer_in(Settings({"IDENTITY_KEY_FILE": str(path), "IDENTITY_COVERS": "all"}))
    path.chmod(0o640)
    with pytest.raises(OperatorError, match=r"open to other users .mode 640.; run chmod 600"):
        signer_in(Settings({"IDENTITY_KEY_FILE": str(path)}))
    path.chmod(0o600)
    path.write_text("{}")
    with pytest.raises(OperatorError, match="is not what scrapy identity init writes"):
        signer_in(Settings({"IDENTITY_KEY_FILE": str(path)}))
    path.unlink()
    with pytest.raises(OperatorError, match=r"cannot be read .No such file or directory.; scrapy identity init"):
        signer_in(Settings({"IDENTITY_KEY_FILE": str(path)}))
