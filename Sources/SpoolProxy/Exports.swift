#if Proxy
// This module declares the downloads of streams, which apps use together with the server.
@_exported public import SpoolStreams
#endif
