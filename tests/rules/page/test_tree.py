"""The reader in Python: what a person sees, and what near-duplicates are found by."""

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page.tree import words_and_text


def test_unseen_and_frame_are_left_out() -> None:
    """Scripts are no words; links and navigation are words, but not the page's text."""
    tree = LexborHTMLParser(
        "<title>t</title><nav>menu</nav><p>one <b>two</b> <a href=x>link</a></p><script>var x</script>"
        "<style>p{}</style><noscript>no</noscript><template>t</template><footer>foot</footer>"
    )
    words, text = words_and_text(tree)
    assert words == 5
    assert text.split() == [b"one", b"two"]
