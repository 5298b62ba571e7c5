#if Proxy
// This module declares the API for downloading streams, which apps use together with the server.
@_exported public import SpoolStreams
#endif
