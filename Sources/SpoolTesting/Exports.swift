// Who has the test kit has the origin that its misbehaviours are made for.
@_exported public import SpoolOrigin
