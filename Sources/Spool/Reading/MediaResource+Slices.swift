package import SpoolStorage

/// Which version of a resource some bytes are of, and what was known of it: to tell whether a head that was made goes with
/// them.
package struct VersionMark: Sendable, Equatable {
    fileprivate var generation: GenerationIdentifier
    fileprivate var description: GenerationDescription

    fileprivate init(_ generation: Generation) {
        self.generation = generation.identifier
        self.description = generation.description
    }
}

/// What a server hands on without leaving its event loop.
extension MediaResource {
    /// All of `range` as a slice of the version that is open, where that may be used without asking anybody and needs no disk.
    ///
    /// - Returns: Nil: open a reader.
    package func sliceNow(_ range: Range<Int64>) -> (slice: MediaSlice, version: VersionMark)? {
        guard let resource, let lease = leaseOfLanded(range, in: resource),
            let slice = lease.generation.sliceNow(range, holding: lease)
        else { return nil }
        resource.serving.served(range)
        return (slice, VersionMark(lease.generation))
    }

    /// The mark of the version that is open, if that is the one of this head, and its first byte has landed.
    package func mark(of response: StoredResponse) -> VersionMark? {
        guard let resource, let lease = leaseOfLanded(0..<1, in: resource),
            resource.headers.response(of: lease.generation) == response
        else { return nil }
        return VersionMark(lease.generation)
    }
}
