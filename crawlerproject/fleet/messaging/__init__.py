"""Messages between the workers of a local fleet, over Unix sockets; each takes effect once.

A message is written with the change that holds its cause (``Changes.messages``), numbered under the outbox of that
frontier. Once that change is synced, ``Outgoing`` sends it to the worker that holds its partition. There ``Incoming``
keeps it until it is read: its effect and how far its box is read are in one change (``Changes.read``). Once that is
synced too the sender has it acknowledged, and its row goes.

Why each takes effect once, and none is lost:

- A connection begins with the oldest message of each box that is not acknowledged, and goes on in the order of numbers;
  the receiver refuses a gap. So a receiver that has taken a number has taken all before it.
- What it has taken it takes no second time, by a number in memory or, after a start, in its store. Of that the store
  knows what took effect, by the same change. What was only in memory is not acknowledged, and comes again.
- Nothing is sent before it is synced, so that no number that was sent is ever given to another message. Nothing is
  acknowledged before its effect is synced, so that no row goes too early. A power loss at any moment changes nothing.

What is on its way to a worker is bounded in bytes, and so is what waits in its memory. One that is dead, stopped or
slow costs its senders a row on disk for each message.
"""
