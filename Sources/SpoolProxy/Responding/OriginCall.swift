#if Proxy
import Foundation
import HTTPTypes
import Spool

/// What is asked of an origin for one request: its URL and the fields that go along.
struct OriginCall: Sendable {
    let url: OriginURL
    let fields: HTTPFields
    /// The prefix that the client's own paths have.
    let prefix: String
    let isReverse: Bool
    /// Whether it is the owner's command that asks: it finds its way through the server itself, so that manifests stay as
    /// they are, and what it sends is meant for the origin.
    let isForOwner: Bool
    /// The source behind the address, where one was handed out for it.
    var presentation: PresentationSource?

    /// - Parameter own: Fields that the server's own origin is sent in place of what a client sends of them.
    /// - Throws: `RequestFailure`: 403 for an origin that may not be asked, 508 for a request that has been here before.
    init(
        _ url: OriginURL, _ request: RequestHead, _ admitted: AccessRules.Admitted, _ client: ProxyClient,
        isReverse: Bool, isForOwner: Bool = false, adding own: HTTPFields = [:], origins: OriginRules
    ) throws(RequestFailure) {
        try origins.check(url, for: client, isOwn: isReverse)
        try origins.checkLoop(request.fields)
        self.url = url
        self.prefix = admitted.prefix
        self.isReverse = isReverse
        self.isForOwner = isForOwner
        let asked = request.fields.all
        var fields =
            isReverse || isForOwner
            ? OutgoingFields.reverse(asked, hiding: admitted.secret)
            : OutgoingFields.forward(asked, hiding: admitted.secret)
        if !isForOwner { fields = OutgoingFields.withoutUnkeyed(fields) }
        if isReverse {
            for name in Set(own.map(\.name)) { fields[name] = nil }
            for field in own { fields.append(field) }
        }
        origins.addTrace(to: &fields)
        self.fields = fields
    }

    /// What a client is to ask this server for a URL: a path that begins with `/`; or the URL itself, where the server stands
    /// for one origin that it is not of.
    func proxied(_ url: OriginURL) -> String {
        if !isReverse { return prefix + ForwardAddress.requestTarget(for: url) }
        return url.isSameOrigin(as: self.url) ? prefix + url.target : url.description
    }

    /// The source of the media file.
    ///
    /// - Throws: `RequestFailure` with status 400 for an address that `URL` can't hold.
    var source: MediaSource {
        get throws(RequestFailure) {
            try source(of: url)
        }
    }

    /// The source of a file that belongs to it.
    ///
    /// - Throws: `RequestFailure` with status 400 for an address that `URL` can't hold.
    func source(of url: OriginURL) throws(RequestFailure) -> MediaSource {
        guard let url = url.url else { throw RequestFailure(400, "the address can't be asked for") }
        return presentation?.part(at: url, sending: fields) ?? MediaSource(url: url, headerFields: fields)
    }

    var foundationURL: URL {
        get throws(RequestFailure) {
            guard let url = url.url else { throw RequestFailure(400, "the address can't be asked for") }
            return url
        }
    }
}
#endif
