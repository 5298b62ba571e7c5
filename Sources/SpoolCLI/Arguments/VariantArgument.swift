import ArgumentParser
import SpoolProxy

/// Which variant of a stream to fetch: `highest`, `lowest`, bits a second, or `WIDTHxHEIGHT` in pixels.
struct VariantArgument: Hashable, Sendable, ExpressibleByArgument {
    var selection: HLSVariantSelection

    /// Reads a variant; nil for anything else, and for numbers that are not positive.
    init?(argument: String) {
        switch argument {
        case "highest": selection = .highest
        case "lowest": selection = .lowest
        default:
            let numbers = argument.split(separator: "x", omittingEmptySubsequences: false).map { Int64($0) ?? 0 }
            guard numbers.allSatisfy({ $0 > 0 }) else { return nil }
            switch numbers.count {
            case 1: selection = .bandwidth(atMost: numbers[0])
            case 2: selection = .resolution(atMost: HLSResolution(width: numbers[0], height: numbers[1]))
            default: return nil
            }
        }
    }
}
