#if Proxy
import Spool
import SpoolStorage

/// The resources that the live pages show, and their changes since the last update.
///
/// This type does not perform I/O. The caller reads the catalog and the open resources.
struct DashboardLibrary: Sendable {
    private var records: [CacheKey: StoredResource] = [:]
    /// The files of each stream, and the stream of each file.
    private var members: [CacheKey: [CacheKey]] = [:]
    private var roots: [CacheKey: CacheKey] = [:]
    private var resources: [CacheKey: DashboardResource] = [:]
    /// The resources that changed, in the order of their changes.
    private var changed: [CacheKey] = []
    private var isChanged: Set<CacheKey> = []
    private var removed: [CacheKey] = []

    /// Returns the resources that would no longer be listed after an update.
    func unlisted(in contents: [StoredResource]) -> [CacheKey] {
        let listed = Set(contents.map(\.key))
        return resources.keys.filter { !listed.contains($0) }
    }

    /// Replaces all records with those of the catalog.
    ///
    /// - Parameter isStored: A function that returns whether a resource without a record is stored, even though it is
    ///   not listed.
    mutating func update(_ contents: [StoredResource], isStored: (CacheKey) -> Bool = { _ in false }) {
        records = Dictionary(contents.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        (members, roots) = ([:], [:])
        var present: Set<CacheKey> = []
        for presentation in StoredPresentation.presentations(in: contents) {
            let key = presentation.media.key
            present.insert(key)
            if !presentation.parts.isEmpty { members[key] = presentation.parts.map(\.key) }
            for part in presentation.parts { roots[part.key] = key }
            note(DashboardResource(presentation), key)
        }
        for key in resources.keys where !present.contains(key) {
            resources[key] = nil
            isChanged.remove(key)
            if !isStored(key) { removed.append(key) }
        }
    }

    /// Updates the stored ranges of open resources, which the catalog may not contain yet.
    ///
    /// - Returns: Whether an open resource is missing from the catalog's records.
    @discardableResult
    mutating func update(open: [OpenContents]) -> Bool {
        var lacksRecord = false
        for contents in open where contents.isStored {
            guard var record = records[contents.key] else {
                lacksRecord = lacksRecord || !contents.storedRanges.isEmpty
                continue
            }
            guard record.storedRanges != contents.storedRanges || record.length != contents.length else { continue }
            record.storedRanges = contents.storedRanges
            record.length = contents.length ?? record.length
            records[contents.key] = record
            let root = roots[contents.key] ?? contents.key
            guard let media = records[root] else { continue }
            let parts = members[root, default: []].compactMap { records[$0] }
            note(DashboardResource(StoredPresentation(media: media, parts: parts)), root)
        }
        return lacksRecord
    }

    private mutating func note(_ resource: DashboardResource, _ key: CacheKey) {
        guard resources[key] != resource else { return }
        resources[key] = resource
        if isChanged.insert(key).inserted { changed.append(key) }
    }

    /// Removes and returns changes: at most `limit` changed resources, and all removed keys.
    mutating func takeChanges(limit: Int) -> (changed: [DashboardResource], removed: [String]) {
        defer { removed = [] }
        var taken: [DashboardResource] = []
        var count = 0
        for key in changed where taken.count < limit {
            count += 1
            guard isChanged.remove(key) != nil, let resource = resources[key] else { continue }
            taken.append(resource)
        }
        changed.removeFirst(count)
        // A resource that was removed and then stored again is reported as changed.
        return (taken, removed.filter { resources[$0] == nil }.map(\.hash))
    }

    /// Discards all changes.
    mutating func discardChanges() { (changed, isChanged, removed) = ([], [], []) }
}
#endif
