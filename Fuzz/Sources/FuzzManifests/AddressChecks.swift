@testable import SpoolStreams

/// The checks for every URL and reference.
enum AddressChecks {
    static func run(_ text: String, _ place: Place) {
        if let origin = try? ForwardAddress.origin(of: text) {
            precondition((try? ForwardAddress.origin(of: ForwardAddress.requestTarget(for: origin))) == origin)
            precondition(origin.url != nil)
        }
        precondition(URIReference(text).text == text)
        if let url = try? OriginURL(text) { precondition((try? OriginURL(url.description)) == url) }
        let rewriter = ReferenceRewriter(
            finalURL: place.final, requestedURL: place.requested, proxied: Place.path)
        place.check(rewriter.rewritten(text) ?? text, text)
        if let meant = try? OriginURL(URIReference(text).resolved(against: URIReference(place.final.description))) {
            precondition(rewriter.url(of: text) == meant)
        }
    }
}
