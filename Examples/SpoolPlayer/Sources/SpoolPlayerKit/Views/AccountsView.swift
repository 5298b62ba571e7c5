import SwiftUI

/// A list of services whose media requires the user's account.
struct AccountsView: View {
    var body: some View {
        NavigationStack {
            List {
                NavigationLink("WebDAV") { WebDAVView() }
                NavigationLink("S3") { S3View() }
            }
            .navigationTitle("Accounts")
        }
    }
}

extension View {
    /// Disables automatic changes to text, for fields that contain names and URLs.
    func typedLiterally() -> some View {
        #if os(iOS)
        autocorrectionDisabled().textInputAutocapitalization(.never)
        #else
        autocorrectionDisabled()
        #endif
    }
}
