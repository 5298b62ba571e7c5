import Foundation
import HTTPTypes
import Spool
import SpoolSources

// The recipes in docs/sources.md, with the same text as there.

/// Dropbox: requests the URL of the file's bytes with the token. The URL is valid for four hours.
func dropbox(_ path: String, of account: HeaderProvider, upstream: any Upstream) -> MediaSource {
    let service = URL(string: "https://api.dropboxapi.com/2/files/get_temporary_link")!
    let name = service.appending(queryItems: [URLQueryItem(name: "path", value: path)])
    return account.media(named: name) { client in
        let question = try JSONEncoder().encode(["path": path])
        var request = UpstreamRequest(url: service)
        request.method = .post
        request.headerFields = [.contentType: "application/json", .contentLength: "\(question.count)"]
        let data = try await client.data(for: request, sending: question, over: upstream)
        return ResolvedRequest(url: try JSONDecoder().decode(DropboxLink.self, from: data).link)
    }
}

struct DropboxLink: Decodable { var link: URL }

/// Google Drive: requests the bytes with the token.
func googleDrive(_ id: String, of account: HeaderProvider) -> MediaSource {
    account.media(at: URL(string: "https://www.googleapis.com/drive/v3/files/\(id)?alt=media")!)
}

/// Box: requests the bytes with the token. A redirect leads to another host, which gets no token.
func box(_ id: String, of account: HeaderProvider) -> MediaSource {
    account.media(at: URL(string: "https://api.box.com/2.0/files/\(id)/content")!)
}

/// OneDrive: like Box.
func oneDrive(_ id: String, of account: HeaderProvider) -> MediaSource {
    account.media(at: URL(string: "https://graph.microsoft.com/v1.0/me/drive/items/\(id)/content")!)
}
