@_exported public import Spool
@_exported public import SpoolHTTP

// An app needs one import for the player, caches, sources, errors, and the platform's transport.
#if canImport(AVFoundation)
@_exported public import AVFoundation
#endif
