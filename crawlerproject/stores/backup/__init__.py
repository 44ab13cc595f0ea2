"""Backups of a crawl's state: its frontiers as of one moment, what a start needs, and how long the archive was then.

The archive itself is not in them: closed WARC files never change and open ones only grow, so they are copied when it
suits. ``making`` makes one of a crawl that runs (which makes a checkpoint of its frontier when ``orders`` asks for it)
or does not; ``contents`` says whether one is whole; ``restoring`` puts one back and brings the archive into step.

- A frontier as of any moment is what a ``kill -9`` at that moment would have left, and says to which byte the archive
  counts. So what is restored goes on as after a crash: no page is lost, and none is archived twice.
- Of several workers each frontier is of a moment of its own. A message that its reader has not in its frontier is in
  its sender's: while a backup is made no worker removes what others have acknowledged, from before the first frontier
  is taken until the last one is.
- Numbers of messages are safe: each start of a worker has an outbox of its own.
"""
