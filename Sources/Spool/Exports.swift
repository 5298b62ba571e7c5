// These modules define types that many signatures in this module use: errors, keys, policies and sets of byte ranges.
// HTTPTypes and Logging are not exported, because the names of their types are common. OSLog also has a `Logger`, for
// example, and this name would be ambiguous in a file that imports both OSLog and this module.
@_exported public import ByteRanges
@_exported public import SpoolScheduling
@_exported public import SpoolStorage
