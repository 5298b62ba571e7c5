/// Whether the origin supports range requests.
package enum RangeSupport: Equatable, Sendable { case unknown, supported, unsupported }
