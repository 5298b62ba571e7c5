@_exported public import Spool
@_exported public import SpoolHTTP

// With a single import, an app can use the player, caches, sources, errors, and the platform's transport.
#if canImport(AVFoundation)
@_exported public import AVFoundation
#endif
