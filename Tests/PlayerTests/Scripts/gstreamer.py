# Plays a URL to its end with seeks, and prints the last position.
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

Gst.init(None)
player = Gst.ElementFactory.make("playbin")
player.set_property("uri", sys.argv[1])
for name in ("video-sink", "audio-sink"):
    sink = Gst.ElementFactory.make("fakesink")
    sink.set_property("sync", False)
    player.set_property(name, sink)
bus = player.get_bus()
kinds = Gst.MessageType


def wait(kind):
    message = bus.timed_pop_filtered(100 * Gst.SECOND, kind | kinds.ERROR)
    if message is None or message.type == kinds.ERROR:
        print("failed", message and message.parse_error())
        player.set_state(Gst.State.NULL)
        sys.exit(1)


player.set_state(Gst.State.PAUSED)
wait(kinds.ASYNC_DONE)
for second in sys.argv[2:]:
    player.seek_simple(Gst.Format.TIME, Gst.SeekFlags.FLUSH | Gst.SeekFlags.ACCURATE, int(float(second) * Gst.SECOND))
    wait(kinds.ASYNC_DONE)
player.set_state(Gst.State.PLAYING)
wait(kinds.EOS)
position = player.query_position(Gst.Format.TIME)[1]
player.set_state(Gst.State.NULL)
print("ended", position / 1e9)
