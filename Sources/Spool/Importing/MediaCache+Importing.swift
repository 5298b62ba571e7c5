public import Foundation
import SpoolStorage

extension MediaCache {
    /// Takes a file in as a whole media file, as if its origin had sent it: for what came some other way, such as a
    /// download of the system's or a copy from another device.
    ///
    /// The file is read twice, is not changed, and is not needed afterwards. Unless told otherwise, the origin is asked for
    /// the head: the length must be the file's, and so must the hash where the head has one (`Repr-Digest`, `Digest`,
    /// `Content-MD5`). Validator, type and freshness are the head's, so that the origin's later versions are told from this
    /// one. What is stored of the same bytes stays, and is not written again.
    ///
    /// - Parameters:
    ///   - file: A regular file.
    ///   - source: The media file that it is.
    ///   - isChecked: Whether the origin is asked; if not, nobody vouches for the file, and its type is not known.
    ///   - replacesOthers: Whether other bytes that are stored of the media file are removed first.
    /// - Returns: What has vouched for the file.
    /// - Throws: `CacheError`: `.invalidArgument` where it is not what the origin has, or other bytes are stored;
    ///   `.capacityExceeded` where there is no room for all of it; `.originUnavailable` and `.originRefused` where the
    ///   origin can't be asked; `.incomplete` where not all could be kept; `.storage`, also where the file can't be read or
    ///   is changed meanwhile; `.closed`. `CancellationError`: what has come until then is kept, and gone on with.
    @discardableResult
    public func importFile(
        at file: URL, as source: MediaSource, isChecked: Bool = true, replacesOthers: Bool = false
    ) async throws -> ImportProof {
        try await FileImport(
            file: file, source: source, isChecked: isChecked, replacesOthers: replacesOthers, into: self
        )
        .run()
    }
}

/// What vouches for an imported file.
public struct ImportProof: Sendable, Hashable {
    private enum Name { case nothing, length, hash }

    private let name: Name

    /// Nobody was asked.
    public static let none = ImportProof(name: .nothing)
    /// The origin's file is as long.
    public static let length = ImportProof(name: .length)
    /// The origin tells the same hash of its file.
    public static let hash = ImportProof(name: .hash)
}
