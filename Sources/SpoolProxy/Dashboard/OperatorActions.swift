#if Proxy
import Foundation
import HTTPTypes
import NIOCore
import Spool
import SpoolStorage
import SpoolStreams

/// The operator's changes to the cache: pins, removals, checks, preloads and the capacity.
///
/// Each request must contain the operator's token.
struct OperatorActions: Sendable {
    /// A change, as the page sends it.
    struct Call: Decodable, Sendable {
        /// A value of a setting.
        enum Value: Decodable, Sendable {
            case text(String)
            case number(Int64)
            case list([String])
            case none

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                if container.decodeNil() {
                    self = .none
                } else if let number = try? container.decode(Int64.self) {  // The value may have another type.
                    self = .number(number)
                } else if let list = try? container.decode([String].self) {  // The value may have another type.
                    self = .list(list)
                } else {
                    self = .text(try container.decode(String.self))
                }
            }
        }

        private enum CodingKeys: String, CodingKey, CaseIterable {
            case action, keys, urls, pin, prefix, tag, dryRun, name, value
        }

        private struct AnyKey: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        var action: String
        var keys: [String]?
        var urls: [String]?
        var pin: Bool?
        var prefix: String?
        var tag: String?
        /// Whether to return what a purge would remove, without removing it.
        var dryRun: Bool?
        var name: String?
        /// The value, or `nil` if the request does not contain one. A `null` in the request is ``Value/none``.
        var value: Value?

        /// Decodes a change.
        ///
        /// - Throws: `RequestFailure` with status 400 that names the invalid field.
        init(from decoder: any Decoder) throws {
            for key in try decoder.container(keyedBy: AnyKey.self).allKeys
            where CodingKeys(stringValue: key.stringValue) == nil {
                let name = String(key.stringValue.prefix(40)).escapedForMessage
                throw RequestFailure(400, "unknown field “\(name)”; only “action” and its parameters are allowed")
            }
            let container = try decoder.container(keyedBy: CodingKeys.self)
            func field<T: Decodable>(_ key: CodingKeys, _ type: T.Type, _ kind: String) throws -> T? {
                guard container.contains(key) else { return nil }
                do {
                    return try container.decode(type, forKey: key)
                } catch {
                    throw RequestFailure(400, "“\(key.rawValue)” must be \(kind)")
                }
            }
            guard let action = try field(.action, String.self, "a string") else {
                throw RequestFailure(400, "“action” is missing")
            }
            self.action = action
            keys = try field(.keys, [String].self, "an array of strings")
            urls = try field(.urls, [String].self, "an array of strings")
            pin = try field(.pin, Bool.self, "true or false")
            prefix = try field(.prefix, String.self, "a string")
            tag = try field(.tag, String.self, "a string")
            dryRun = try field(.dryRun, Bool.self, "true or false")
            name = try field(.name, String.self, "a string")
            value = try field(.value, Value.self, "a whole number, a string, an array of strings or null")
        }
    }

    /// The result for one resource.
    struct Result: Encodable, Sendable {
        /// The hash of the cache key.
        @EncodedAsNull var key: String?
        /// The scheme, the host and the path.
        @EncodedAsNull var url: String?
        var ok: Bool
        /// A sentence that states the result or the error.
        var message: String
    }

    /// The results of a change.
    struct Results: Encodable, Sendable {
        var results: [Result] = []
        var removedBytes: Int64 = 0
    }

    private static let bodyLimit = 1 << 20
    /// The maximum number of keys or URLs in one change.
    private static let itemLimit = 10_000
    /// The maximum number of patterns of allowed hosts.
    private static let hostLimit = 1000

    let cache: MediaCache
    /// The settings and the token, or `nil` if the server does not allow changes.
    let operatorSettings: OperatorSettings?
    let origins: OriginRules
    /// The allowed origins, if they have been changed on the page.
    let hosts: HostOverrides
    /// The server's own origin, and the header fields for it, in reverse mode.
    let origin: OriginURL?
    let originFields: HTTPFields
    let preloads: OperatorPreloads
    /// The settings that were changed on the page.
    let changed = ChangedSettings()

    /// The settings with their current values.
    var settings: DashboardAPI.Settings {
        var settings = operatorSettings?.settings ?? []
        for index in settings.indices {
            switch settings[index].name {
            case "capacity":
                settings[index].value = cache.capacity.map { .number($0) } ?? .none
                if changed.contains("capacity") { settings[index].source = .page }
            case "allowedHosts":
                guard let hosts = hosts.hosts else { break }
                (settings[index].value, settings[index].source) = (.list(hosts), .page)
            default: break
            }
        }
        return DashboardAPI.Settings(canChange: operatorSettings != nil, settings: settings)
    }

    // MARK: - Requests

    /// Checks the operator's token.
    ///
    /// - Throws: `RequestFailure` with status 401, or 403 if the server does not allow changes.
    func checkToken(of request: RequestHead) throws(RequestFailure) {
        guard let operatorSettings else {
            throw RequestFailure(403, "this server does not allow changes, because it has no operator's token")
        }
        for value in request.fields.values("authorization") where value.prefix(7).lowercased() == "bearer " {
            let given = value.dropFirst(7).drop { $0 == " " }
            if Secret.areEqual(given.utf8, operatorSettings.token.text.utf8) { return }
        }
        throw RequestFailure(
            401, "the operator's token is required; it is in the file operator-token in the cache directory")
    }

    /// Reads a change from the body of a request.
    ///
    /// - Throws: `RequestFailure` with status 400 or 413.
    func call(_ request: RequestHead, _ body: RequestBodyStream.Body?) async throws -> Call {
        let type = request.fields["content-type"]?.prefix { $0 != ";" }.lowercased()
        guard type?.trimmingCharacters(in: .whitespaces) == "application/json" else {
            throw RequestFailure(400, "the content type must be application/json")
        }
        var data = Data()
        if let body {
            for try await piece in body {
                data.append(contentsOf: piece.readableBytesView)
                guard data.count <= Self.bodyLimit else { throw RequestFailure(413, "the request exceeds 1 MiB") }
            }
        }
        do {
            let call = try JSONDecoder().decode(Call.self, from: data)
            guard max(call.keys?.count ?? 0, call.urls?.count ?? 0) <= Self.itemLimit else {
                throw RequestFailure(413, "the request has more than \(Self.itemLimit) items")
            }
            return call
        } catch let failure as RequestFailure {
            throw failure
        } catch {
            throw RequestFailure(400, "the request must be a JSON object that describes an action")
        }
    }

    /// Applies a change.
    ///
    /// - Throws: `RequestFailure` with status 400, or `CacheError` if nothing could be changed.
    func perform(_ call: Call, for client: ProxyClient) async throws -> Results {
        switch call.action {
        case "pin", "unpin", "remove", "verify":
            guard let keys = call.keys, !keys.isEmpty else { throw RequestFailure(400, "“keys” is missing or empty") }
            return try await change(keys, call.action)
        case "preload":
            guard let urls = call.urls, !urls.isEmpty else { throw RequestFailure(400, "“urls” is missing or empty") }
            return Results(results: urls.map { preload($0, pins: call.pin ?? false, for: client) })
        case "purge": return try await purge(call)
        case "set": return try await set(call.name ?? "", call.value)
        default: throw RequestFailure(400, "unknown action “\(String(call.action.prefix(40)).escapedForMessage)”")
        }
    }

    // MARK: - Changes to stored resources

    private func change(_ keys: [String], _ action: String) async throws -> Results {
        var results = Results()
        for text in keys {
            try Task.checkCancellation()
            guard let key = CacheKey(rawValue: text) else {
                results.results.append(Result(key: nil, url: nil, ok: false, message: "invalid key"))
                continue
            }
            do {
                let isRemoval = action == "remove"
                let cancelled = isRemoval ? try await preloads.cancel(beforeRemoving: key, from: cache) : []
                guard let details = try await cache.details(of: key) else {
                    guard let source = cancelled.first else {
                        throw CacheError(.notStored, "nothing is stored under this key")
                    }
                    // The first bytes of the preload may not be recorded yet.
                    try await cache.remove(key)
                    results.results.append(
                        Result(key: text, url: source.redactedURL, ok: true, message: "the preload was cancelled"))
                    continue
                }
                let parts = try await cache.parts(of: key)
                let media = details.resource
                var message = try await change(StoredPresentation(media: media, parts: parts), action, &results)
                if !cancelled.isEmpty { message += ", and the preload was cancelled" }
                results.results.append(Result(key: text, url: media.redactedURL, ok: true, message: message))
            } catch let error as CacheError {
                results.results.append(Result(key: text, url: nil, ok: false, message: error.message))
            }
        }
        return results
    }

    private func change(
        _ stored: StoredPresentation, _ action: String, _ results: inout Results
    ) async throws -> String {
        let key = stored.media.key
        switch action {
        case "pin":
            try await cache.pin(key)
            return "pinned"
        case "unpin":
            try await cache.unpin(key)
            return "unpinned"
        case "remove":
            try await cache.remove(key)
            results.removedBytes += stored.byteCount
            return "removed"
        default:
            var (blocks, damaged) = (0, 0)
            for key in [key] + stored.parts.map(\.key) {
                let report = try await cache.verify(key, repairing: true)
                blocks += report.blockCount
                damaged += report.damagedBlockCount
                if let cause = report.uncheckedCause { throw CacheError(.storage, cause) }
            }
            let checked = "\(blocks.counted("block")) checked"
            return damaged == 0 ? checked + ", none damaged" : checked + ", \(damaged) damaged and discarded"
        }
    }

    private func purge(_ call: Call) async throws -> Results {
        let selection: PurgeSelection?
        switch (call.prefix, call.tag) {
        case (let prefix?, nil): selection = PurgeSelection(prefix: prefix)
        case (nil, let tag?): selection = PurgeSelection(tag: tag)
        default: throw RequestFailure(400, "give either “prefix” or “tag”")
        }
        guard let selection else {
            throw RequestFailure(
                400,
                call.tag == nil
                    ? "the prefix must be a URL with a scheme and a host, without a user name, a query or a fragment"
                    : "the tag must be 1 to 1024 bytes long, without spaces or commas")
        }
        if call.dryRun == true {
            let selected = try await selection.resources(in: cache)
            return Results(
                results: selected.map { Result(key: $0.key.hash, url: $0.redactedURL, ok: true, message: "selected") },
                removedBytes: selected.reduce(0) { $0 + $1.storedByteCount })
        }
        let (removed, failures, _) = try await preloads.purge(selection, from: cache)
        return Results(
            results: removed.map { Result(key: $0.key.hash, url: $0.redactedURL, ok: true, message: "removed") }
                + failures.map { Result(key: $0.key?.hash, url: nil, ok: false, message: $0.message) },
            removedBytes: removed.reduce(0) { $0 + $1.storedByteCount })
    }

    private func set(_ name: String, _ value: Call.Value?) async throws -> Results {
        guard let setting = operatorSettings?.settings.first(where: { $0.name == name }) else {
            throw RequestFailure(400, "unknown setting “\(String(name.prefix(40)).escapedForMessage)”")
        }
        guard setting.editable else { throw RequestFailure(409, setting.restartAdvice) }
        switch name {
        case "capacity": try await setCapacity(value)
        case "allowedHosts":
            switch value {
            case nil: throw RequestFailure(400, "“value” is missing")
            case .list(let list) where list.count <= Self.hostLimit: try hosts.set(list)
            default:
                throw RequestFailure(
                    400,
                    "the allowed hosts must be an array of at most \(Self.hostLimit) patterns; [] allows all public origins"
                )
            }
        default: throw RequestFailure(409, setting.restartAdvice)
        }
        return Results(results: [Result(key: nil, url: nil, ok: true, message: "the setting was changed")])
    }

    private func setCapacity(_ value: Call.Value?) async throws {
        let capacity: CacheCapacity
        switch value {
        case nil: throw RequestFailure(400, "“value” is missing")
        case .number(let bytes): capacity = .bytes(bytes)
        case .some(.none): capacity = .unlimited
        case .text, .list: throw RequestFailure(400, "the capacity must be a number of bytes, or null for no limit")
        }
        try await cache.rememberCapacity(capacity)
        changed.insert("capacity")
    }

    // MARK: - Preloads

    private func preload(_ text: String, pins: Bool, for client: ProxyClient) -> Result {
        do {
            let url = try OriginURL(text)
            let check = { @Sendable [origins, origin] (url: OriginURL) throws in
                try origins.check(url, for: client, isOwn: origin != nil)
                if let origin, !url.isSameOrigin(as: origin) {
                    throw RequestFailure(403, "\(url.nameForMessages) does not belong to the origin of this server")
                }
            }
            try check(url)
            guard let address = url.url else { throw RequestFailure(400, "the URL is invalid and can't be requested") }
            let source = MediaSource(url: address, headerFields: origin == nil ? [:] : originFields)
            guard preloads.start(source, pins: pins, in: cache, check: check) else {
                throw RequestFailure(503, "too many preloads are running")
            }
            return Result(
                key: cache.key(for: source).hash, url: source.redactedURL, ok: true, message: "the preload has started")
        } catch let failure as RequestFailure {
            return Result(key: nil, url: nil, ok: false, message: failure.reason)
        } catch {
            return Result(key: nil, url: nil, ok: false, message: "the URL can't be preloaded: \(error)")
        }
    }
}
#endif
