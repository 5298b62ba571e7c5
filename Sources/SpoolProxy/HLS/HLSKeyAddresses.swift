#if Proxy
/// Where the keys of an encrypted stream are, read off a playlist's lines: also of one with faults, and of keys that nothing
/// but parts of segments to come need.
enum HLSKeyAddresses {
    /// - Parameters:
    ///   - bytes: The playlist.
    ///   - found: Where it was found.
    ///   - imported: The master playlist's variables.
    static func addresses(
        in bytes: [UInt8], found: OriginURL, importing imported: [String: String]
    ) -> [OriginURL] {
        let rewriter = ReferenceRewriter(finalURL: found) { $0.description }
        var variables = HLSVariables(query: found.reference.query, imported: imported)
        var left = HLSPlaylist.maximumBytes
        var addresses: [OriginURL] = []
        var last: ArraySlice<UInt8>?
        for line in HLSLines(bytes[...]) {
            guard let tag = line.tag else { continue }
            switch String(decoding: tag.name.prefix(32), as: UTF8.self) {
            case "#EXT-X-DEFINE": variables.define(HLSAttributeList(tag.value))
            case "#EXT-X-KEY", "#EXT-X-SESSION-KEY":
                guard tag.value != last, let uri = HLSAttributeList(tag.value).string("URI") else { continue }
                last = tag.value
                let meant = try? variables.substituted(uri, limit: left)  // Unknown or too long, they lead nowhere.
                guard let meant else { continue }
                left -= meant.utf8.count
                if let address = rewriter.url(of: meant) { addresses.append(address) }
            default: continue
            }
        }
        return addresses
    }
}
#endif
