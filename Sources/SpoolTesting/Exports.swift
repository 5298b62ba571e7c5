// Tests that use this module also need the origin, because the simulated faults apply to its resources.
@_exported public import SpoolOrigin
