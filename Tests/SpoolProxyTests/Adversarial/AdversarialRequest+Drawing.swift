import SpoolTesting

extension AdversarialRequest {
    /// Creates a random request from a grammar of valid and invalid requests. Most requests have one fault or none.
    static func draw(for target: AdversarialTarget, _ random: inout SplitMix) -> AdversarialRequest {
        // If all requests had many faults, few connections would reach their second request.
        var draft = AdversarialDraft(target: target, isTame: random.below(5) > 0)
        draft.drawMethod(&random)
        draft.drawTarget(&random)
        draft.drawVersion(&random)
        draft.drawHost(&random)
        draft.drawToken(&random)
        draft.drawFields(&random)
        if draft.media != nil { draft.drawConditions(&random) }
        draft.drawBody(&random)
        draft.drawConnection(&random)
        if !draft.isTame, random.chance(8) { draft.spoil(&random) }
        return draft.request(&random)
    }

    /// Returns a request that ends a connection in an orderly way.
    static func farewell(for target: AdversarialTarget) -> AdversarialRequest {
        let prefix = target.token.map { "/~" + $0 } ?? ""
        return AdversarialRequest(
            bytes: Array("GET \(prefix)/.spool/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8),
            fate: .ends, expected: ExpectedResponse(content: .health))
    }
}
