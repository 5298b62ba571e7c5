// What stands in the signatures of this module: errors, keys and policies; sets of byte ranges; header fields; a logger.
// An app needs one import.
@_exported public import ByteRanges
@_exported public import HTTPTypes
@_exported public import Logging
@_exported public import SpoolStorage
