// An app needs one import: caches, sources and errors, and the platform's way to origins.
@_exported public import Spool
@_exported public import SpoolHTTP
