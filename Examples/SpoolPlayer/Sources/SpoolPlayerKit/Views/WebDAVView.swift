import SpoolSources
import SwiftUI

/// The login at a WebDAV server, and the way to its folders.
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

/// A folder: other folders, and files that are played by a tap.
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

    /// What is media, as far as the server says what it is.
    private var titles: [Title] {
        items.filter { item in
            guard !item.isFolder else { return false }
            guard let type = item.contentType else { return true }
            return ["audio/", "video/"].contains { type.hasPrefix($0) } || type.contains("mpegurl")
        }
        .map { Title(name: $0.name, source: server.media(at: $0.path)) }
    }

    private func load() async {
        do {
            items = try await server.contents(of: path)
            message = nil
        } catch {
            message = error.localizedDescription
        }
    }
}
