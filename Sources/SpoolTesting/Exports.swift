// Users of the test kit also need the origin, to which its faults apply.
@_exported public import SpoolOrigin
