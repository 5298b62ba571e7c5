import SwiftUI

/// The login for a bucket, and an object to play.
struct S3View: View {
    @Environment(AppModel.self) private var app
    @State private var object = ""

    var body: some View {
        @Bindable var account = app.s3
        Form {
            Section("Bucket") {
                TextField("Bucket", text: $account.login.bucket)
                TextField("Region", text: $account.login.region)
                TextField("Endpoint (default: Amazon's)", text: $account.login.endpoint)
                TextField("Access key ID", text: $account.login.accessKeyID)
                SecureField("Secret access key", text: $account.login.secretAccessKey)
                Button("Forget", role: .destructive) { account.forget() }
            }
            .typedLiterally()
            Section("Object") {
                TextField("2026/holiday.mp4", text: $object).typedLiterally()
                Button("Play") {
                    if let title = account.title(ofObject: object) { app.play(title, of: [title]) }
                }
                .disabled(object.isEmpty)
                if let message = account.message { Text(message).foregroundStyle(.red) }
            }
        }
        .formStyle(.grouped)
        .navigationTitle("S3")
    }
}
