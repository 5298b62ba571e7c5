import HTTPTypes
import SpoolAVFoundation

/// Returns a description of the stored part of a resource, without sending a request to the origin.
func describe(_ media: MediaResource) async throws -> String {
    guard let stored = try await media.storedResource() else { return "nothing" }
    let type = try await media.storedHeaderFields()?[.contentType] ?? "unknown"
    return "\(stored.storedByteCount) bytes of \(type)\(stored.isComplete ? ", complete" : "")"
}

/// Shows the events of a resource as they occur.
nonisolated(nonsending) func follow(_ media: MediaResource, show: (String) -> Void) async {
    for await event in media.events() {
        switch event.kind {
        case .completed: show("complete")
        case .evicted(let bytes): show("\(bytes) bytes evicted")
        case .failed(let error): show(error.localizedDescription)
        default: break  // Other events, including future ones.
        }
    }
}
