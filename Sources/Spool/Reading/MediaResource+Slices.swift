package import SpoolStorage

/// The identity and the description of the version to which some bytes belong. A mark indicates whether existing
/// response headers belong to these bytes.
package struct VersionMark: Sendable, Equatable {
    fileprivate var generation: GenerationIdentifier
    fileprivate var description: GenerationDescription

    fileprivate init(_ generation: Generation) {
        self.generation = generation.identifier
        self.description = generation.description
    }
}

/// The bytes that a server can send without leaving its event loop.
extension MediaResource {
    /// Returns all of `range` as a slice of the open version, if this version may be used without a request. The method
    /// does not access the disk.
    ///
    /// - Returns: The slice and its version, or `nil` if a reader is needed.
    package func sliceIfAvailable(_ range: Range<Int64>) -> (slice: MediaSlice, version: VersionMark)? {
        guard let resource, let lease = leaseIfStored(range, in: resource),
            let slice = lease.generation.sliceIfAvailable(range, holding: lease)
        else { return nil }
        resource.serving.served(range)
        return (slice, VersionMark(lease.generation))
    }

    /// Reads all of `range` of the open version, if this version may be used without a request and all of the range is
    /// in memory.
    ///
    /// - Parameter buffer: A buffer with the same length as `range`.
    /// - Returns: The version; `nil` if ``sliceIfAvailable(_:)`` or a reader is needed.
    package func readWithoutBlocking(_ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer) -> VersionMark?
    {
        guard let resource, let lease = leaseIfStored(range, in: resource),
            lease.generation.readWholeWithoutBlocking(range, into: buffer)
        else { return nil }
        resource.serving.served(range)
        return VersionMark(lease.generation)
    }

    /// Returns the mark of the open version if the response belongs to that version and its first byte is stored,
    /// otherwise `nil`.
    package func mark(of response: StoredResponse) -> VersionMark? {
        guard let resource, let lease = leaseIfStored(0..<1, in: resource),
            resource.headers.response(of: lease.generation) == response
        else { return nil }
        return VersionMark(lease.generation)
    }
}
