// libmpv's client API and its stream callbacks (Debian: libmpv-dev).
#include <mpv/client.h>
#include <mpv/stream_cb.h>
