@_exported public import Spool
@_exported public import SpoolHTTP

// An app needs one import: the player, caches, sources and errors, and the platform's way to origins.
#if canImport(AVFoundation)
@_exported public import AVFoundation
#endif
