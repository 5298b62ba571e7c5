import CDashboardFiles
package import Foundation

/// A static file of the live page: its document, a script, a style sheet or an image.
///
/// The files are in the folder `Resources`. They are part of the binary, so that the server does not need any other
/// file.
package struct DashboardFile: Sendable {
    /// The path relative to the page.
    package let name: String
    package let bytes: Data
    /// The media type.
    package let contentType: String
    /// The entity tag, which depends on the content.
    package let entityTag: String

    private init(_ file: DashboardFileBytes) {
        name = String(cString: file.name)
        bytes = Data(bytes: file.bytes, count: file.count)
        contentType = Self.contentType(of: name)
        // FNV-1a is enough, because a collision would only make a browser show an old page.
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325) { (hash: UInt64, byte) in
            (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        entityTag = "\"\(String(hash, radix: 16))\""
    }

    /// All files, sorted by name.
    package static let all: [DashboardFile] = {
        var files: [DashboardFile] = []
        while let file = dashboard_file(files.count) { files.append(DashboardFile(file.pointee)) }
        return files
    }()

    private static let byName = Dictionary(all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })

    /// Returns the file with the given name, or `nil` if there is none. The empty name refers to the document.
    package static func named(_ name: some StringProtocol) -> DashboardFile? {
        byName[name.isEmpty ? "index.html" : String(name)]
    }

    private static func contentType(of name: String) -> String {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js", "mjs": "text/javascript; charset=utf-8"
        case "json", "map": "application/json"
        case "svg": "image/svg+xml"
        case "png": "image/png"
        case "woff2": "font/woff2"
        case "txt": "text/plain; charset=utf-8"
        default: "application/octet-stream"
        }
    }
}
