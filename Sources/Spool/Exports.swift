// Errors, keys and eviction policies stand in the signatures of this module.
@_exported public import SpoolStorage
