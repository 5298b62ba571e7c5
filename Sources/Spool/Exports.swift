// The modules whose types most signatures of this module use: errors, keys, policies and sets of byte ranges.
// HTTPTypes and Logging are not among them. Their names are common (`Logger` is also OSLog's), so that a file which
// imports both would find them ambiguous.
@_exported public import ByteRanges
@_exported public import SpoolStorage
