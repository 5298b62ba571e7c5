import SpoolSources
import SwiftUI

/// The login for a WebDAV server, and a link to its folders.
struct WebDAVView: View {
    @Environment(AppModel.self) private var app

    var body: some View {
        @Bindable var account = app.webDAV
        Form {
            Section {
                TextField("https://cloud.example/dav/", text: $account.login.address)
                TextField("User", text: $account.login.user)
                SecureField("Password", text: $account.login.password)
                Button("Open") { account.open() }
                Button("Forget", role: .destructive) { account.forget() }
                if let message = account.message { Text(message).foregroundStyle(.red) }
            }
            .typedLiterally()
            if let server = account.server {
                NavigationLink("Files") { WebDAVFolder(server: server, path: "") }
            }
        }
        .formStyle(.grouped)
        .navigationTitle("WebDAV")
    }
}

/// A folder with its subfolders, and with media files that play when they are tapped.
struct WebDAVFolder: View {
    let server: WebDAV
    let path: String
    @State private var items: [WebDAV.Item] = []
    @State private var message: String?

    var body: some View {
        let titles = titles
        List {
            if let message { Text(message).foregroundStyle(.red) }
            ForEach(items.filter(\.isFolder), id: \.path) { item in
                NavigationLink(item.name) { WebDAVFolder(server: server, path: item.path) }
            }
            ForEach(titles) { TitleRow(title: $0, titles: titles) }
        }
        .navigationTitle(path.isEmpty ? "Files" : path)
        .task(id: path) { await load() }
    }

    /// The files that are media.
    private var titles: [Title] {
        items.filter { !$0.isFolder && Self.isMedia($0) }
            .map { Title(name: $0.name, source: server.media(at: $0.path)) }
    }

    /// Returns whether a file is media, based on its content type, or on its extension if the type is generic or
    /// missing.
    private static func isMedia(_ item: WebDAV.Item) -> Bool {
        let type = item.contentType?.prefix { $0 != ";" }.lowercased() ?? ""
        if ["audio/", "video/"].contains(where: { type.hasPrefix($0) }) || type.contains("mpegurl") { return true }
        guard ["", "application/octet-stream", "application/ogg"].contains(type) else { return false }
        return endings.contains { item.name.lowercased().hasSuffix(".\($0)") }
    }

    private static let endings = [
        "aac", "aif", "aiff", "caf", "flac", "m3u8", "m4a", "m4b", "m4v", "mov", "mp3", "mp4", "oga", "ogg", "opus",
        "wav",
    ]

    private func load() async {
        do {
            items = try await server.contents(of: path)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }
}
