import CLibFuzzer

/// Runs libFuzzer over what reads header text: it calls ``fuzzOneInput(_:_:)`` with bytes that reach ever more of the code.
///
/// A trap, or a `precondition` in one of the checks, is a finding; libFuzzer then writes the bytes to `crash-…`.
@main struct FuzzHTTPRanges {
    static func main() {
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        _ = LLVMFuzzerRunDriver(&count, &arguments) { fuzzOneInput($0, $1) }
    }
}

/// The first byte picks what is fuzzed, the rest is its text. libFuzzer asks for it by this name.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)
    guard let kind = bytes.first else { return 0 }
    let text = bytes.dropFirst()
    if kind % 2 == 0 {
        ParserChecks.run(String(decoding: text, as: UTF8.self))
    } else {
        EvaluationChecks.run(text)
    }
    return 0
}
