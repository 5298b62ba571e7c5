import SwiftUI

/// Media that needs an account of the user.
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
    /// Disables corrections while names and URLs are typed.
    func typedLiterally() -> some View {
        #if os(iOS)
        autocorrectionDisabled().textInputAutocapitalization(.never)
        #else
        autocorrectionDisabled()
        #endif
    }
}
