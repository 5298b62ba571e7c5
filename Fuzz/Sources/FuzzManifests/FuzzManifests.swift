@testable import SpoolStreams

/// Runs libFuzzer over what reads and rewrites manifests: it asks for this by its name, with bytes that reach ever more of
/// the code. A trap, a `precondition` in one of the checks, or a time-out is a finding.
///
/// The first byte picks what is fuzzed and where the manifest is, the rest is its text.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count))
    guard let kind = bytes.first else { return 0 }
    let text = Array(bytes.dropFirst())
    _ = ManifestKind(prefix: text, contentType: kind & 4 == 0 ? nil : "application/dash+xml")
    let place = Place(number: kind >> 3)
    switch kind % 4 {
    case 0: AddressChecks.run(String(decoding: text, as: UTF8.self), place)
    case 1: DASHChecks.run(text, place)
    default: HLSChecks.run(text, place)
    }
    return 0
}
