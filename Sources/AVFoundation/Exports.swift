// Like Apple's, this module brings Foundation and Dispatch along; on Linux the URL loading types live in a module
// of their own, which an adapter written for both must not have to name.
@_exported public import Dispatch
@_exported public import Foundation
@_exported public import FoundationNetworking
