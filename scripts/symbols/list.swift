// Lists the public symbols in the symbol graphs of a directory, one on each line, sorted by name. The exit status is 1
// if a symbol has no doc comment, or if a new case of an enum would break clients.
//
//   swift scripts/symbols/list.swift DIRECTORY MODULE… >LIST
import Foundation

struct Graph: Decodable {
    struct Symbol: Decodable {
        struct Kind: Decodable { let identifier: String }
        struct Identifier: Decodable { let precise: String }
        struct Fragment: Decodable { let spelling: String }
        struct Comment: Decodable { let lines: [Line] }
        struct Line: Decodable { let text: String }
        struct Location: Decodable {
            struct Position: Decodable { let line: Int }

            let uri: String
            let position: Position
        }

        let kind: Kind
        let identifier: Identifier
        let pathComponents: [String]
        let declarationFragments: [Fragment]
        let docComment: Comment?
        let location: Location?
    }

    struct Relationship: Decodable {
        let kind: String
        let source: String
        let target: String
        let targetFallback: String?
    }

    let symbols: [Symbol]
    let relationships: [Relationship]
}

/// The conformances that the compiler adds to most types, or that the declaration shows.
let commonplace: Set<String> = [
    "Copyable", "Escapable", "SendableMetatype", "BitwiseCopyable",
]

func problem(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

/// The lines of the source files that were read.
var sources: [String: [Substring]] = [:]

/// Whether only the module can set the property. The graph does not show it if a macro adds the accessors.
func hasRestrictedSetter(_ symbol: Graph.Symbol) -> Bool {
    guard let location = symbol.location, let file = URL(string: location.uri) else { return false }
    if sources[file.path] == nil {
        // Without the source, the declaration of the graph is used.
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        sources[file.path] = text.split(separator: "\n", omittingEmptySubsequences: false)
    }
    guard let lines = sources[file.path], lines.indices.contains(location.position.line) else { return false }
    return lines[location.position.line].contains("(set)")
}

let directory = URL(fileURLWithPath: CommandLine.arguments[1])
let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
var isFine = true
for module in CommandLine.arguments.dropFirst(2) {
    var lines: Set<String> = []
    for file in files where file == "\(module).symbols.json" || file.hasPrefix("\(module)@") {
        let graph = try JSONDecoder().decode(
            Graph.self, from: Data(contentsOf: directory.appendingPathComponent(file)))
        let names = Dictionary(
            graph.symbols.map { ($0.identifier.precise, $0.pathComponents.joined(separator: ".")) },
            uniquingKeysWith: { first, _ in first })
        var conformances: [String: Set<String>] = [:]
        for relationship in graph.relationships where relationship.kind == "conformsTo" {
            // The module of a Foundation protocol differs between toolchains, so the module is removed from the name.
            guard
                let name = names[relationship.target]
                    ?? relationship.targetFallback?.split(separator: ".").dropFirst().joined(separator: ".")
            else { continue }
            if !commonplace.contains(name) { conformances[relationship.source, default: []].insert(name) }
        }
        let withCases = Set(
            graph.relationships.filter { $0.kind == "memberOf" }.compactMap { relationship in
                graph.symbols.contains {
                    $0.identifier.precise == relationship.source && $0.kind.identifier == "swift.enum.case"
                } ? relationship.target : nil
            })
        for symbol in graph.symbols where !symbol.identifier.precise.contains("::SYNTHESIZED::") {
            let path = symbol.pathComponents.joined(separator: ".")
            var declaration = symbol.declarationFragments.map(\.spelling).joined()
                .split(whereSeparator: \.isWhitespace).joined(separator: " ")
            if declaration.hasSuffix(" { get set }"), hasRestrictedSetter(symbol) {
                declaration = declaration.dropLast(" { get set }".count) + " { get }"
            }
            let protocols = conformances[symbol.identifier.precise]?.sorted().joined(separator: ", ")
            lines.insert("\(path)\t\(declaration)\(protocols.map { " : \($0)" } ?? "")")
            if symbol.docComment?.lines.contains(where: { !$0.text.isEmpty }) != true {
                isFine = false
                problem("\(module): \(path) has no doc comment")
            }
            if withCases.contains(symbol.identifier.precise), !declaration.contains("@nonexhaustive") {
                isFine = false
                problem("\(module): the enum \(path) can't grow, because it is not @nonexhaustive")
            }
        }
    }
    print("# \(module)")
    for line in lines.sorted() { print(line) }
}
exit(isFine ? 0 : 1)
