import SwiftUI

/// Media that only the person has.
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
    /// For names and addresses, which are taken as they are typed.
    func typedLiterally() -> some View {
        #if os(iOS)
        autocorrectionDisabled().textInputAutocapitalization(.never)
        #else
        autocorrectionDisabled()
        #endif
    }
}
